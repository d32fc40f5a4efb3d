# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the code in README.md and docs/ runs as it stands."""

import contextlib
import doctest
import io
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
from typing import NamedTuple

from absl.testing import absltest
import portpicker
import pytest

from tests import binary_runner
from tests import fresh_python
from tests import printed_numbers
from tests.simulation import processes
from tff_autotune_secagg import simulation

_PROJECT = pathlib.Path(__file__).parents[2]
_NUMBER = re.compile(r'\d+\.\d+')

# Runs each block in a namespace of its own, all in one Python, as its import of
# TensorFlow is most of the time. Writes what each prints.
_RUNNER = """
import contextlib, io, json, sys

printed = []
for name, code in json.load(open('blocks.json')):
  with contextlib.redirect_stdout(io.StringIO()) as stdout:
    exec(compile(code, name, 'exec'), {'__name__': '__main__'})
  printed.append(stdout.getvalue())
json.dump(printed, open('printed.json', 'w'))
"""


class _Block(NamedTuple):
  document: str
  language: str
  code: str


def _blocks(language: str) -> list[_Block]:
  """All blocks of a language, README.md's first."""
  documents = ['README.md', *sorted((_PROJECT / 'docs').glob('*.md'))]
  return [
    _Block(pathlib.Path(document).name, language, code)
    for document in documents
    for code in re.findall(
      rf'^ *```{language}\n(.*?)^ *```',
      (_PROJECT / document).read_text(encoding='utf-8'),
      re.DOTALL | re.MULTILINE,
    )
  ]


def _is_session(block: _Block) -> bool:
  return block.code.startswith('>>> ')


def _start(*command: str) -> subprocess.Popen:
  return subprocess.Popen(
    command,
    env=dict(os.environ, PATH=f'{pathlib.Path(sys.executable).parent}:/bin'),
    stdin=subprocess.DEVNULL,
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
    start_new_session=True,
  )


@pytest.mark.slow
class ScriptsTest(absltest.TestCase):
  """All blocks of Python, and the workers that one of them asks for."""

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    ports = [portpicker.pick_unused_port() for _ in range(2)]
    (serve,) = (b for b in _blocks('shell') if 'worker_binary' in b.code)
    cls._workers = [
      _start('bash', '-c', serve.code.replace('8000', str(ports[0]))),
      _start(*simulation.worker_command(ports[1])),
    ]
    cls._are_served = all(
      processes.wait_for(lambda port=port: processes.is_port_taken(port))
      for port in ports
    )
    blocks = []
    for block in _blocks('python'):
      code = block.code
      # The one thing that depends on the reader: where the machines are.
      for number, port in enumerate(ports, start=1):
        code = code.replace(f'10.0.0.{number}:8000', f'127.0.0.1:{port}')
      if not _is_session(block):
        blocks.append((block.document, code))
    folder = pathlib.Path(absltest.get_default_test_tmpdir(), 'code_blocks')
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'blocks.json').write_text(json.dumps(blocks))
    cls._output = fresh_python.run('-c', _RUNNER, cwd=folder)
    cls._printed = []
    if not cls._output.status:
      printed = json.loads((folder / 'printed.json').read_text())
      cls._printed = [(name, text) for (name, _), text in zip(blocks, printed)]

  @classmethod
  def tearDownClass(cls):
    for worker in cls._workers:
      with contextlib.suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
      worker.wait()
    super().tearDownClass()

  def test_run_without_another_word(self):
    self.assertTrue(self._are_served)
    self.assertEqual(self._output.stderr, '')
    self.assertEqual(self._output.status, 0)
    self.assertGreaterEqual(
      {name for name, _ in self._printed},
      {
        'README.md',
        'differential_privacy.md',
        'migration.md',
        'several_machines.md',
      },
    )

  def test_readme_example_prints_what_readme_says(self):
    self.assertLessEqual(len(_blocks('python')[0].code.splitlines()), 20)
    printed = self._printed[0][1]
    promised = _blocks('text')[0].code
    self.assertEqual(_NUMBER.sub('#', printed), _NUMBER.sub('#', promised))
    for found, said in zip(_NUMBER.findall(printed), _NUMBER.findall(promised)):
      # Rotation and rounding are random: the promise is about the size.
      self.assertBetween(float(found), 0.7 * float(said), 1.4 * float(said))

  def test_private_training_prints_what_its_page_says(self):
    """No metric leaves a client; the round is not refused and does not wrap."""
    page = 'differential_privacy.md'
    printed = next(text for name, text in self._printed if name == page)
    promised = next(b for b in _blocks('text') if b.document == page)
    self.assertEqual(printed, promised.code)

  def test_migration_example_trains(self):
    (printed,) = (
      text for name, text in self._printed if name == 'migration.md'
    )
    rounds = re.findall(
      r'round (\d): loss (\d+\.\d+), bin size \d+\.\d+, 1024 bytes', printed
    )
    self.assertEqual([number for number, _ in rounds], ['1', '2', '3'])
    self.assertLess(float(rounds[2][1]), float(rounds[0][1]))


class _NumbersChecker(doctest.OutputChecker):
  """Numbers may differ in the last digit that a document gives."""

  def check_output(self, want, got, optionflags):
    return printed_numbers.same_text(got, want)


class SessionsTest(absltest.TestCase):
  def test_sessions_answer_what_they_say(self):
    sessions = [block for block in _blocks('python') if _is_session(block)]
    self.assertGreaterEqual(len(sessions), 2)
    runner = doctest.DocTestRunner(
      _NumbersChecker(), optionflags=doctest.ELLIPSIS
    )
    report = io.StringIO()
    for block in sessions:
      test = doctest.DocTestParser().get_doctest(
        block.code, {}, block.document, block.document, 0
      )
      self.assertNotEmpty(test.examples)
      runner.run(test, out=report.write)
    self.assertEqual(runner.failures, 0, report.getvalue())

  def test_the_planner_prints_the_tables_of_the_documents(self):
    shells = [b for b in _blocks('shell') if '--noise_multiplier=' in b.code]
    tables = [b for b in _blocks('text') if 'noise/signal' in b.code]
    self.assertLen(shells, 2)
    self.assertLen(tables, 2)
    for shell, table in zip(shells, tables):
      python, *arguments = shlex.split(shell.code.replace('\\\n', ' '))
      self.assertEqual(python, 'python')
      self.assertEqual(arguments.pop(0), '-m')
      printed = binary_runner.run_as_main(*arguments).stdout
      self.assertTrue(printed_numbers.same_text(printed, table.code), printed)


if __name__ == '__main__':
  absltest.main()
