# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every public argument with everything that it is not: an error at once.

The error names the argument, the rule and what was found. Exact wordings are in
`checks_test`; here the point is that no argument is left out, which the first
test proves from the signatures.
"""

import decimal
import fractions
import inspect

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow_federated as tff

import tff_autotune_secagg as autotune
from tff_autotune_secagg import planner

_INNER = autotune.ExactModularSumFactory(modulus=256)
_WEIGHTED = tff.aggregators.MeanFactory()

# Bad values by kind. A number that is too large for a float must not raise an
# OverflowError instead.
_NOT_INT = (1.5, 2.0, '8', None, True, np.True_, [256], np.array([2, 3]), 8j)
_NOT_FLOAT = ('1', None, True, np.True_, [0.5], 1j, np.array([0.5, 0.5]))
_NOT_BOOL = (1, 0, 'True', None, np.array([True]))
_NOT_ENUM = ('stochastic', 1, None, True)
_NOT_UNWEIGHTED = (None, 256, 'sum', _WEIGHTED, autotune.ExactModularSumFactory)
_NOT_TUNER = (None, 256, 0.1, 'tuner', autotune.WrappedNormalTuner)
_NOT_FINITE = (np.nan, np.inf, -np.inf)

# (wrong kinds, wrong values) of each argument.
_MODULUS = (_NOT_INT, (1, 0, -1, -256, 2**30 + 1, 2**64, 10**400))
_COUNT = (_NOT_INT, (0, -1, -(10**30), 10**15 + 1, 10**400))
_OPTIONAL_COUNT = (
  tuple(v for v in _NOT_INT if v is not None),
  (0, -5, 10**400),
)
_WRAP_PROBABILITY = (
  tuple(v for v in _NOT_FLOAT if v is not None),
  (0, 0.0, 1, 1.0, -0.1, 2, 10**400, fractions.Fraction(3, 2)) + _NOT_FINITE,
)
_GAIN = (_NOT_FLOAT, (0, 1.5, -0.1, 10**400) + _NOT_FINITE)
_UNCERTAINTY = (_NOT_FLOAT, (-0.1, 2.1, 10**400, -(10**400)) + _NOT_FINITE)
_SEED = (tuple(v for v in _NOT_INT if v is not None), (-1, 2**63, 10**400))
_ROTATIONS = (_NOT_INT, (0, -1, 9, 10**400))
_ENUM = (_NOT_ENUM, ())
_BOOL = (_NOT_BOOL, ())
_INNER_FACTORY = (_NOT_UNWEIGHTED, ())
_NOISE_MULTIPLIER = (
  _NOT_FLOAT,
  (0, 0.0, -1.0, 1e-5, 1001, 10**400) + _NOT_FINITE,
)
_SHARE = (_NOT_FLOAT, (0, 0.0, -0.1, 1.1, 10**400) + _NOT_FINITE)
_MIN_CLIENTS = (_NOT_INT, (1, 0, -5, 2**20 + 1, 10**400))
_NUM_ROUNDS = (_NOT_INT, (0, -1, 10**400))
_FUNCTION = ((3, 'seed', [len]), ())
_SHORT_ROUNDS = (
  (3, '5', [(5, 1)]),
  (),
)  # Members: distributed_dp_planning_test.

_TUNING = dict(
  wrap_probability=_WRAP_PROBABILITY,
  rounding=_ENUM,
  decoding=_ENUM,
)
_EXPECTED_SIZE = (
  tuple(v for v in _NOT_FLOAT if v is not None),
  (0, 0.0, -1.0, 1e-31, 1e31, 10**400) + _NOT_FINITE,
)
_AGGREGATOR = dict(
  _TUNING,
  expected_size=_EXPECTED_SIZE,
  modulus=_MODULUS,
  num_clients=_OPTIONAL_COUNT,
  num_rotations=_ROTATIONS,
  predict_sum=_BOOL,
  seed=_SEED,
)


class _TunerOfAUser(autotune.Tuner):
  """Leaves the arguments to the class it is derived from."""

  def initial_state(self):
    return None

  def bin_sizes(self, state):
    return None

  def next_state(self, state, fitted, num_clients):
    return None


# Each public callable: arguments that are right, and what each one must refuse.
_CALLABLES = {
  'AutotunedSecureSumFactory': (
    autotune.AutotunedSecureSumFactory,
    dict(modulus=256),
    _AGGREGATOR,
  ),
  'FlattenFactory': (
    autotune.FlattenFactory,
    dict(inner_factory=_INNER),
    dict(inner_factory=_INNER_FACTORY),
  ),
  'HadamardRotationFactory': (
    autotune.HadamardRotationFactory,
    dict(inner_factory=_INNER),
    dict(
      inner_factory=_INNER_FACTORY,
      num_rotations=_ROTATIONS,
      min_dim=_COUNT,
      seed=_SEED,
    ),
  ),
  'ExactModularSumFactory': (
    autotune.ExactModularSumFactory,
    dict(modulus=256),
    dict(modulus=_MODULUS),
  ),
  'FixedBinSize': (
    autotune.FixedBinSize,
    dict(bin_size=0.1, modulus=256),
    dict(
      bin_size=(_NOT_FLOAT, (0, 0.0, -1.0, 1e-31, 1e31, 10**400) + _NOT_FINITE),
      modulus=_MODULUS,
      rounding=_ENUM,
      decoding=_ENUM,
    ),
  ),
  'QuantizeModFactory': (
    autotune.QuantizeModFactory,
    dict(
      inner_factory=_INNER,
      tuner=autotune.FixedBinSize(bin_size=0.1, modulus=256),
    ),
    dict(inner_factory=_INNER_FACTORY, tuner=(_NOT_TUNER, ()), seed=_SEED),
  ),
  'SecureMeanFactory': (
    autotune.SecureMeanFactory,
    dict(value_sum_factory=_INNER),
    dict(value_sum_factory=_INNER_FACTORY),
  ),
  'SecureUnweightedMeanFactory': (
    autotune.SecureUnweightedMeanFactory,
    dict(value_sum_factory=_INNER),
    dict(value_sum_factory=_INNER_FACTORY),
  ),
  'Tuner': (
    _TunerOfAUser,
    dict(modulus=256),
    dict(modulus=_MODULUS, rounding=_ENUM, decoding=_ENUM),
  ),
  'WrappedNormalTuner': (
    autotune.WrappedNormalTuner,
    dict(modulus=256),
    dict(
      _TUNING,
      expected_size=_EXPECTED_SIZE,
      modulus=_MODULUS,
      num_clients=_OPTIONAL_COUNT,
    ),
  ),
  'autotuned_secure_aggregator': (
    autotune.autotuned_secure_aggregator,
    dict(),
    dict(_AGGREGATOR, zeroing=_BOOL, clipping=_BOOL, weighted=_BOOL),
  ),
  'distributed_dp_aggregator': (
    autotune.distributed_dp_aggregator,
    dict(noise_multiplier=1.0, min_clients=10),
    dict(
      noise_multiplier=_NOISE_MULTIPLIER,
      min_clients=_MIN_CLIENTS,
      l2_norm_clip=(
        tuple(v for v in _NOT_FLOAT if v is not None),
        (0, 0.0, -1.0, 1e-16, 1e16, 10**400) + _NOT_FINITE,
      ),
      modulus=(tuple(v for v in _NOT_INT if v is not None), _MODULUS[1]),
      expected_clients=(
        tuple(v for v in _NOT_INT if v is not None),
        (9, 0, -1, 2**20 + 1),
      ),
      seed=_SEED,
      client_seed_fn=_FUNCTION,
      sampled_fraction=_SHARE,
      allow_guessable_noise=_BOOL,
    ),
  ),
  'distributed_dp_epsilon': (
    autotune.distributed_dp_epsilon,
    dict(
      noise_multiplier=1.0, min_clients=10, num_rounds=5, dim=100, delta=1e-5
    ),
    dict(
      noise_multiplier=_NOISE_MULTIPLIER,
      min_clients=_MIN_CLIENTS,
      num_rounds=_NUM_ROUNDS,
      dim=_COUNT,
      delta=(_NOT_FLOAT, (0, 1, 1.5, -0.1, 10**400) + _NOT_FINITE),
      gaussian_epsilon_fn=_FUNCTION,
      num_short_rounds=_SHORT_ROUNDS,
    ),
  ),
  'distributed_dp_event': (
    autotune.distributed_dp_event,
    dict(noise_multiplier=1.0, min_clients=10, num_rounds=5, dim=100),
    dict(
      noise_multiplier=_NOISE_MULTIPLIER,
      min_clients=_MIN_CLIENTS,
      num_rounds=_NUM_ROUNDS,
      dim=_COUNT,
      num_short_rounds=_SHORT_ROUNDS,
    ),
  ),
  'optimal_wrap_probability': (
    autotune.optimal_wrap_probability,
    dict(num_clients=10, modulus=256),
    dict(
      num_clients=_COUNT,
      modulus=_MODULUS,
      rounding=_ENUM,
      decoding=_ENUM,
      size_uncertainty=_UNCERTAINTY,
    ),
  ),
  'QuantizeModEncodingStage': (
    autotune.QuantizeModEncodingStage,
    dict(modulus=256, bin_size=0.5),
    dict(
      modulus=_MODULUS,
      bin_size=(_NOT_FLOAT, (0, 0.0, -1.0, 10**400) + _NOT_FINITE),
    ),
  ),
  'plan_distributed_dp_modulus': (
    autotune.plan_distributed_dp_modulus,
    dict(num_clients=10, noise_multiplier=1.0, min_clients=10, dim=100),
    dict(
      num_clients=(_NOT_INT, (9, 0, -1)),
      noise_multiplier=_NOISE_MULTIPLIER,
      min_clients=_MIN_CLIENTS,
      dim=_COUNT,
      alignment=(_NOT_FLOAT, (-0.1, 1.1, 10**400) + _NOT_FINITE),
      sampled_fraction=_SHARE,
    ),
  ),
  'plan_sampled_fraction': (
    autotune.plan_sampled_fraction,
    dict(num_clients=10, noise_multiplier=1.0, dim=100, alignment=0.5),
    dict(
      num_clients=(_NOT_INT, (1, 0, -1)),
      noise_multiplier=_NOISE_MULTIPLIER,
      dim=_COUNT,
      alignment=_SHARE,
      excess_error=_SHARE,
    ),
  ),
  'plan_modulus': (
    autotune.plan_modulus,
    dict(num_clients=10, target_nmse=0.01),
    dict(
      _TUNING,
      num_clients=_COUNT,
      size_uncertainty=_UNCERTAINTY,
      target_nmse=(_NOT_FLOAT, (0, 1, 1.5, -0.1, 10**400) + _NOT_FINITE),
      prediction_gain=_GAIN,
    ),
  ),
  'predicted_nmse': (
    autotune.predicted_nmse,
    dict(num_clients=10, modulus=256),
    dict(
      _TUNING,
      num_clients=_COUNT,
      modulus=_MODULUS,
      size_uncertainty=_UNCERTAINTY,
      prediction_gain=_GAIN,
    ),
  ),
}
# Public names with tests of their arguments elsewhere, or with none.
_ELSEWHERE = {
  'Decoding',
  'Rounding',
  '__version__',
  'check_state',
  'drop_metrics',
  'learned_size',
  'load_latest_state',
  'low_bit_model_distributor',
  'programs',
  'round_measurements',
  'simulation',
  'tuning',
}


def _cases():
  for name, (_, _, arguments) in sorted(_CALLABLES.items()):
    for argument in sorted(arguments):
      yield f'{name}_{argument}', name, argument


class BadArgumentsTest(parameterized.TestCase):
  def test_every_public_argument_is_here(self):
    self.assertEqual(set(autotune.__all__), set(_CALLABLES) | _ELSEWHERE)
    for name, (function, _, arguments) in _CALLABLES.items():
      with self.subTest(name):
        self.assertEqual(
          set(inspect.signature(function).parameters),
          set(arguments),
        )

  @parameterized.named_parameters(*_cases())
  def test_is_refused(self, name, argument):
    function, right, arguments = _CALLABLES[name]
    function(**right)
    kinds, values = arguments[argument]
    for error, bad_values in ((TypeError, kinds), (ValueError, values)):
      for bad in bad_values:
        with self.subTest(f'{bad!r}'[:40]):
          with self.assertRaises(error) as caught:
            function(**dict(right, **{argument: bad}))
          message = str(caught.exception)
          self.assertRegex(
            message,
            rf'^`{argument}` must .+, found [^`]+ \({type(bad).__name__}\)\.',
          )
          self.assertLess(len(message), 400)

  def test_numbers_of_every_kind_are_used_as_the_floats_that_they_are(self):
    private = dict(noise_multiplier=1.0, min_clients=10)
    epsilon = dict(private, num_rounds=3, dim=50, delta=2**-8)
    for function, right, names in (
      (autotune.plan_modulus, dict(num_clients=10), ('target_nmse',)),
      (
        autotune.predicted_nmse,
        dict(num_clients=10, modulus=256),
        ('wrap_probability', 'size_uncertainty'),
      ),
      (autotune.distributed_dp_epsilon, epsilon, ('delta', 'noise_multiplier')),
      (
        lambda **given: (
          autotune.WrappedNormalTuner(modulus=256, **given).wrap_probability
        ),
        {},
        ('wrap_probability',),
      ),
      # The modulus is judged for it here, and not in the tuner alone.
      (
        lambda **given: type(
          autotune.autotuned_secure_aggregator(num_clients=10, **given)
        ),
        {},
        ('wrap_probability', 'expected_size'),
      ),
      (
        lambda target_nmse: planner.rows(10, 10, [target_nmse]),
        {},
        ('target_nmse',),
      ),
    ):
      for name in names:
        expected = function(**dict(right, **{name: 2**-8}))
        for kind in (
          fractions.Fraction,
          decimal.Decimal,
          np.float16,
          np.float32,
          np.longdouble,
        ):
          with self.subTest(f'{name} {kind.__name__}'):
            found = function(**dict(right, **{name: kind(2**-8)}))
            self.assertEqual(found, expected)
            self.assertIs(type(found), type(expected))

  def test_a_modulus_too_small_for_the_clients_is_refused_with_one_that_does(
    self,
  ):
    for function, rounding in (
      (autotune.AutotunedSecureSumFactory, autotune.Rounding.STOCHASTIC),
      (autotune.autotuned_secure_aggregator, autotune.Rounding.DITHER),
    ):
      with self.assertRaisesRegex(
        ValueError,
        r'^`modulus` 4 is too small for `num_clients` 200: .+\. Raise'
        r' `modulus` to \d+ or more, or lower `num_clients`\. If 4 was meant in'
        r' bits, write `modulus=2\*\*4`\.$',
      ) as caught:
        function(modulus=4, num_clients=200, rounding=rounding)
      # What is proposed is taken.
      proposed = int(str(caught.exception).split('to ')[1].split(' ')[0])
      function(modulus=proposed, num_clients=200, rounding=rounding)

  def test_a_modulus_that_may_be_meant_in_bits_is_refused_with_its_power(self):
    hint = r' If 8 was meant in bits, write `modulus=2\*\*8`\.$'
    private = dict(noise_multiplier=1.0, min_clients=100)
    with self.assertRaisesRegex(ValueError, hint):
      autotune.autotuned_secure_aggregator(modulus=8, num_clients=100)
    with self.assertRaisesRegex(ValueError, hint):
      autotune.distributed_dp_aggregator(modulus=8, **private)
    with self.assertRaisesRegex(ValueError, r'Raise `modulus`, [^.]+\.$'):
      autotune.distributed_dp_aggregator(modulus=64, **private)

  def test_bits_lead_to_the_modulus_wherever_there_is_one(self):
    num_found = 0
    for name, (function, right, arguments) in _CALLABLES.items():
      if 'modulus' in arguments:
        num_found += 1
        with self.subTest(name):
          right = {key: right[key] for key in right if key != 'modulus'}
          with self.assertRaisesWithLiteralMatch(
            TypeError,
            '`bits` must be given as `modulus=2**8`, found 8 (int).',
          ):
            function(**right, bits=8)
    self.assertGreaterEqual(num_found, 9)
    with self.assertRaisesWithLiteralMatch(
      TypeError,
      "`bits` must be given as `modulus=2**bits`, found '8' (str).",
    ):
      autotune.autotuned_secure_aggregator(bits='8')

  def test_an_expected_size_beside_a_wrap_probability_is_refused(self):
    for name in (
      'AutotunedSecureSumFactory',
      'WrappedNormalTuner',
      'autotuned_secure_aggregator',
    ):
      function, right, _ = _CALLABLES[name]
      with self.assertRaisesWithLiteralMatch(
        ValueError,
        '`expected_size` must be left out where `wrap_probability` is given,'
        " found 2.0 and 0.01: the paper's rule begins with a calibration of its"
        ' own.',
      ):
        function(**right, expected_size=2.0, wrap_probability=0.01)

  def test_the_smallest_and_largest_values_are_taken(self):
    for modulus in (2, 2**30, np.int64(256), np.uint8(200)):
      autotune.AutotunedSecureSumFactory(modulus=modulus)
    for probability in (5e-324, 1e-300, np.float32(0.01), 1 - 1e-15):
      factory = autotune.AutotunedSecureSumFactory(
        modulus=256, wrap_probability=probability
      )
      self.assertIsInstance(
        factory, tff.aggregators.UnweightedAggregationFactory
      )
    autotune.AutotunedSecureSumFactory(modulus=256, seed=2**63 - 1)
    for size in (1e-30, 1e30, np.float32(2), 3):
      autotune.AutotunedSecureSumFactory(modulus=256, expected_size=size)
    self.assertLess(
      autotune.predicted_nmse(num_clients=10**12, modulus=2**30), 1
    )


if __name__ == '__main__':
  absltest.main()
