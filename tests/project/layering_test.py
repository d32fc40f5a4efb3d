# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the shape of the code: who imports whom, and how long a piece is.

The rule is the table of CONTRIBUTING.md, section "The shape of the code".
"""

import ast
import io
import pathlib
import re
import tokenize

from absl.testing import absltest
from absl.testing import parameterized

_PROJECT = pathlib.Path(__file__).parents[2]
_PACKAGE = 'tff_autotune_secagg'

_FACE = 'public face'
_CHECKS = '_checks.py'
_LOCK = '_file_lock.py'
_MAY_IMPORT = {
  _FACE: {
    'factories/',
    'stages/',
    'programs/',
    'simulation/',
    'numerics/',
    _CHECKS,
  },
  'factories/': {'stages/', 'numerics/', _CHECKS},
  'stages/': {'numerics/', _CHECKS},
  'programs/': {_CHECKS, _LOCK},
  'simulation/': {_CHECKS},
  'numerics/': {_CHECKS},
  _CHECKS: set(),
  _LOCK: set(),
}
_ROOMS_WITHOUT_TFF = ('stages/', 'numerics/', _CHECKS, _LOCK)

_MAX_MODULE_LINES = 250  # Without docstrings, comments and blanks.
_NO_CODE = (
  tokenize.COMMENT,
  tokenize.NL,
  tokenize.NEWLINE,
  tokenize.INDENT,
  tokenize.DEDENT,
  tokenize.ENDMARKER,
)
_WITH_DOCSTRINGS = (
  ast.Module,
  ast.ClassDef,
  ast.FunctionDef,
  ast.AsyncFunctionDef,
)
_MAX_FUNCTION_LINES = 60  # From `def` on, without the docstring.


def _package_sources() -> dict[str, str]:
  """Text of each module of the package, by the module's dotted name."""
  sources = {}
  for path in sorted((_PROJECT / _PACKAGE).rglob('*.py')):
    parts = path.relative_to(_PROJECT).with_suffix('').parts
    if parts[-1] == '__init__':
      parts = parts[:-1]
    sources['.'.join(parts)] = path.read_text(encoding='utf-8')
  return sources


def _room(module: str) -> str:
  """The room of a module of the package; others' modules are in none."""
  parts = module.split('.')
  if parts[0] != _PACKAGE:
    return ''
  if f'{parts[-1]}.py' in (_CHECKS, _LOCK):
    return f'{parts[-1]}.py'
  if len(parts) > 1 and f'{parts[1]}/' in _MAY_IMPORT:
    return f'{parts[1]}/'
  return _FACE


def _imports(module: str, sources: dict[str, str]) -> set[str]:
  """Modules that `module` imports, also inside functions.

  A name that `from package import name` takes from an `__init__` counts as an
  import of the package; a submodule counts as itself.
  """
  imported = set()
  for node in ast.walk(ast.parse(sources[module])):
    if isinstance(node, ast.Import):
      imported.update(alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
      origin = node.module or ''
      if node.level:
        # A relative import of a package starts from the package itself.
        is_package = any(other.startswith(f'{module}.') for other in sources)
        parts = module.split('.') + ['__init__'] * is_package
        origin = '.'.join(
          parts[: len(parts) - node.level] + [origin] * bool(origin)
        )
      for alias in node.names:
        name = f'{origin}.{alias.name}'
        imported.add(name if name in sources else origin)
  return imported


def _wrong_imports(sources: dict[str, str]) -> list[str]:
  """Imports that the table forbids, as "importer -> imported"."""
  wrong = []
  for module in sources:
    room = _room(module)
    for imported in sorted(_imports(module, sources)):
      root = imported.partition('.')[0]
      if root in ('examples', 'experiments', 'tests', 'tools'):
        forbidden = True
      elif root == 'tensorflow_federated':
        forbidden = room in _ROOMS_WITHOUT_TFF
      elif root == _PACKAGE:
        forbidden = _room(imported) not in {room} | _MAY_IMPORT[room]
      else:
        forbidden = False
      if forbidden:
        wrong.append(f'{module} -> {imported}')
  return wrong


def _cycle(sources: dict[str, str]) -> list[str]:
  """Modules that import each other in a circle, or nothing."""
  free = {
    module: _imports(module, sources) & set(sources) for module in sources
  }
  # What imports nothing that is left is in no circle.
  while free:
    done = {m for m, imported in free.items() if not imported & set(free)}
    if not done:
      return sorted(free)
    free = {m: imported for m, imported in free.items() if m not in done}
  return []


def _code_lines(source: str) -> int:
  """Number of lines that hold more than docstrings, comments and blanks."""
  lines = set()
  for token in tokenize.generate_tokens(io.StringIO(source).readline):
    if token.type not in _NO_CODE:
      lines.update(range(token.start[0], token.end[0] + 1))
  for node in ast.walk(ast.parse(source)):
    has_docstring = isinstance(node, _WITH_DOCSTRINGS)
    if has_docstring and ast.get_docstring(node) is not None:
      docstring = node.body[0]
      lines -= set(range(docstring.lineno, docstring.end_lineno + 1))
  return len(lines)


def _function_lengths(source: str) -> dict[str, int]:
  """Lines of each function without its docstring, by name and line."""
  lengths = {}
  for node in ast.walk(ast.parse(source)):
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
      num_lines = node.end_lineno - node.lineno + 1
      if ast.get_docstring(node) is not None:
        docstring = node.body[0]
        num_lines -= docstring.end_lineno - docstring.lineno + 1
      lengths[f'{node.name} (line {node.lineno})'] = num_lines
  return lengths


def _too_long(sources: dict[str, str]) -> list[str]:
  """Modules and functions above the limits."""
  found = []
  for module, source in sources.items():
    num_lines = _code_lines(source)
    if num_lines > _MAX_MODULE_LINES:
      found.append(f'{module}: {num_lines} lines of code')
    for function, num_lines in _function_lengths(source).items():
      if num_lines > _MAX_FUNCTION_LINES:
        found.append(f'{module}: {function}, {num_lines} lines')
  return found


def _table_of_contributing() -> dict[str, set[str]]:
  """What each room may import, from the table of CONTRIBUTING.md."""
  text = (_PROJECT / 'CONTRIBUTING.md').read_text(encoding='utf-8')
  section = text.partition('\n## The shape of the code\n')[2]
  section = section.partition('\n## ')[0]
  table = section.partition('| room | holds | may import |\n')[2]
  rule = {}
  for line in table.splitlines()[1:]:
    if not line.startswith('|'):
      break
    room, _, may_import = [cell.strip() for cell in line.split('|')[1:-1]]
    rule[room.strip('`')] = set(re.findall(r'`([^`]+)`', may_import))
  return rule


class LayeringTest(parameterized.TestCase):
  def test_imports_run_inward(self):
    self.assertEmpty(_wrong_imports(_package_sources()))

  def test_imports_form_no_circle(self):
    self.assertEmpty(_cycle(_package_sources()))

  def test_contributing_says_the_same(self):
    self.assertEqual(_table_of_contributing(), _MAY_IMPORT)

  def test_every_folder_of_the_package_is_a_room(self):
    folders = {
      f'{path.relative_to(_PROJECT / _PACKAGE).parts[0]}/'
      for path in (_PROJECT / _PACKAGE).glob('*/**/*.py')
    }
    self.assertEqual(
      folders, {room for room in _MAY_IMPORT if room.endswith('/')}
    )

  @parameterized.named_parameters(
    ('upward', 'numerics.a', 'from {p}.factories import b'),
    ('upward_name', 'numerics.a', 'from {p}.factories.b import Factory'),
    ('to_the_face', 'factories.b', 'from {p} import face'),
    ('to_the_package', 'factories.b', 'import {p}'),
    ('public_name', 'simulation.c', 'from {p} import Factory'),
    ('sideways', 'factories.b', 'from {p}.simulation import c'),
    ('sideways_package', 'factories.b', 'from {p} import simulation'),
    ('sideways_back', 'simulation.c', 'import {p}.factories.b'),
    ('programs_to_simulation', 'programs.e', 'from {p} import simulation'),
    ('simulation_to_program', 'simulation.c', 'from {p}.programs import e'),
    ('factory_to_program', 'factories.b', 'from {p} import programs'),
    ('simulation_to_numerics', 'simulation.c', 'from {p}.numerics import a'),
    ('stage_to_factory', 'stages.d', 'from {p}.factories import b'),
    ('simulation_to_stage', 'simulation.c', 'from {p}.stages import d'),
    ('numerics_to_stage', 'numerics.a', 'from {p}.stages import d'),
    ('relative', 'numerics.a', 'from ..factories import b'),
    ('relative_package', 'simulation', 'from ..numerics import a'),
    ('within_a_function', 'numerics.a', 'def f():\n  import {p}.factories.b'),
    ('tff', 'numerics.a', 'import tensorflow_federated as tff'),
    ('tff_name', 'numerics.a', 'from tensorflow_federated import types'),
    ('tff_in_stage', 'stages.d', 'import tensorflow_federated as tff'),
    ('tff_in_checks', '_checks', 'import tensorflow_federated as tff'),
    ('checks', '_checks', 'from {p}.numerics import a'),
    ('outside', 'face', 'from experiments.common import seeds'),
  )
  def test_finds_a_wrong_import(self, module, source):
    sources = {
      f'{_PACKAGE}{name}': ''
      for name in (
        '',
        '._checks',
        '.face',
        '.factories',
        '.factories.b',
        '.numerics',
        '.numerics.a',
        '.programs',
        '.programs.e',
        '.simulation',
        '.simulation.c',
        '.stages',
        '.stages.d',
      )
    }
    self.assertEmpty(_wrong_imports(sources))
    sources[f'{_PACKAGE}.{module}'] = source.format(p=_PACKAGE)
    self.assertLen(_wrong_imports(sources), 1)

  def test_takes_every_import_of_the_table(self):
    sources = {
      f'{_PACKAGE}': 'from tff_autotune_secagg import face',
      f'{_PACKAGE}._checks': 'import enum',
      f'{_PACKAGE}.face': (
        'import tensorflow_federated as tff\n'
        'from tff_autotune_secagg import _checks\n'
        'from tff_autotune_secagg.factories import b\n'
        'from tff_autotune_secagg.numerics import a\n'
        'from tff_autotune_secagg import programs\n'
        'from tff_autotune_secagg import simulation\n'
      ),
      f'{_PACKAGE}.factories': '',
      f'{_PACKAGE}.factories.b': (
        'import tensorflow_federated as tff\n'
        'from tff_autotune_secagg import _checks\n'
        'from tff_autotune_secagg.numerics import a\n'
        'from tff_autotune_secagg.stages import d\n'
      ),
      f'{_PACKAGE}.stages': '',
      f'{_PACKAGE}.stages.d': (
        'from tff_autotune_secagg import _checks\n'
        'from tff_autotune_secagg.numerics import a\n'
      ),
      f'{_PACKAGE}.numerics': '',
      f'{_PACKAGE}.numerics.a': (
        'import tensorflow as tf\nfrom tff_autotune_secagg import _checks\n'
      ),
      f'{_PACKAGE}.programs': 'from tff_autotune_secagg import _checks\n',
      f'{_PACKAGE}.simulation': 'from tff_autotune_secagg import _checks\n',
    }
    self.assertEmpty(_wrong_imports(sources))
    self.assertEmpty(_cycle(sources))

  def test_finds_a_circle(self):
    sources = {
      'p.a': 'from p import b',
      'p.b': 'def f():\n  from p.c import g',
      'p.c': 'import p.a',
      'p.d': 'import p.a',
    }
    self.assertContainsSubset(['p.a', 'p.b', 'p.c'], _cycle(sources))
    sources['p.c'] = ''
    self.assertEmpty(_cycle(sources))


class LengthTest(absltest.TestCase):
  def test_modules_and_functions_are_short(self):
    self.assertEmpty(_too_long(_package_sources()))

  def test_finds_what_is_too_long(self):
    lines = '  x = 0\n' * (_MAX_FUNCTION_LINES - 1)
    docstring = '  """Long.\n\n  Long.\n  """\n'
    self.assertEmpty(_too_long({'m': f'def f():\n{docstring}{lines}'}))
    self.assertEqual(
      _too_long({'m': f'def f():\n{docstring}{lines}  y = 0\n'}),
      [f'm: f (line 1), {_MAX_FUNCTION_LINES + 1} lines'],
    )
    # A function counts also for the one that it stands in.
    inner = '  def g():\n' + '    x = 0\n' * (_MAX_FUNCTION_LINES - 1)
    self.assertEmpty(_too_long({'m': f'class C:\n{inner}'}))
    self.assertEqual(
      _too_long({'m': f'def f():\n{inner}'}),
      [f'm: f (line 1), {_MAX_FUNCTION_LINES + 1} lines'],
    )
    module = 'x = 0\n' * _MAX_MODULE_LINES
    no_code = f'# Comment.\n\nclass C:\n{docstring}'
    module = no_code + module.removesuffix('x = 0\n')
    self.assertEmpty(_too_long({'m': module}))
    self.assertEqual(
      _too_long({'m': f'{module}x = [\n]\n'}),
      [f'm: {_MAX_MODULE_LINES + 2} lines of code'],
    )


if __name__ == '__main__':
  absltest.main()
