# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what the package exports."""

import enum
import inspect

from absl.testing import absltest
import tensorflow_federated as tff

import tff_autotune_secagg

_NAMES = [
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

# Old names, which warn, and the new ones.
_DEPRECATED = {'ModularSecureSumFactory': 'ExactModularSumFactory'}


class PublicApiTest(absltest.TestCase):
  def test_exports_these_names_and_no_others(self):
    self.assertSequenceEqual(tff_autotune_secagg.__all__, _NAMES)
    public = [
      name
      for name, value in vars(tff_autotune_secagg).items()
      if not name.startswith('_') and not inspect.ismodule(value)
    ]
    self.assertSameElements(
      public, [n for n in _NAMES if n not in ('__version__', 'simulation')]
    )

  def test_deprecated_names_warn_and_lead_to_the_new_ones(self):
    for old, new in _DEPRECATED.items():
      with self.subTest(old):
        self.assertNotIn(old, tff_autotune_secagg.__all__)
        with self.assertWarnsRegex(
          (DeprecationWarning, FutureWarning), rf'`{old}`.*`{new}`'
        ):
          value = getattr(tff_autotune_secagg, old)
        self.assertIs(value, getattr(tff_autotune_secagg, new))
    with self.assertRaisesRegex(AttributeError, 'ModularSum'):
      _ = tff_autotune_secagg.ModularSum

  def test_everything_has_a_docstring(self):
    for name in _NAMES:
      value = getattr(tff_autotune_secagg, name)
      self.assertNotEmpty(inspect.getdoc(value), name)
      if inspect.isclass(value) and not issubclass(value, enum.Enum):
        self.assertIn('Args:', inspect.getdoc(value.__init__) or '', name)

  def test_constructor_settings_are_keyword_only(self):
    inner = {'self', 'inner_factory', 'value_sum_factory'}
    for name in _NAMES:
      value = getattr(tff_autotune_secagg, name)
      if not inspect.isclass(value) or issubclass(value, enum.Enum):
        continue
      for parameter in inspect.signature(value.__init__).parameters.values():
        # `former`: keywords that warn until 0.2.
        if parameter.name not in inner | {'former'}:
          self.assertEqual(
            parameter.kind, inspect.Parameter.KEYWORD_ONLY, parameter
          )

  def test_aggregator_mirrors_the_one_of_tff(self):
    ours = inspect.signature(
      tff_autotune_secagg.autotuned_secure_aggregator
    ).parameters
    theirs = inspect.signature(tff.learning.secure_aggregator).parameters
    for name in ('zeroing', 'clipping', 'weighted'):
      self.assertIn(name, theirs)
      self.assertIn(name, ours)
    self.assertTrue(ours['zeroing'].default)
    self.assertFalse(ours['clipping'].default)
    self.assertTrue(ours['weighted'].default)
    self.assertEqual(ours['modulus'].default, 256)

  def test_names_do_not_clash_with_those_of_tff(self):
    self.assertEmpty(set(_NAMES) & set(dir(tff.aggregators)) - {'__version__'})


if __name__ == '__main__':
  absltest.main()
