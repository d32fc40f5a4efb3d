# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""All that `tff_autotune_secagg` exports, which loads TensorFlow and TFF."""

from tff_autotune_secagg import simulation
from tff_autotune_secagg.aggregators import autotuned_secure_aggregator
from tff_autotune_secagg.aggregators import AutotunedSecureSumFactory
from tff_autotune_secagg.checkpoints import check_state
from tff_autotune_secagg.checkpoints import load_latest_state
from tff_autotune_secagg.distributed_dp import distributed_dp_aggregator
from tff_autotune_secagg.distributed_dp_planning import distributed_dp_epsilon
from tff_autotune_secagg.distributed_dp_planning import distributed_dp_event
from tff_autotune_secagg.distributed_dp_planning import (
  plan_distributed_dp_modulus,
)
from tff_autotune_secagg.encoding_stage import QuantizeModEncodingStage
from tff_autotune_secagg.factories.flatten import FlattenFactory
from tff_autotune_secagg.factories.mean import SecureMeanFactory
from tff_autotune_secagg.factories.mean import SecureUnweightedMeanFactory
from tff_autotune_secagg.factories.modular_sum import ExactModularSumFactory
from tff_autotune_secagg.factories.quantize_mod import QuantizeModFactory
from tff_autotune_secagg.factories.rotation import HadamardRotationFactory
from tff_autotune_secagg.metrics import round_measurements
from tff_autotune_secagg.modulus_planning import optimal_wrap_probability
from tff_autotune_secagg.modulus_planning import plan_modulus
from tff_autotune_secagg.modulus_planning import predicted_nmse
from tff_autotune_secagg.numerics.rounding.modes import Decoding
from tff_autotune_secagg.numerics.rounding.modes import Rounding
from tff_autotune_secagg.numerics.tuning.tuners import FixedBinSize
from tff_autotune_secagg.numerics.tuning.tuners import Tuner
from tff_autotune_secagg.numerics.tuning.wrapped_normal_tuner import (
  WrappedNormalTuner,
)
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

# A secure sum in TFF's own default context then says which context it needs.
simulation.explain_missing_context()
_tensorflow_log.drop_unused_assertions_if_silenced()
