# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what the package exports."""

import ast
import enum
import inspect
import pathlib

from absl.testing import absltest
from absl.testing import parameterized
import tensorflow_federated as tff

from tests import fresh_python
import tff_autotune_secagg
from tff_autotune_secagg import planner
from tff_autotune_secagg import worker

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
  'drop_metrics',
  'learned_size',
  'load_latest_state',
  'low_bit_model_distributor',
  'optimal_wrap_probability',
  'plan_distributed_dp_modulus',
  'plan_modulus',
  'plan_sampled_fraction',
  'predicted_nmse',
  'programs',
  'round_measurements',
  'simulation',
  'tuning',
]

_FOLDERS = ('programs', 'simulation', 'tuning')
_STUB = pathlib.Path(tff_autotune_secagg.__file__).with_suffix('.pyi')

# What a fresh Python prints: a start-up that is slow is one that loads TFF.
_LOADED = "'tensorflow' in sys.modules, 'tensorflow_federated' in sys.modules"
_WITHOUT_TFF = '(False, False)'


class StartTest(parameterized.TestCase):
  """Importing TFF takes ten seconds; only who needs it waits for it."""

  def test_import_loads_nothing_until_a_name_is_used(self):
    output = fresh_python.run(
      '-c',
      'import sys\n'
      'import tff_autotune_secagg as autotune\n'
      'from tff_autotune_secagg import __version__\n'
      'from tff_autotune_secagg.numerics.rounding import modes\n'
      'assert not hasattr(autotune, "nonsense")\n'
      'assert "Tuner" in dir(autotune)\n'
      f'print(({_LOADED}))\n'
      'from tff_autotune_secagg import *\n'
      'assert Rounding is autotune.Rounding is modes.Rounding\n'
      'assert simulation.worker_pids() == []\n'
      f'print(({_LOADED}))\n',
    )
    self.assertEqual(output.status, 0, output.stderr)
    self.assertEqual(output.stdout.splitlines(), [_WITHOUT_TFF, '(True, True)'])

  @parameterized.product(
    command=(planner, worker), flag=('--help', '--nonsense')
  )
  def test_commands_answer_without_it(self, command, flag):
    name = command.__name__
    output = fresh_python.run(
      '-c',
      'import atexit, runpy, sys\n'
      f'atexit.register(lambda: print(({_LOADED})))\n'
      f'sys.argv = ["{name}", "{flag}"]\n'
      f'runpy.run_module("{name}", run_name="__main__")',
    )
    self.assertEqual(output.status, int(flag != '--help'), output)
    self.assertEndsWith(output.stdout, f'{_WITHOUT_TFF}\n')
    if flag == '--nonsense':
      self.assertIn("Unknown command line flag 'nonsense'", output.stderr)
    else:
      options = {planner: '--num_clients', worker: '--port'}
      self.assertIn(f'\n  {options[command]}: ', output.stdout)


class PublicApiTest(absltest.TestCase):
  def test_exports_these_names_and_no_others(self):
    self.assertSequenceEqual(tff_autotune_secagg.__all__, _NAMES)
    for name in _NAMES:
      getattr(tff_autotune_secagg, name)
    public = [
      name
      for name, value in vars(tff_autotune_secagg).items()
      if not name.startswith('_') and not inspect.ismodule(value)
    ]
    self.assertSameElements(
      public, [n for n in _NAMES if n not in ('__version__', *_FOLDERS)]
    )

  def test_lists_its_names_before_and_after_they_are_loaded(self):
    self.assertContainsSubset(set(_NAMES), dir(tff_autotune_secagg))

  def test_other_names_are_refused(self):
    with self.assertRaisesRegex(
      AttributeError,
      "^module 'tff_autotune_secagg' has no attribute 'ModularSum'$",
    ):
      _ = tff_autotune_secagg.ModularSum

  def test_type_checkers_are_told_the_same(self):
    found = {}
    for node in ast.parse(_STUB.read_text('utf-8')).body:
      (alias,) = node.names
      self.assertEqual(alias.asname, alias.name)  # Which exports a name.
      found[alias.name] = node.module
    package = tff_autotune_secagg.__name__
    self.assertEqual(
      found,
      {
        name: package if name in _FOLDERS else f'{package}.{module}'
        for name, module in tff_autotune_secagg._MODULES.items()
      },
    )

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
        if parameter.name not in inner:
          self.assertEqual(
            parameter.kind, inspect.Parameter.KEYWORD_ONLY, parameter
          )

  def test_aggregator_mirrors_the_one_of_tff(self):
    ours = inspect.signature(
      tff_autotune_secagg.autotuned_secure_aggregator
    ).parameters
    theirs = inspect.signature(tff.learning.secure_aggregator).parameters
    for name in ('zeroing', 'clipping', 'weighted'):
      self.assertIs(ours[name].default, theirs[name].default, name)
      self.assertIs(ours[name].default, True, name)
    self.assertEqual(ours['modulus'].default, 256)

  def test_names_do_not_clash_with_those_of_tff(self):
    self.assertEmpty(set(_NAMES) & set(dir(tff.aggregators)) - {'__version__'})


if __name__ == '__main__':
  absltest.main()
