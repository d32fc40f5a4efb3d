# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every public argument with everything that it is not: an error at once.

The error names the argument, the rule and what was found. Exact wordings are in
`checks_test`; here the point is that no argument is left out, which the first
test proves from the signatures.
"""

import fractions
import inspect

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow_federated as tff

import tff_autotune_secagg as tas

_INNER = tas.ModularSecureSumFactory(modulus=256)
_WEIGHTED = tff.aggregators.MeanFactory()

# Bad values by kind. A number that is too large for a float must not raise an
# OverflowError instead.
_NOT_INT = (1.5, 2.0, '8', None, True, np.True_, [256], np.array([2, 3]), 8j)
_NOT_FLOAT = ('1', None, True, np.True_, [0.5], 1j, np.array([0.5, 0.5]))
_NOT_BOOL = (1, 0, 'True', None, np.array([True]))
_NOT_ENUM = ('stochastic', 1, None, True)
_NOT_UNWEIGHTED = (None, 256, 'sum', _WEIGHTED, tas.ModularSecureSumFactory)
_NOT_FINITE = (np.nan, np.inf, -np.inf)

# (wrong kinds, wrong values) of each argument.
_MODULUS = (_NOT_INT, (1, 0, -1, -256, 2**30 + 1, 2**64, 10**400))
_COUNT = (_NOT_INT, (0, -1, -(10**30)))
_OPTIONAL_COUNT = (tuple(v for v in _NOT_INT if v is not None), (0, -5))
_WRAP_PROBABILITY = (
  tuple(v for v in _NOT_FLOAT if v is not None),
  (0, 0.0, 1, 1.0, -0.1, 2, 10**400, fractions.Fraction(3, 2)) + _NOT_FINITE,
)
_DRIFT = (_NOT_FLOAT, (-0.1, 2.1, 10**400, -(10**400)) + _NOT_FINITE)
_SEED = (tuple(v for v in _NOT_INT if v is not None), (-1, 2**63, 10**400))
_REPEATS = (_NOT_INT, (0, -1, 9, 10**400))
_ENUM = (_NOT_ENUM, ())
_BOOL = (_NOT_BOOL, ())
_INNER_FACTORY = (_NOT_UNWEIGHTED, ())

_TUNING = dict(
  wrap_probability=_WRAP_PROBABILITY,
  rounding=_ENUM,
  decoding=_ENUM,
  drift=_DRIFT,
)
_AGGREGATOR = dict(
  _TUNING,
  modulus=_MODULUS,
  num_clients=_OPTIONAL_COUNT,
  num_repeats=_REPEATS,
  seed=_SEED,
)

# Each public callable: arguments that are right, and what each one must refuse.
_CALLABLES = {
  'AutotunedSecureSumFactory': (
    tas.AutotunedSecureSumFactory,
    dict(modulus=256),
    _AGGREGATOR,
  ),
  'FlattenFactory': (
    tas.FlattenFactory,
    dict(inner_factory=_INNER),
    dict(inner_factory=_INNER_FACTORY),
  ),
  'HadamardRotationFactory': (
    tas.HadamardRotationFactory,
    dict(inner_factory=_INNER),
    dict(
      inner_factory=_INNER_FACTORY,
      num_repeats=_REPEATS,
      min_dim=_COUNT,
      seed=_SEED,
    ),
  ),
  'ModularSecureSumFactory': (
    tas.ModularSecureSumFactory,
    dict(modulus=256),
    dict(modulus=_MODULUS),
  ),
  'QuantizeModFactory': (
    tas.QuantizeModFactory,
    dict(inner_factory=_INNER, modulus=256, bin_size=0.1),
    dict(
      inner_factory=_INNER_FACTORY,
      modulus=_MODULUS,
      bin_size=(_NOT_FLOAT, (0, 0.0, -1.0, 1e-31, 1e31, 10**400) + _NOT_FINITE),
      rounding=_ENUM,
      decoding=_ENUM,
      seed=_SEED,
    ),
  ),
  'SecureMeanFactory': (
    tas.SecureMeanFactory,
    dict(value_sum_factory=_INNER),
    dict(value_sum_factory=_INNER_FACTORY),
  ),
  'SecureUnweightedMeanFactory': (
    tas.SecureUnweightedMeanFactory,
    dict(value_sum_factory=_INNER),
    dict(value_sum_factory=_INNER_FACTORY),
  ),
  'WrappedNormalTuner': (
    tas.WrappedNormalTuner,
    dict(modulus=256),
    dict(_TUNING, modulus=_MODULUS),
  ),
  'autotuned_secure_aggregator': (
    tas.autotuned_secure_aggregator,
    dict(),
    dict(_AGGREGATOR, zeroing=_BOOL, clipping=_BOOL, weighted=_BOOL),
  ),
  'optimal_wrap_probability': (
    tas.optimal_wrap_probability,
    dict(num_clients=10, modulus=256),
    dict(
      num_clients=_COUNT,
      modulus=_MODULUS,
      rounding=_ENUM,
      decoding=_ENUM,
      drift=_DRIFT,
    ),
  ),
  'QuantizeModEncodingStage': (
    tas.QuantizeModEncodingStage,
    dict(modulus=256, bin_size=0.5),
    dict(
      modulus=_MODULUS,
      bin_size=(_NOT_FLOAT, (0, 0.0, -1.0, 10**400) + _NOT_FINITE),
    ),
  ),
  'plan_modulus': (
    tas.plan_modulus,
    dict(num_clients=10, target_nmse=0.01),
    dict(
      _TUNING,
      num_clients=_COUNT,
      target_nmse=(_NOT_FLOAT, (0, 1, 1.5, -0.1, 10**400) + _NOT_FINITE),
    ),
  ),
  'predicted_nmse': (
    tas.predicted_nmse,
    dict(num_clients=10, modulus=256),
    dict(_TUNING, num_clients=_COUNT, modulus=_MODULUS),
  ),
}
# Public names with tests of their arguments elsewhere, or with none.
_ELSEWHERE = {
  'Decoding',
  'Rounding',
  '__version__',
  'check_state',
  'load_latest_state',
  'simulation',
}


def _cases():
  for name, (_, _, arguments) in sorted(_CALLABLES.items()):
    for argument in sorted(arguments):
      yield f'{name}_{argument}', name, argument


class BadArgumentsTest(parameterized.TestCase):
  def test_every_public_argument_is_here(self):
    self.assertEqual(set(tas.__all__), set(_CALLABLES) | _ELSEWHERE)
    for name, (function, _, arguments) in _CALLABLES.items():
      with self.subTest(name):
        self.assertEqual(
          set(inspect.signature(function).parameters), set(arguments)
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

  def test_a_modulus_too_small_for_the_clients_is_refused_with_one_that_does(
    self,
  ):
    for function, rounding in (
      (tas.AutotunedSecureSumFactory, tas.Rounding.STOCHASTIC),
      (tas.autotuned_secure_aggregator, tas.Rounding.DITHER),
    ):
      with self.assertRaisesRegex(
        ValueError,
        r'^`modulus` 4 is too small for `num_clients` 200: .+\. Raise'
        r' `modulus` to \d+ or more, or lower `num_clients`\.$',
      ) as caught:
        function(modulus=4, num_clients=200, rounding=rounding)
      # What is proposed is taken.
      proposed = int(str(caught.exception).split('to ')[1].split(' ')[0])
      function(modulus=proposed, num_clients=200, rounding=rounding)

  def test_a_tuner_for_another_process_is_refused(self):
    tuner = tas.WrappedNormalTuner(modulus=16)
    with self.assertRaisesWithLiteralMatch(
      ValueError, '`bin_size.modulus` must equal `modulus`, found 16 and 256.'
    ):
      tas.QuantizeModFactory(_INNER, modulus=256, bin_size=tuner)
    tuner = tas.WrappedNormalTuner(modulus=256, rounding=tas.Rounding.DITHER)
    with self.assertRaisesRegex(
      ValueError, '^`bin_size.rounding` must equal `rounding`, found '
    ):
      tas.QuantizeModFactory(_INNER, modulus=256, bin_size=tuner)

  def test_the_smallest_and_largest_values_are_taken(self):
    for modulus in (2, 2**30, np.int64(256), np.uint8(200)):
      tas.AutotunedSecureSumFactory(modulus=modulus)
    for probability in (5e-324, 1e-300, np.float32(0.01), 1 - 1e-15):
      factory = tas.AutotunedSecureSumFactory(
        modulus=256, wrap_probability=probability
      )
      self.assertIsInstance(
        factory, tff.aggregators.UnweightedAggregationFactory
      )
    tas.AutotunedSecureSumFactory(modulus=256, seed=2**63 - 1, drift=2)
    self.assertLess(tas.predicted_nmse(num_clients=10**12, modulus=2**30), 1)


if __name__ == '__main__':
  absltest.main()
