# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that documents and docstrings name only what there is."""

import ast
import builtins
import functools
import importlib
import json
import math
import pathlib
import re
import urllib.parse

from absl.testing import absltest
from absl.testing import parameterized
import tensorflow as tf
import tensorflow_federated as tff

from tests import printed_numbers
import tff_autotune_secagg as autotune

_PROJECT = pathlib.Path(__file__).parents[2]
_PACKAGE = 'tff_autotune_secagg'
_SOURCES = (_PACKAGE, 'examples', 'experiments', 'tools')

_IN_BACKTICKS = re.compile(r'(?<!`)`([^`\n]+)`(?!`)')
_NAME = re.compile(r'[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*')
_LINK = re.compile(r'\]\(([^)\s]+)\)')
# An address that has the project's name in it. Nobody has published it yet.
_OWN_ADDRESS = re.compile(
  r'(?:https?://|git@|www\.)[^\s)>"\']*autotune[-_.]?secagg', re.IGNORECASE
)
_CELL_BORDER = re.compile(r'(?<!\\)\|')
_TABLE_RULE = re.compile(r' *\|(:?-+:?\|)+')
_FILE = re.compile(r'[\w.-]+(/[\w.-]+)*/[\w-]+\.(py|md|sh|ipynb|flags|png|txt)')

# Names of others' that the texts mention; none of them is ours to rename.
_FOREIGN = frozenset(
  {
    'EncoderComposer',  # TensorFlow Model Optimization.
    '__del__',
    'absl.testing',
    'add_debug_measurements',  # `tff.learning`.
    'client_optimizer_fn',
    'clipping_norm',  # The state of TFF's clipping and zeroing.
    'ensurepip',
    'get_epsilon',  # Accountants of `dp_accounting`.
    'inner_agg',
    'jax',
    'jaxlib',
    'make',
    'metrics_aggregation_process',  # TFF's builders.
    'metrics_aggregator',
    'minimum_clients_in_server_visible_aggregate',  # federated-compute.
    'minimum_surviving_clients_for_reconstruction',
    'model_fn',
    'pip',
    'python3',
    'uv',
    'zeroed_count_agg',
    'zeroing_norm',
  }
)


def _documents(project: pathlib.Path = _PROJECT) -> list[pathlib.Path]:
  """The project's own, not what an environment or a build holds."""
  folders = [project / folder for folder in ('docs', *_SOURCES)]
  return sorted(
    [
      *project.glob('*.md'),
      *(path for folder in folders for path in folder.rglob('*.md')),
    ]
  )


def _text(document: pathlib.Path) -> str:
  """The prose of a document, a notebook's included, without code blocks."""
  text = document.read_text(encoding='utf-8')
  if document.suffix == '.ipynb':
    cells = json.loads(text)['cells']
    text = '\n\n'.join(
      ''.join(cell['source'])
      for cell in cells
      if cell['cell_type'] == 'markdown'
    )
  return re.sub(r'^ *```.*?^ *```', '', text, flags=re.DOTALL | re.MULTILINE)


@functools.lru_cache(maxsize=None)
def _known_names() -> frozenset[str]:
  """All identifiers and all strings of one word in the project's code."""
  names = set(dir(builtins))
  for folder in _SOURCES:
    names.add(folder)
    for path in (_PROJECT / folder).glob('**/*.*'):
      names.update(path.name.split('.'))
    for path in (_PROJECT / folder).glob('**/*.py'):
      for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
        for field in ('id', 'name', 'attr', 'arg', 'module'):
          value = getattr(node, field, None)
          if isinstance(value, str):
            names.update(value.split('.'))
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
          # Flags, settings and keys are strings in the code; prose is not one.
          if ' ' not in node.value:
            names.update(re.findall(r'[A-Za-z_]\w*', node.value))
  for module in (tff.framework, tff.learning.templates, tff.program):
    names.update(dir(module))
  names.update(dir(tff.backends.native))
  return frozenset(names)


def _resolves(root, parts) -> bool:
  for part in parts:
    try:
      root = getattr(root, part)
    except AttributeError:
      return False
  return True


def _is_broken(reference: str, known: frozenset[str]) -> bool:
  """Whether a text in backticks is a name of something that is not there."""
  name = reference.partition('(')[0].partition('=')[0].partition('[')[0]
  if not _NAME.fullmatch(name) or name in _FOREIGN:
    return False
  if name.isupper() or (_PROJECT / name).exists():
    return False  # An environment variable, or a file.
  root, *parts = name.split('.')
  if root == 'tff':
    return not _resolves(tff, parts)
  if root == 'tf':
    return not _resolves(tf, parts)
  if root == 'tff_autotune_secagg' and parts:
    try:
      importlib.import_module(name)
      return False
    except ImportError:
      return not _resolves(importlib.import_module(root), parts)
  if root == 'autotune':
    return not _resolves(autotune, parts)
  return not all(part in known for part in (root, *parts))


def _broken_references(text: str, known: frozenset[str]) -> list[str]:
  return [
    reference
    for reference in _IN_BACKTICKS.findall(text)
    if _is_broken(reference, known)
  ]


def _slug(heading: str) -> str:
  """The anchor that GitHub gives to a heading."""
  return re.sub(r'[^\w\- ]', '', heading.lower()).strip().replace(' ', '-')


def _broken_links(document: pathlib.Path, text: str) -> list[str]:
  broken = []
  for link in _LINK.findall(text):
    url = urllib.parse.urlsplit(link)
    if url.scheme:
      continue
    target = document.parent / url.path if url.path else document
    if not target.exists():
      broken.append(link)
    elif url.fragment and target.suffix == '.md':
      headings = re.findall(
        r'^#+ (.*)$', target.read_text(encoding='utf-8'), re.MULTILINE
      )
      if url.fragment not in [_slug(heading) for heading in headings]:
        broken.append(link)
  return broken


def _broken_commands(text: str) -> list[str]:
  """Modules and flag files of commands in `text` that are not there."""
  broken = []
  for module in re.findall(r'\bpython\S* -m ([\w.]+)', text):
    path = _PROJECT.joinpath(*module.split('.')).with_suffix('.py')
    if module.partition('.')[0] in _SOURCES and not path.is_file():
      broken.append(module)
  for flag_file in re.findall(r'--flagfile[= ](\S+\.flags)', text):
    if not (_PROJECT / flag_file).is_file():
      broken.append(flag_file)
  return broken


def _broken_tables(text: str) -> list[str]:
  """Heads of tables without a rule below, and rows with other cells than it."""
  broken = []
  # A single line may begin with a norm, |x|; a table has two lines at least.
  for table in re.findall(r'(?:^ *\|.*\n){2,}', text + '\n', re.MULTILINE):
    head, rule, *rows = table.splitlines()
    if not _TABLE_RULE.fullmatch(rule):
      broken.append(head)
    borders = len(_CELL_BORDER.findall(rule))
    broken += [
      line
      for line in (head, *rows)
      if len(_CELL_BORDER.findall(line)) != borders
    ]
  return broken


class DocumentsTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    notebooks = sorted((_PROJECT / 'docs').glob('*.ipynb'))
    self._texts = {path: _text(path) for path in [*_documents(), *notebooks]}

  def _fail_with(self, broken: dict) -> None:
    found = {str(p.relative_to(_PROJECT)): b for p, b in broken.items() if b}
    self.assertEmpty(found, 'Broken references; mend them or what they name.')

  def test_links_lead_somewhere(self):
    self._fail_with({p: _broken_links(p, t) for p, t in self._texts.items()})

  def test_names_exist(self):
    known = _known_names()
    self._fail_with(
      {p: _broken_references(t, known) for p, t in self._texts.items()}
    )

  def test_files_exist(self):
    self._fail_with(
      {
        path: [
          reference
          for reference in _IN_BACKTICKS.findall(text)
          if _FILE.fullmatch(reference)
          and not reference.startswith('build/')
          and not (_PROJECT / reference).exists()
          and not (path.parent / reference).exists()
        ]
        for path, text in self._texts.items()
      }
    )

  def test_make_targets_exist(self):
    makefile = (_PROJECT / 'Makefile').read_text(encoding='utf-8')
    targets = re.findall(r'^([a-z-]+):', makefile, re.MULTILINE)
    self._fail_with(
      {
        path: [
          target
          for target in re.findall(
            r'(?:`|^)make ([a-z-]+)', path.read_text(encoding='utf-8'), re.M
          )
          if target not in targets
        ]
        for path in self._texts
      }
    )

  def test_rows_of_a_table_have_as_many_cells_as_its_head(self):
    self.assertGreater(
      sum(bool(re.search(r'^ *\|-', t, re.M)) for t in self._texts.values()), 10
    )
    self._fail_with({p: _broken_tables(t) for p, t in self._texts.items()})

  def test_no_address_of_the_project_is_invented(self):
    files = [*self._texts, _PROJECT / 'docs' / 'conf.py']
    files += [
      _PROJECT / name for name in ('pyproject.toml', 'setup.py', 'CITATION.cff')
    ]
    self._fail_with(
      {p: _OWN_ADDRESS.findall(p.read_text(encoding='utf-8')) for p in files}
    )
    citation = (_PROJECT / 'CITATION.cff').read_text(encoding='utf-8')
    self.assertNotRegex(citation, r'(?m)^(repository|url)')

  def test_commands_name_what_exists(self):
    self._fail_with(
      {p: _broken_commands(p.read_text(encoding='utf-8')) for p in self._texts}
    )


def _count(text: str) -> int:
  """The number of clients in the head of a column: "1 client", "1,000"."""
  return int(text.partition(' ')[0].replace(',', ''))


class HowManyBitsTest(parameterized.TestCase):
  """The tables of docs/how_many_bits.md are what the planner says."""

  def _table(self, first: str) -> tuple[list[str], dict[str, list[str]]]:
    """Columns and rows, by their first cells, of the table headed `first`."""
    text = (_PROJECT / 'docs' / 'how_many_bits.md').read_text(encoding='utf-8')
    (table,) = re.findall(
      rf'^ *\| {re.escape(first)} .*\n(?: *\|.*\n)+', text, re.MULTILINE
    )
    (_, *columns), _, *rows = [
      [cell.strip() for cell in line.split('|')[1:-1]]
      for line in table.splitlines()
    ]
    return columns, {row[0]: row[1:] for row in rows}

  def _compare(self, first: str, expected) -> None:
    """Compares each cell with what `expected(row, column)` gives.

    The tables have two digits, and each number is computed with other last
    bits, as another processor would.
    """
    columns, rows = self._table(first)
    self.assertGreater(len(rows), 1)
    wrong = []
    for row, cells in rows.items():
      self.assertLen(cells, len(columns), row)
      for column, cell in zip(columns, cells):
        value = expected(row, column)
        if not all(
          printed_numbers.rounds_to(value * other, cell, digits=2)
          for other in (1 - 1e-12, 1 + 1e-12)
        ):
          wrong.append(f'row {row}, column {column}: {cell}, not {value:.3g}')
    self.assertEmpty(wrong)

  def test_predicted_errors(self):
    def expected(bits, num_clients):
      return autotune.predicted_nmse(
        num_clients=_count(num_clients), modulus=2 ** int(bits)
      )

    self._compare('bits | 1 client', expected)

  def test_errors_by_size_uncertainty(self):
    def expected(bits, uncertainty):
      return autotune.predicted_nmse(
        num_clients=10,
        modulus=2 ** int(bits),
        size_uncertainty=float(uncertainty),
      )

    self._compare('bits, 10 clients', expected)

  def test_errors_by_prediction_gain(self):
    def expected(bits, gain):
      return autotune.predicted_nmse(
        num_clients=100, modulus=2 ** int(bits), prediction_gain=float(gain)
      )

    self._compare('bits, 100 clients', expected)

  def test_planned_bits(self):
    def expected(target, num_clients):
      modulus = autotune.plan_modulus(_count(num_clients), float(target))
      return modulus.bit_length() - 1

    self._compare('target NMSE', expected)

  def test_errors_by_wrap_probability(self):
    def expected(bits, column):
      probability = None
      if column != 'automatic':
        probability = float(column.removeprefix('alpha '))
      return autotune.predicted_nmse(
        num_clients=10,
        modulus=2 ** int(bits),
        wrap_probability=probability,
        decoding=autotune.Decoding.CENTRED,
      )

    self._compare('bits | alpha', expected)

  def test_bytes(self):
    _, rows = self._table('| bits')
    dim, padded_dim = 1_369_738, 1_376_256
    for name, (bits, num_bytes) in rows.items():
      with self.subTest(name):
        match = re.fullmatch(r'autotuned, ([\d,]+) clients, NMSE (.+)', name)
        size = padded_dim if match else dim
        self.assertEqual(_count(num_bytes), math.ceil(int(bits) * size / 8))
        if match:
          modulus = autotune.plan_modulus(
            _count(match.group(1)), float(match.group(2))
          )
          self.assertEqual(int(bits), modulus.bit_length() - 1)

  def test_finds_a_wrong_number(self):
    with self.assertRaisesRegex(AssertionError, 'row 0.01, column 100: 9,'):
      self._compare('target NMSE', lambda row, column: 3.0)


class DocstringsTest(absltest.TestCase):
  def test_name_what_exists(self):
    known = _known_names()
    broken = {}
    for path in sorted((_PROJECT / _PACKAGE).rglob('*.py')):
      for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
          found = _broken_references(ast.get_docstring(node) or '', known)
          if found:
            where = f'{path.relative_to(_PROJECT)}: ' + getattr(
              node, 'name', 'module'
            )
            broken[where] = found
    self.assertEmpty(broken)


class CheckerTest(parameterized.TestCase):
  """The checks above can fail."""

  @parameterized.named_parameters(
    ('misspelt_class', 'HadamardRotatonFactory', True),
    ('class', 'HadamardRotationFactory', False),
    ('argument', 'wrap_probability=None', False),
    ('old_argument', 'wrap_probabilty', True),
    ('call', 'autotune.plan_modulus(num_clients=3)', False),
    ('missing_in_package', 'autotune.plan_bits', True),
    ('tff', 'tff.learning.programs.train_model', False),
    ('missing_in_tff', 'tff.learning.programs.train', True),
    ('module', 'tff_autotune_secagg.worker', False),
    ('missing_module', 'tff_autotune_secagg.workers', True),
    ('prose', '2 sqrt(n)', False),
  )
  def test_knows_a_broken_name(self, reference, is_broken):
    self.assertEqual(_is_broken(reference, _known_names()), is_broken)

  def test_finds_documents_at_every_depth(self):
    project = pathlib.Path(self.create_tempdir().full_path)
    ours = ['README.md', 'docs/a.md', 'experiments/soak/README.md']
    for name in [*ours, '.venv/lib/b.md', 'build/c.md']:
      (project / name).parent.mkdir(parents=True, exist_ok=True)
      (project / name).touch()
    self.assertCountEqual(_documents(project), [project / n for n in ours])

  @parameterized.named_parameters(
    ('module', 'python -m tff_autotune_secagg.worker --port=1', []),
    ('foreign_module', '.venv/bin/python -m pytest', []),
    (
      'missing_module',
      'python3 -m tff_autotune_secagg.workers',
      ['tff_autotune_secagg.workers'],
    ),
    (
      'missing_flag_file',
      'python x.py --flagfile=experiments/no.flags',
      ['experiments/no.flags'],
    ),
  )
  def test_knows_a_broken_command(self, text, broken):
    self.assertEqual(_broken_commands(text), broken)

  @parameterized.named_parameters(
    ('file', '[a](install.md)', []),
    ('heading', '[a](install.md#with-uv)', []),
    ('missing_file', '[a](instal.md)', ['instal.md']),
    (
      'missing_heading',
      '[a](install.md#with-conda)',
      ['install.md#with-conda'],
    ),
    ('web', '[a](https://example.org/a.md)', []),
  )
  def test_knows_a_broken_link(self, text, broken):
    document = _PROJECT / 'docs' / 'how_many_bits.md'
    self.assertEqual(_broken_links(document, text), broken)

  @parameterized.named_parameters(
    ('repository', 'Source = "https://github.com/a/tff-autotune-secagg"', True),
    ('clone', 'git clone git@example.org:me/tff_autotune_secagg.git', True),
    ('site', 'https://tff-autotune-secagg.example.org/index.html', True),
    ('name', 'python -m tff_autotune_secagg.planner', False),
    ('paper', 'https://arxiv.org/abs/1912.00131 (tff_autotune_secagg)', False),
  )
  def test_knows_an_address_of_the_project(self, text, found):
    self.assertEqual(bool(_OWN_ADDRESS.search(text)), found)

  @parameterized.named_parameters(
    ('whole', '| a | b |\n|---|---|\n| `1 \\| 2` | 3 |\n\ntext', []),
    ('indented', '- a\n\n  | a | b |\n  |:-|-:|\n  | 1 | |', []),
    ('norm', 'the length\n|x| of a vector', []),
    (
      'row_of_another_table',
      '| a | b |\n|---|---|\n| 1 | 2 | 3 |\n| 1 | 2 |\n| 1 |\n',
      ['| 1 | 2 | 3 |', '| 1 |'],
    ),
    ('long_head', '| a | b | c |\n|---|---|\n', ['| a | b | c |']),
    ('no_rule', '| a | b |\n| 1 | 2 |\n', ['| a | b |']),
  )
  def test_knows_a_broken_table(self, text, broken):
    self.assertEqual(_broken_tables(text), broken)


if __name__ == '__main__':
  absltest.main()
