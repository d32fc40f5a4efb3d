# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
# What type checkers see of the package, as `__init__.py` loads it by name.

from tff_autotune_secagg import programs as programs
from tff_autotune_secagg import simulation as simulation
from tff_autotune_secagg import tuning as tuning
from tff_autotune_secagg._version import __version__ as __version__
from tff_autotune_secagg.aggregators import (
  autotuned_secure_aggregator as autotuned_secure_aggregator,
)
from tff_autotune_secagg.aggregators import (
  AutotunedSecureSumFactory as AutotunedSecureSumFactory,
)
from tff_autotune_secagg.distributed_dp import (
  distributed_dp_aggregator as distributed_dp_aggregator,
)
from tff_autotune_secagg.distributed_dp_planning import (
  distributed_dp_epsilon as distributed_dp_epsilon,
)
from tff_autotune_secagg.distributed_dp_planning import (
  distributed_dp_event as distributed_dp_event,
)
from tff_autotune_secagg.distributed_dp_planning import (
  plan_distributed_dp_modulus as plan_distributed_dp_modulus,
)
from tff_autotune_secagg.distributed_dp_planning import (
  plan_sampled_fraction as plan_sampled_fraction,
)
from tff_autotune_secagg.encoding_stage import (
  QuantizeModEncodingStage as QuantizeModEncodingStage,
)
from tff_autotune_secagg.factories.flatten import (
  FlattenFactory as FlattenFactory,
)
from tff_autotune_secagg.factories.mean import (
  SecureMeanFactory as SecureMeanFactory,
)
from tff_autotune_secagg.factories.mean import (
  SecureUnweightedMeanFactory as SecureUnweightedMeanFactory,
)
from tff_autotune_secagg.factories.modular_sum import (
  ExactModularSumFactory as ExactModularSumFactory,
)
from tff_autotune_secagg.factories.quantize_mod import (
  QuantizeModFactory as QuantizeModFactory,
)
from tff_autotune_secagg.factories.rotation import (
  HadamardRotationFactory as HadamardRotationFactory,
)
from tff_autotune_secagg.metrics import drop_metrics as drop_metrics
from tff_autotune_secagg.metrics import round_measurements as round_measurements
from tff_autotune_secagg.model_distributor import (
  low_bit_model_distributor as low_bit_model_distributor,
)
from tff_autotune_secagg.modulus_planning import (
  optimal_wrap_probability as optimal_wrap_probability,
)
from tff_autotune_secagg.modulus_planning import plan_modulus as plan_modulus
from tff_autotune_secagg.modulus_planning import (
  predicted_nmse as predicted_nmse,
)
from tff_autotune_secagg.numerics.rounding.modes import Decoding as Decoding
from tff_autotune_secagg.numerics.rounding.modes import Rounding as Rounding
from tff_autotune_secagg.numerics.tuning.tuners import (
  FixedBinSize as FixedBinSize,
)
from tff_autotune_secagg.numerics.tuning.tuners import Tuner as Tuner
from tff_autotune_secagg.numerics.tuning.wrapped_normal_tuner import (
  WrappedNormalTuner as WrappedNormalTuner,
)
from tff_autotune_secagg.programs.checkpoints import check_state as check_state
from tff_autotune_secagg.programs.checkpoints import (
  load_latest_state as load_latest_state,
)
from tff_autotune_secagg.warm_start import learned_size as learned_size
