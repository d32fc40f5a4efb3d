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

import warnings

from tff_autotune_secagg import _tff_version

_tff_version.check_tff_version()

# pylint: disable=g-import-not-at-top,g-importing-member
from tff_autotune_secagg import simulation
from tff_autotune_secagg._version import __version__
from tff_autotune_secagg.aggregators import autotuned_secure_aggregator
from tff_autotune_secagg.aggregators import AutotunedSecureSumFactory
from tff_autotune_secagg.checkpoints import check_state
from tff_autotune_secagg.checkpoints import load_latest_state
from tff_autotune_secagg.distributed_dp import distributed_dp_aggregator
from tff_autotune_secagg.distributed_dp import distributed_dp_epsilon
from tff_autotune_secagg.distributed_dp import distributed_dp_event
from tff_autotune_secagg.distributed_dp import plan_distributed_dp_modulus
from tff_autotune_secagg.factories.encoding_stage import (
  QuantizeModEncodingStage,
)
from tff_autotune_secagg.factories.flatten import FlattenFactory
from tff_autotune_secagg.factories.mean import SecureMeanFactory
from tff_autotune_secagg.factories.mean import SecureUnweightedMeanFactory
from tff_autotune_secagg.factories.modular_sum import ExactModularSumFactory
from tff_autotune_secagg.factories.quantize_mod import QuantizeModFactory
from tff_autotune_secagg.factories.rotation import HadamardRotationFactory
from tff_autotune_secagg.metrics import round_measurements
from tff_autotune_secagg.numerics.modes import Decoding
from tff_autotune_secagg.numerics.modes import Rounding
from tff_autotune_secagg.numerics.tuning import FixedBinSize
from tff_autotune_secagg.numerics.tuning import Tuner
from tff_autotune_secagg.numerics.wrapped_normal_tuner import WrappedNormalTuner
from tff_autotune_secagg.planning import optimal_wrap_probability
from tff_autotune_secagg.planning import plan_modulus
from tff_autotune_secagg.planning import predicted_nmse
from tff_autotune_secagg.simulation import tensorflow_log as _tensorflow_log

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


def __getattr__(name):
  if name not in _RENAMED:
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
  warnings.warn(
    f'`{name}` is now `{_RENAMED[name]}`; the old name will be removed in 0.2.',
    DeprecationWarning,
    stacklevel=2,
  )
  return globals()[_RENAMED[name]]


# A secure sum in TFF's own default context then says which context it needs.
simulation.explain_missing_context()
_tensorflow_log.drop_unused_assertions_if_silenced()
