# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Predicted sums in TFF, with all that is around them, and their checkpoints.

What they are worth and what they cost is tested without TFF:
`stages/predict_test.py`, `numerics/prediction/subtraction_test.py`.
"""

import asyncio
import collections
import functools
import os

from absl.testing import absltest
import numpy as np
import tensorflow_federated as tff
import tree

from tests import factory_conformance
import tff_autotune_secagg as autotune
from tff_autotune_secagg.stages import flatten
from tff_autotune_secagg.stages import predict
from tff_autotune_secagg.stages import quantize
from tff_autotune_secagg.stages import rotate
from tff_autotune_secagg.stages import wire

setUpModule = factory_conformance.set_up_context

_VALUE_TYPE = tff.to_type(
  collections.OrderedDict(a=(np.float64, [40, 30]), b=(np.float32, [7]))
)
_WEIGHT_TYPE = tff.TensorType(np.float32)


@functools.lru_cache(maxsize=None)
def _process(predict_sum=True):
  """A weighted mean with zeroing and clipping, repeatable by its dither."""
  return autotune.autotuned_secure_aggregator(
    modulus=64,
    rounding=autotune.Rounding.DITHER,
    predict_sum=predict_sum,
    seed=1,
  ).create(_VALUE_TYPE, _WEIGHT_TYPE)


def _clients(number, num_clients):
  """Returns updates and weights of round `number`."""
  common = np.random.default_rng(0).standard_normal(1207)
  rng = np.random.default_rng([1, number])
  updates = []
  for _ in range(num_clients):
    x = 0.05 * (common + 0.5 * rng.standard_normal(1207))
    updates.append(
      collections.OrderedDict(
        a=x[:1200].reshape([40, 30]), b=x[1200:].astype(np.float32)
      )
    )
  return updates, [np.float32(w) for w in rng.integers(1, 5, num_clients)]


def _run(state, cohorts, first=1, process=None):
  """Returns the outputs of rounds of so many clients."""
  outputs = []
  for number, num_clients in enumerate(cohorts, first):
    output = (process or _process()).next(state, *_clients(number, num_clients))
    state = output.state
    outputs.append(output)
  return outputs


def _gain(output):
  found = autotune.round_measurements(output.measurements)
  return float(found['prediction_gain'])


def _load(manager, process):
  return asyncio.run(autotune.load_latest_state(manager, process))[0]


class PredictionTest(absltest.TestCase):
  def test_a_history_and_its_continuation_from_a_checkpoint(self):
    cohorts = [8, 8, 8, 0, 12, 8, 5, 9]
    outputs = _run(_process().initialize(), cohorts)
    gains = [_gain(output) for output in outputs]
    self.assertEqual([gains[0], gains[3]], [1.0, 1.0])
    self.assertLess(max(gains[4:]), 0.3)
    updates, weights = _clients(8, 9)
    total = sum(weights)
    for name in 'ab':
      found = np.asarray(outputs[-1].result[name])
      self.assertEqual(found.dtype, updates[0][name].dtype)
      wanted = sum(w * x[name] for x, w in zip(updates, weights)) / total
      # Nearly, as a client may be clipped.
      self.assertGreater(np.corrcoef(found.flat, wanted.flat)[0, 1], 0.95)
    manager = tff.program.FileProgramStateManager(
      os.path.join(self.create_tempdir().full_path, 'states')
    )
    asyncio.run(manager.save(outputs[5].state, 6))
    again = _run(_load(manager, _process()), cohorts[6:], first=7)
    for output, wanted in zip(again, outputs[6:]):
      tree.map_structure(
        np.testing.assert_array_equal, output.result, wanted.result
      )
    with self.subTest('the other setting refuses it by name'):
      with self.assertRaisesRegex(
        ValueError,
        'found those of `predict_sum` True where the process has `predict_sum`'
        ' False: ',
      ):
        _load(manager, _process(False))
    with self.subTest('and it the states of the other setting'):
      other = tff.program.FileProgramStateManager(
        os.path.join(self.create_tempdir().full_path, 'states')
      )
      state = _process(False).initialize()
      asyncio.run(other.save(state, 1))
      sentence = (
        'found those of `predict_sum` False where the process has `predict_sum`'
        ' True'
      )
      with self.assertRaisesRegex(ValueError, sentence):
        _load(other, _process())
      with self.assertRaisesRegex(ValueError, sentence):
        autotune.check_state(_process(), state)
    with self.subTest('the sum has the size that is learned for the next one'):
      size = autotune.learned_size(outputs[-1].state)
      found = autotune.round_measurements(outputs[-1].measurements)
      ratio = size / float(found['sum_stddev'])
      self.assertBetween(ratio, 0.5, 2.0)
      # The negative control: what was left to read is smaller.
      self.assertLess(float(found['size_forecast']) / size, 0.6)

  def test_other_settings_are_refused_by_name(self):
    state = _process().initialize()
    factory = autotune.autotuned_secure_aggregator(modulus=32, predict_sum=True)
    with self.assertRaisesRegex(ValueError, 'with `modulus` 64'):
      autotune.check_state(factory.create(_VALUE_TYPE, _WEIGHT_TYPE), state)

  def test_without_it_the_stages_are_those_of_before(self):
    for options, stages in (
      (dict(), [rotate.RotateStage, quantize.QuantizeStage]),
      (dict(predict_sum=True), [predict.PredictStage]),
    ):
      factory = autotune.AutotunedSecureSumFactory(modulus=64, **options)
      found = [made for made, _ in factory.unchain()[0]]
      self.assertEqual(found, [flatten.FlattenStage, *stages, wire.WireStage])


if __name__ == '__main__':
  absltest.main()
