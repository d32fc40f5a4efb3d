# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Prints how many bits and bytes a model and a cohort need, before training.

The command::

    tff-autotune-planner --num_values=1000000 --num_clients=100
    python -m tff_autotune_secagg.planner --num_clients=1000 --modulus=16
    python -m tff_autotune_secagg.planner --noise_multiplier=1,2,4
    python -m tff_autotune_secagg.planner --noise_multiplier=1 \
        --excess_error=0.05

The first is the command as pip installs it, the others the same in a checkout.
With `--modulus`, says whether that modulus would do; if not, the exit status is
1.
With `--noise_multiplier`, plans private rounds, of
`distributed_dp_aggregator`: epsilon, bits and noise; with `--excess_error` as
well, the fewest coordinates to send. Each plan refuses the
flags of the other.
"""

from collections.abc import Sequence
import math
import os
import sys
from typing import Any, Dict, List

from absl import flags

from tff_autotune_secagg import _checks
from tff_autotune_secagg import _command
from tff_autotune_secagg import _private_table
from tff_autotune_secagg.numerics.rounding import modes

Row = Dict[str, Any]

# How uncertain ln of the next sum's size is in trainings, see
# docs/how_many_bits.md.
_EVEN, _UNEVEN = 0.04, 0.4

# Flags that only one of the two plans reads.
_OF_PUBLIC_ROUNDS = ('targets', 'dither', 'modulus', 'prediction_gain')
_OF_PRIVATE_ROUNDS = (
  'min_clients',
  'num_rounds',
  'delta',
  'alignment',
  'excess_error',
)


def rows(
  num_values: int,
  num_clients: int,
  target_nmses: Sequence[float],
  rounding: modes.Rounding = modes.Rounding.STOCHASTIC,
  prediction_gain: float = 1.0,
) -> List[Row]:
  """Returns what each target error costs.

  Args:
    num_values: model size, 1 to 10**15.
    num_clients: clients summed in a round, 1 to 10**15.
    target_nmses: errors over the energy of the sum, in (0, 1).
    rounding: the clients' `Rounding`.
    prediction_gain: as in `predicted_nmse`; 1 without `predict_sum`.

  Returns:
    For each target: `target_nmse`, `modulus`, `bits`, `predicted_nmse`,
    `wrap_probability`, `nmse_of_even_clients` and `nmse_of_uneven_clients`
    (predicted for sums whose sizes are uncertain by e^0.04, as those of i.i.d.
    clients, and e^0.4), `bytes_per_client` (payload for one client and round),
    `bytes_as_floats` (32 bits for each value), `share_of_floats`, and
    `bits_without_wrapping` with `bytes_without_wrapping`: of modulus
    num_clients * (kappa - 1) + 1, where kappa is what one client alone needs
    for that error, so that no sum can leave the range. Independent clients
    need so many levels; of clients that are nearly equal fewer would do.

  Raises:
    TypeError, ValueError: an argument is of the wrong kind or out of range, or
      a target is out of reach.
  """
  from tff_autotune_secagg import modulus_planning  # Slow: it loads TensorFlow.
  from tff_autotune_secagg.numerics.rounding import quantization
  from tff_autotune_secagg.stages import rotate

  num_values = _checks.check_count('num_values', num_values)
  num_clients = _checks.check_count('num_clients', num_clients)
  width = rotate.width(num_values)
  found = []
  for target in target_nmses:
    target = _checks.check_float('target_nmse', target, above=0, below=1)
    modulus = modulus_planning.plan_modulus(
      num_clients,
      target,
      rounding=rounding,
      prediction_gain=prediction_gain,
    )
    options = dict(num_clients=num_clients, modulus=modulus, rounding=rounding)
    alone = modulus_planning.plan_modulus(1, target, rounding=rounding)
    bits = quantization.num_bits(modulus)
    more_bits = quantization.num_bits(
      quantization.sum_modulus(alone, num_clients)
    )
    predicted, even, uneven = (
      modulus_planning.predicted_nmse(
        prediction_gain=prediction_gain, **uncertainty, **options
      )
      for uncertainty in (
        {},
        dict(size_uncertainty=_EVEN),
        dict(size_uncertainty=_UNEVEN),
      )
    )
    num_bytes = quantization.payload_bytes(width, bits)
    found.append(
      dict(
        target_nmse=target,
        modulus=modulus,
        bits=bits,
        predicted_nmse=predicted,
        wrap_probability=modulus_planning.optimal_wrap_probability(**options),
        nmse_of_even_clients=even,
        nmse_of_uneven_clients=uneven,
        bytes_per_client=num_bytes,
        bytes_as_floats=4 * num_values,
        share_of_floats=num_bytes / (4 * num_values),
        bits_without_wrapping=more_bits,
        bytes_without_wrapping=quantization.payload_bytes(width, more_bits),
      )
    )
  return found


def smallest_modulus(
  num_clients: int,
  rounding: modes.Rounding = modes.Rounding.STOCHASTIC,
) -> int:
  """Returns the smallest power of two that is not refused for a cohort."""
  from tff_autotune_secagg import modulus_planning  # Slow: it loads TensorFlow.
  from tff_autotune_secagg.numerics.tuning import modulus_problems

  return modulus_planning.plan_modulus(
    num_clients, modulus_problems.MAX_PREDICTED_NMSE, rounding=rounding
  )


def format_table(found: Sequence[Row]) -> str:
  """Returns rows as text; bytes are for one client and round."""
  lines = [
    'target    bits  modulus     predicted  even       uneven     wrap      '
    ' bytes         share of   bits, bytes with',
    'NMSE                        NMSE       clients    clients    prob.     '
    '               32 bits    room for all',
  ]
  for row in found:
    lines.append(
      f'{row["target_nmse"]:<9g} {row["bits"]:<5d} {row["modulus"]:<11d}'
      f' {row["predicted_nmse"]:<10.2g} {row["nmse_of_even_clients"]:<10.2g}'
      f' {row["nmse_of_uneven_clients"]:<10.2g}'
      f' {row["wrap_probability"]:<10.1g}'
      f' {row["bytes_per_client"]:<13,d} {row["share_of_floats"]:<10.1%}'
      f' {row["bits_without_wrapping"]:<5d} {row["bytes_without_wrapping"]:,d}'
    )
  return '\n'.join(lines)


def define_flags() -> None:
  """Defines the flags of `main`."""
  flags.DEFINE_integer('num_values', 10**6, 'Size of the model.', lower_bound=1)
  flags.DEFINE_integer('num_clients', 10, 'Clients in a round.', lower_bound=1)
  flags.DEFINE_list(
    'targets',
    ['0.3', '0.1', '0.03', '0.01', '0.001', '0.0001'],
    'Errors (NMSE), each between 0 and 1.',
  )
  flags.DEFINE_bool('dither', False, 'Subtractive dither for the rounding.')
  flags.DEFINE_integer('modulus', None, 'A modulus to judge.')
  flags.DEFINE_float(
    'prediction_gain',
    1.0,
    'With `predict_sum`: squared size of what a prediction leaves of a sum over'
    ' that of the sum, as measured in rounds; docs/prediction.md has some.',
  )
  flags.DEFINE_list(
    'noise_multiplier',
    None,
    'Plans private rounds: noise multipliers z, such as 0.5,1,2,4,8.',
  )
  flags.DEFINE_integer(
    'min_clients',
    None,
    'Private: fewest honest noise shares in a released sum; by default all'
    ' clients.',
  )
  flags.DEFINE_list(
    'num_rounds',
    ['1', '10', '100'],
    'Private: rounds that one client takes part in.',
  )
  flags.DEFINE_float('delta', 1e-6, 'Private: of the whole training.')
  flags.DEFINE_float(
    'alignment',
    0.3,
    'Private: norm of the sum over that of as many parallel updates of full'
    ' length.',
  )
  flags.DEFINE_float(
    'excess_error',
    None,
    'Private: plans a sample of the coordinates that adds such a share to the'
    ' squared error of the noise, such as 0.05. By default all are sent.',
  )


def main(argv: Sequence[str]) -> None:
  """Prints what the flags ask for; exits with 1 if an argument will not do."""
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')  # Before TensorFlow.
  try:
    if len(argv) > 1:
      raise ValueError(
        f'Arguments must be flags like --name=value, found {argv[1]!r}.'
      )
    _check_that_all_are_used(flags.FLAGS)
    if flags.FLAGS.noise_multiplier is None:
      _print(flags.FLAGS)
    else:
      _print_private(flags.FLAGS)
  except ValueError as error:
    print(error, file=sys.stderr)
    sys.exit(1)


def _check_that_all_are_used(values):
  """Raises ValueError if a flag is given that the plan does not read."""
  is_private = values.noise_multiplier is not None
  for name in _OF_PUBLIC_ROUNDS if is_private else _OF_PRIVATE_ROUNDS:
    if values[name].present:
      found = f'found `--{name}={values[name].value}`'
      if is_private:
        raise ValueError(
          f'`--{name}` must be left out beside `--noise_multiplier`, {found}:'
          ' private rounds have their own modulus and noise.'
        )
      raise ValueError(
        f'`--{name}` must be given with `--noise_multiplier`, {found} alone: it'
        ' is of private rounds.'
      )


def _print(values):
  num_clients = values.num_clients
  rounding = (
    modes.Rounding.DITHER if values.dither else modes.Rounding.STOCHASTIC
  )
  # All that cannot work is said before the table.
  targets = [
    _checks.check_float('targets', target, above=0, below=1)
    for target in _numbers('targets', values.targets)
  ]
  if values.modulus is not None:
    _checks.check_modulus(values.modulus)
  gain = _checks.check_float(
    'prediction_gain', values.prediction_gain, above=0, at_most=1
  )
  print(f'{values.num_values:,d} values, {num_clients:,d} clients')
  found = rows(values.num_values, num_clients, targets, rounding, gain)
  print(format_table(found))
  if gain < 1:
    print(
      f'With `predict_sum`: the server reads {gain:g} of the squared sum, which'
      f' is worth {-math.log2(gain) / 2:.2f} bits. First rounds have all of it.'
    )
  print(
    f'Even and uneven clients: sums whose sizes are known to e^{_EVEN} and'
    f' e^{_UNEVEN}.\nRoom for all: no sum wraps, and each client has the levels'
    ' that one alone needs,\nas it must for this error if clients are'
    ' independent.'
  )
  smallest = smallest_modulus(num_clients, rounding)
  print(f'Smallest modulus that works at all: {smallest}')
  if values.modulus is None:
    return
  options = dict(
    modulus=values.modulus, num_clients=num_clients, rounding=rounding
  )
  import tff_autotune_secagg as autotune  # Slow: it loads TFF.

  autotune.AutotunedSecureSumFactory(**options)  # Refuses it if too small.
  error = autotune.predicted_nmse(prediction_gain=gain, **options)
  print(f'Modulus {values.modulus}: predicted NMSE {error:.2g}')


def _print_private(values):
  num_rounds = _numbers('num_rounds', values.num_rounds, int)
  _checks.check_int('num_clients', values.num_clients, minimum=2)
  # Slow: it loads TensorFlow.
  from tff_autotune_secagg import distributed_dp_planning

  found = distributed_dp_planning.rows(
    num_values=values.num_values,
    num_clients=values.num_clients,
    min_clients=(
      values.num_clients if values.min_clients is None else values.min_clients
    ),
    noise_multipliers=_numbers('noise_multiplier', values.noise_multiplier),
    num_rounds=num_rounds,
    delta=values.delta,
    alignment=values.alignment,
    excess_error=values.excess_error,
  )
  print(_private_table.format_rows(found, num_rounds))


def _numbers(name: str, texts: Sequence[str], kind=float) -> List[Any]:
  """Returns the numbers that a flag lists."""
  numbers = []
  for text in texts:
    try:
      numbers.append(kind(text))
    except ValueError:
      raise ValueError(
        f'`{name}` must be numbers, separated by commas, found {text!r}.'
      ) from None
  if not numbers:
    raise ValueError(f'`{name}` must be at least one number, found none.')
  return numbers


def run() -> None:
  """The command `tff-autotune-planner`."""
  before = set(flags.FLAGS)
  define_flags()
  _command.run(main, sorted(set(flags.FLAGS) - before))


if __name__ == '__main__':
  run()
