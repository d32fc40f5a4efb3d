# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Measures the peak memory and the error of a few rounds of one sum.

One aggregator in each process, since a peak cannot be taken back:

  python -m experiments.benchmark.run_memory --dim=10000000 --num_clients=4
  python -m experiments.benchmark.run_memory --dim=10000000 --num_clients=4 \
      --aggregator=sum
"""

import dataclasses
import json

from absl import flags

from experiments.benchmark import memory
from experiments.common import command_line
from experiments.common import flag_groups
from experiments.common import results_file

FLAGS = flags.FLAGS
flag_groups.define_fields(
  memory.Config,
  dim="Values in a client's vector.",
  num_clients='Clients in a round.',
  num_rounds='Rounds.',
)
flag_groups.define_fields(
  memory.Config, at_least=2, modulus='Modulus of the aggregator.'
)
flags.DEFINE_enum(
  'aggregator', 'autotuned', list(memory.AGGREGATORS), 'What to measure.'
)
flags.DEFINE_integer(
  'max_concurrent_clients', None, 'Clients that compute at a time.', 1
)
flag_groups.define_results()
flag_groups.define_smoke()


def main():
  config = flag_groups.read_fields(memory.Config, smoke=memory.SMOKE)
  with flag_groups.held_results() as file:
    _run(config, file)


def _run(config, file):
  with command_line.user_errors():
    memory.build(config)
  settings = dataclasses.asdict(config)
  run = results_file.run_name(
    dict(settings, aggregator=f'memory_{config.aggregator}')
  )
  rows = [memory.measure(config)]
  for row in file.store(run, settings, rows, kind='memory'):
    print(json.dumps(row))


if __name__ == '__main__':
  command_line.run(main)
