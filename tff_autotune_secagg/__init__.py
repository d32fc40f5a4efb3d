# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Autotuned, communication-efficient secure aggregation for TFF.

What happens to a client's value::

    value (any structure of float tensors)
      | FlattenFactory             one vector
      | HadamardRotationFactory    coordinates look normal
      | QuantizeModFactory         bins of a tuned size, residues modulo k
      | ExactModularSumFactory     TFF's secure modular sum
    sum of the structure; its standard deviation sets the next bin size

`autotuned_secure_aggregator()` is the whole of it, ready for
`model_aggregator=` of `tff.learning.algorithms.build_weighted_fed_avg`.

Glossary, with the symbols of Bonawitz et al. (2019, arXiv:1912.00131)::

    modulus            k      residues are 0 .. k - 1
    bin_size           b      units of the coordinates per bin
    period             k b    sums this far apart have the same residue
    wrap_probability   alpha  share of coordinates outside half a period
    num_clients        n      clients summed in a round
    dim, padded dim    d, D   coordinates before and after padding
    sum_stddev         sigma  root mean square of the rotated sum's coordinates
    nmse                      squared norm of the error over that of the sum
    stripe                    coordinates with the same index modulo 16
    ladder                    a bin size for each of the sixteen stripes, each 8
                              times the one before; calibration rounds use it
    blind                     a sum whose residues look uniform and so tell
                              nothing: decoded to 0; the next round calibrates
    versine                   1 - cos of a residue's angle on the circle; the
                              standard deviation is read off its mean
"""

import importlib

from tff_autotune_secagg import _tff_version

_tff_version.check_tff_version()

# Each public name and the module that has it; some are modules themselves.
# `__init__.pyi` says the same to type checkers.
_MODULES = {
  'AutotunedSecureSumFactory': 'aggregators',
  'Decoding': 'numerics.rounding.modes',
  'ExactModularSumFactory': 'factories.modular_sum',
  'FixedBinSize': 'numerics.tuning.tuners',
  'FlattenFactory': 'factories.flatten',
  'HadamardRotationFactory': 'factories.rotation',
  'QuantizeModEncodingStage': 'encoding_stage',
  'QuantizeModFactory': 'factories.quantize_mod',
  'Rounding': 'numerics.rounding.modes',
  'SecureMeanFactory': 'factories.mean',
  'SecureUnweightedMeanFactory': 'factories.mean',
  'Tuner': 'numerics.tuning.tuners',
  'WrappedNormalTuner': 'numerics.tuning.wrapped_normal_tuner',
  '__version__': '_version',
  'autotuned_secure_aggregator': 'aggregators',
  'check_state': 'programs.checkpoints',
  'distributed_dp_aggregator': 'distributed_dp',
  'distributed_dp_epsilon': 'distributed_dp_planning',
  'distributed_dp_event': 'distributed_dp_planning',
  'drop_metrics': 'metrics',
  'learned_size': 'warm_start',
  'load_latest_state': 'programs.checkpoints',
  'low_bit_model_distributor': 'model_distributor',
  'optimal_wrap_probability': 'modulus_planning',
  'plan_distributed_dp_modulus': 'distributed_dp_planning',
  'plan_modulus': 'modulus_planning',
  'plan_sampled_fraction': 'distributed_dp_planning',
  'predicted_nmse': 'modulus_planning',
  'programs': 'programs',
  'round_measurements': 'metrics',
  'simulation': 'simulation',
  'tuning': 'tuning',
}

__all__ = sorted(_MODULES)


def __getattr__(name):
  """Loads the module of a public name when the name is asked for.

  TFF takes seconds to load: the commands of this package can so answer `--help`
  and a wrong flag at once.
  """
  if name not in _MODULES:
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
  module = importlib.import_module(f'{__name__}.{_MODULES[name]}')
  value = module if _MODULES[name] == name else getattr(module, name)
  globals()[name] = value
  return value


def __dir__():
  return sorted(set(globals()) | set(__all__))
