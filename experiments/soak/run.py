# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Soaks the aggregator: thousands of rounds of faults, each one checked.

Appends a row for every 50 rounds to --results and continues there when it was
interrupted. Exits with status 1 if a round broke a claim.

  python -m experiments.soak.run --num_rounds=5000
"""

import json

from absl import flags

from experiments.common import command_line
from experiments.common import flag_groups
from experiments.soak import script

FLAGS = flags.FLAGS
flag_groups.define_fields(
  script.Config,
  num_rounds='Rounds of the script.',
  dim='Entries of a client vector.',
  dither='Round by dither.',
)
flag_groups.define_fields(
  script.Config, at_least=2, modulus='Modulus of the aggregator.'
)
flag_groups.define_fields(script.Config, at_least=0, seed='Seed of everything.')
flag_groups.define_results('results/soak.jsonl')
flag_groups.define_smoke()


def main():
  config = flag_groups.read_fields(script.Config, smoke=script.SMOKE)
  with flag_groups.held_results(is_required=True) as file:
    return _run(config, file)


def _run(config, file):
  from experiments.soak import soak
  from tff_autotune_secagg import simulation

  simulation.set_local_context()
  with command_line.user_errors():
    soak.check(config)
  for row in soak.run_to_file(config, file):
    print(
      f'round {row["round"]}: {len(row["violations"])} violations, '
      f'{row["python_mib"]} + {row["worker_mib"]} MiB',
      flush=True,
    )
  summary = soak.summarize(soak.rows_of(config, file))
  print(json.dumps(summary, indent=2))
  return 1 if summary['violations'] else 0


if __name__ == '__main__':
  command_line.run(
    main,
    on_interrupt='Interrupted. The same command continues from there.',
  )
