# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests what variables in a user's environment change, in a fresh Python."""

import json

from absl.testing import absltest
import pytest

from tests import fresh_python

_CODE = """
import json
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff
import tff_autotune_secagg as autotune
from tff_autotune_secagg.numerics import seeds

# As README does: TensorFlow tells at length of assertions that TFF's zeroing
# leaves unused.
tf.get_logger().setLevel('CRITICAL')
floats = tff.TensorType(np.float32, [8])
for _ in range(2):  # In TFF's default context, of which is told once.
  autotune.FlattenFactory(tff.aggregators.SumFactory()).create(floats)
autotune.simulation.set_local_context()
factories = {
  # Eight bits were meant.
  'default': autotune.autotuned_secure_aggregator(modulus=8, weighted=False),
  'seed': autotune.AutotunedSecureSumFactory(modulus=256, seed=1),
}
processes = {name: made.create(floats) for name, made in factories.items()}
found = {}
for name, process in processes.items():
  state = process.initialize()
  for _ in range(2):
    output = process.next(state, [np.ones(8, np.float32)] * 10)
    state = output.state
  found[name] = float(output.result[0])

def uniform(number):
  return tf.raw_ops.RandomUniformInt(
    shape=[1], minval=0, maxval=2 + 0 * number, seed=0, seed2=0
  )

def at_clients(function):
  comp = tff.tensorflow.computation(function, np.int32)
  placed = tff.FederatedType(np.int32, tff.CLIENTS)
  return tff.federated_computation(lambda x: tff.federated_map(comp, x), placed)

draw = at_clients(lambda number: seeds.private_seed())
found['seeds'] = [seed.tolist() for _ in range(2) for seed in draw([0] * 3)]
draw = at_clients(lambda number: seeds.system_seed())
found['noise'] = [seed.tolist() for _ in range(2) for seed in draw([0] * 3)]
try:
  at_clients(uniform)([0])
except Exception as error:
  found['control'] = str(error)
print(json.dumps(found))
"""


@pytest.mark.slow
class UserEnvironmentTest(absltest.TestCase):
  def test_silent_and_deterministic(self):
    """One Python for both: most of its time is the import."""
    output = fresh_python.run(
      '-c', _CODE, TF_CPP_MIN_LOG_LEVEL='3', TF_DETERMINISTIC_OPS='1'
    )
    # Not another line, from the import to the end.
    self.assertEqual(
      output.stderr,
      "WARNING:absl:Secure sums do not run in TFF's default context, which is"
      ' the current one. Before the first round, call'
      ' `tff_autotune_secagg.simulation.set_local_context()` (a simulation'
      ' without cryptography).\n'
      'WARNING:absl:A modulus of 3 bits is too small for the 10 clients of this'
      ' round (measurement `modulus_too_small`): little of their sum comes'
      ' through. `plan_modulus` says which one would do. `modulus` counts'
      ' residues: 8 bits are `modulus=2**8`.\n',
    )
    self.assertEqual(output.status, 0)
    found = json.loads(output.stdout)
    self.assertAlmostEqual(found['default'], 0.0, delta=1.5)
    # Predicted error of 8 bits and 10 clients: 3e-3 of the squared norm.
    self.assertAlmostEqual(found['seed'], 10.0, delta=3.0)
    # Private to each client and each round.
    for name in ('seeds', 'noise'):
      self.assertLen({tuple(seed) for seed in found[name]}, 6)
    self.assertIn('random ops must have a seed', found['control'])


if __name__ == '__main__':
  absltest.main()
