# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Measures the peak memory and the error of a few rounds of one sum.

One aggregator in each process, since a peak cannot be taken back:

python -m experiments.benchmark.run_memory --dim=50000000 --num_clients=4
python -m experiments.benchmark.run_memory --dim=50000000 --num_clients=4 --plain_sum
"""

import json
import os
import time

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
import numpy as np
import tensorflow_federated as tff

from experiments.common import result_rows
import tff_autotune_secagg as tas

del quiet  # Imported for its side effect.

_LARGEST_NMSE = 1.1  # The first round knows nothing and may lose its sum.

FLAGS = flags.FLAGS
flags.DEFINE_integer('dim', 100_000, 'Values in a client vector.', 1)
flags.DEFINE_integer('num_clients', 10, 'Clients in a round.', 1)
flags.DEFINE_integer('num_rounds', 3, 'Rounds.', 1)
flags.DEFINE_integer('modulus', 256, 'Modulus of the aggregator.', 2)
flags.DEFINE_bool('plain_sum', False, "TFF's SumFactory instead.")
flags.DEFINE_integer(
  'max_concurrent_clients', None, 'Clients that compute at a time.', 1
)
flags.DEFINE_string('output', None, 'JSON lines file to append to.')


def _peak_mib(pid: int) -> float:
  with open(f'/proc/{pid}/status') as f:
    for line in f:
      if line.startswith('VmHWM:'):
        return int(line.split()[1]) / 1024
  raise ValueError(f'/proc/{pid}/status must have VmHWM, found none.')


def main(argv):
  del argv  # Unused.
  factory = (
    tff.aggregators.SumFactory()
    if FLAGS.plain_sum
    else tas.AutotunedSecureSumFactory(modulus=FLAGS.modulus, seed=1)
  )
  tas.simulation.set_local_context(
    max_concurrent_clients=FLAGS.max_concurrent_clients
  )
  rng = np.random.default_rng(1)
  clients = [
    rng.standard_normal(FLAGS.dim, np.float32) for _ in range(FLAGS.num_clients)
  ]
  expected = np.zeros(FLAGS.dim)
  for client in clients:
    expected += client
  process = factory.create(tff.TensorType(np.float32, [FLAGS.dim]))
  state = process.initialize()
  before_mib = _peak_mib(os.getpid())
  seconds, errors = [], []
  for _ in range(FLAGS.num_rounds):
    start = time.monotonic()
    output = process.next(state, clients)
    seconds.append(round(time.monotonic() - start, 2))
    state = output.state
    error = np.sum((output.result - expected) ** 2, dtype=np.float64)
    errors.append(float(error / np.sum(expected**2)))
  (worker_pid,) = tas.simulation.worker_pids()
  row = dict(
    kind='memory',
    run='memory',
    aggregator='SumFactory' if FLAGS.plain_sum else 'autotuned',
    dim=FLAGS.dim,
    num_clients=FLAGS.num_clients,
    max_concurrent_clients=FLAGS.max_concurrent_clients,
    seconds=seconds,
    nmse=errors,
    data_mib=round(FLAGS.num_clients * FLAGS.dim * 4 / 2**20),
    python_before_rounds_mib=round(before_mib),
    python_peak_mib=round(_peak_mib(os.getpid())),
    worker_peak_mib=round(_peak_mib(worker_pid)),
    environment=result_rows.environment(),
  )
  print(json.dumps(row))
  if FLAGS.output:
    result_rows.ResultsFile(FLAGS.output).append(row)
  if max(errors) > _LARGEST_NMSE:
    raise ValueError(f'Errors must be at most {_LARGEST_NMSE}, found {errors}.')


if __name__ == '__main__':
  app.run(main)
