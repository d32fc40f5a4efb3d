# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Autotuned, communication-efficient secure aggregation for TFF.

    value (any structure of float tensors)
      | FlattenFactory             one vector
      | HadamardRotationFactory    entries look normal
      | QuantizeModFactory         bins of a tuned size, residues modulo k
      | ModularSecureSumFactory    TFF's secure modular sum
    sum of the structure; its spread sets the next bin size

`autotuned_secure_aggregator()` is the whole of it, ready for
`model_aggregator=` of `tff.learning.algorithms.build_weighted_fed_avg`.

Glossary, with the symbols of Bonawitz et al. (2019, arXiv:1912.00131):

    modulus            k      residues are 0 .. k - 1
    bin_size           b      units of the values per bin
    wrap_probability   alpha  share of entries outside half a period k b
    num_clients        n      clients summed in a round
    dim, padded dim    d, D   entries before and after the rotation's padding
    sum_stddev         sigma  root mean square of an entry of the rotated sum
    nmse                      energy of the error over energy of the true sum
"""

from tff_autotune_secagg import _tff_version

_tff_version.check_tff_version()

# pylint: disable=g-import-not-at-top,g-importing-member
from tff_autotune_secagg import simulation
from tff_autotune_secagg._version import __version__
from tff_autotune_secagg.aggregators import autotuned_secure_aggregator
from tff_autotune_secagg.aggregators import AutotunedSecureSumFactory
from tff_autotune_secagg.checkpoints import check_state
from tff_autotune_secagg.checkpoints import load_latest_state
from tff_autotune_secagg.factories.encoding_stage import (
  QuantizeModEncodingStage,
)
from tff_autotune_secagg.factories.flatten import FlattenFactory
from tff_autotune_secagg.factories.mean import SecureMeanFactory
from tff_autotune_secagg.factories.mean import SecureUnweightedMeanFactory
from tff_autotune_secagg.factories.modular_sum import ModularSecureSumFactory
from tff_autotune_secagg.factories.quantize_mod import QuantizeModFactory
from tff_autotune_secagg.factories.rotation import HadamardRotationFactory
from tff_autotune_secagg.numerics.quantization import Decoding
from tff_autotune_secagg.numerics.quantization import Rounding
from tff_autotune_secagg.numerics.tuning import WrappedNormalTuner
from tff_autotune_secagg.planning import optimal_wrap_probability
from tff_autotune_secagg.planning import plan_modulus
from tff_autotune_secagg.planning import predicted_nmse

__all__ = [
  'AutotunedSecureSumFactory',
  'Decoding',
  'FlattenFactory',
  'HadamardRotationFactory',
  'ModularSecureSumFactory',
  'QuantizeModEncodingStage',
  'QuantizeModFactory',
  'Rounding',
  'SecureMeanFactory',
  'SecureUnweightedMeanFactory',
  'WrappedNormalTuner',
  '__version__',
  'autotuned_secure_aggregator',
  'check_state',
  'load_latest_state',
  'optimal_wrap_probability',
  'plan_modulus',
  'predicted_nmse',
  'simulation',
]

# A secure sum in TFF's own default context then says which context it needs.
simulation.explain_missing_context()
