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
import sys
import typing
import warnings

from tff_autotune_secagg import _tff_version
from tff_autotune_secagg._version import __version__

_tff_version.check_tff_version()

if typing.TYPE_CHECKING:
  from tff_autotune_secagg._public import *

__all__ = [
  'AutotunedSecureSumFactory',
  'Decoding',
  'ExactModularSumFactory',
  'FixedBinSize',
  'FlattenFactory',
  'HadamardRotationFactory',
  'QuantizeModEncodingStage',
  'QuantizeModFactory',
  'Rounding',
  'SecureMeanFactory',
  'SecureUnweightedMeanFactory',
  'Tuner',
  'WrappedNormalTuner',
  '__version__',
  'autotuned_secure_aggregator',
  'check_state',
  'distributed_dp_aggregator',
  'distributed_dp_epsilon',
  'distributed_dp_event',
  'load_latest_state',
  'optimal_wrap_probability',
  'plan_distributed_dp_modulus',
  'plan_modulus',
  'predicted_nmse',
  'round_measurements',
  'simulation',
]

# Former names, which warn until 0.2.
_RENAMED = {'ModularSecureSumFactory': 'ExactModularSumFactory'}


def _load():
  public = importlib.import_module(f'{__name__}._public')
  globals().update({name: getattr(public, name) for name in public.__all__})


def __getattr__(name):
  """Loads TFF and all that is exported when the first name is asked for.

  The commands of this package can so answer `--help` and a wrong flag at once.
  """
  if name in _RENAMED:
    warnings.warn(
      f'`{name}` is now `{_RENAMED[name]}`; the old name will be removed in'
      ' 0.2.',
      DeprecationWarning,
      stacklevel=2,
    )
    return getattr(importlib.import_module(__name__), _RENAMED[name])
  if name not in __all__:
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
  _load()
  return globals()[name]


def __dir__():
  return sorted(set(globals()) | set(__all__))


if 'tensorflow_federated' in sys.modules:
  # There is no wait to be saved, and a secure sum in TFF's own default context
  # is to say from now on which context it needs.
  _load()
