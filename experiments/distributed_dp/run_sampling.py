# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Measures the error of private means of which a sample is sent.

Appends to --results, leaving out what is there already, and prints the table.

  python -m experiments.distributed_dp.run_sampling --results=OUT.jsonl \
      --flagfile=experiments/distributed_dp/configs/distributed_dp_sampled.flags
"""

from absl import flags

from experiments.common import command_line
from experiments.common import flag_groups

FLAGS = flags.FLAGS
flag_groups.define_numbers('cohorts', [100, 1000], 'Clients in a round.', 2)
flag_groups.define_numbers(
  'common', [0.3, 0.1], 'Of each cohort: what its updates share of a norm.'
)
flag_groups.define_numbers('noise_multipliers', [0.5, 1.0, 2.0], 'z.', 0)
flag_groups.define_numbers(
  'sampled_fractions', [1.0, 0.25, 0.125, 0.0625], 'Shares that are sent.', 0
)
flag_groups.define_numbers('seeds', [1, 2, 3], 'One mean for each.')
flags.DEFINE_integer('dim', 2**15, 'Entries of a vector.', 1024)
flag_groups.define_results()
flag_groups.define_smoke()
_RUN = 'distributed_dp_sampled'
_SMOKE = dict(
  cohorts=[5],
  common=[0.5],
  dim=2048,
  noise_multipliers=[1.0],
  sampled_fractions=[1.0, 0.5],
  seeds=[1, 2],
)


def main():
  with flag_groups.held_results(is_required=True) as file:
    _run(file)


def _run(file):
  values = {**FLAGS.flag_values_dict(), **flag_groups.smoke_values(_SMOKE)}
  from experiments.distributed_dp import sampling
  from tff_autotune_secagg import simulation

  with command_line.user_errors():
    names = ('cohorts', 'common', 'noise_multipliers', 'sampled_fractions')
    wanted = list(
      sampling.cells(
        *(values[name] for name in names), values['seeds'], dim=values['dim']
      )
    )
    sampling.check(wanted)
  simulation.set_local_context()
  for row in file.store_missing(_RUN, wanted, sampling.run):
    print(sampling.format_row(row), flush=True)
  rows = [row for row in file.rows() if row['kind'] == 'round']
  print(sampling.format_table([row for row in rows if row['run'] == _RUN]))


if __name__ == '__main__':
  command_line.run(
    main,
    on_interrupt='Interrupted. The same command continues from there.',
  )
