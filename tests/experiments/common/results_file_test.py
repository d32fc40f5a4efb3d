# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import errno
import fcntl
import json
import multiprocessing
import os
from unittest import mock

from absl.testing import absltest
import numpy as np

from experiments.common import command_line
from experiments.common import result_rows
from experiments.common import results_file


def _round(run, number, **extra):
  return {'kind': 'round', 'run': run, 'round': number, **extra}


def _append_many(path, run, count):
  file = results_file.ResultsFile(path)
  for i in range(count):
    file.append(_round(run, i, filler='x' * 2000))


class ResultsFileTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._path = os.path.join(self.create_tempdir().full_path, 'r.jsonl')
    self._file = results_file.ResultsFile(self._path)

  def _numbers(self):
    return [r['round'] for r in self._file.rows()]

  def test_rows_come_back_in_order(self):
    for i in range(3):
      self._file.append(_round('a', i))
    self.assertEqual(self._numbers(), [0, 1, 2])

  def test_a_torn_last_line_is_skipped_and_then_replaced(self):
    self._file.append(_round('a', 0))
    whole = json.dumps(_round('a', 1)).encode() + b'\n'
    for cut in range(1, len(whole)):
      with self.subTest(cut=cut):
        with open(self._path, 'rb+') as f:
          f.seek(0, os.SEEK_END)
          f.write(whole[:cut])
        self.assertEqual(self._numbers(), [0])
        self._file.append(_round('a', 1))
        self.assertEqual(self._numbers(), [0, 1])
        self.assertEqual(self._file.drop_rounds_after('a', 0), 1)

  def test_a_file_that_is_one_torn_line_starts_anew(self):
    with open(self._path, 'wb') as f:
      f.write(b'{"ki')
    self._file.append(_round('a', 0))
    self.assertEqual(self._numbers(), [0])

  def test_a_broken_line_in_the_middle_is_named(self):
    with open(self._path, 'wb') as f:
      f.write(b'{"kind": "run", "run": "a"}\nnonsense\n{}\n')
    with self.assertRaisesRegex(ValueError, '^Line 2 of .* found b.nonsense'):
      self._file.rows()

  def test_dropping_rounds_leaves_other_runs_and_descriptions(self):
    self._file.append({'kind': 'run', 'run': 'a', 'config': {}})
    for i in (1, 2, 3):
      self._file.append(_round('a', i))
      self._file.append(_round('b', i))
    self.assertEqual(self._file.drop_rounds_after('a', 1), 2)
    self.assertEqual(self._file.rounds('a'), [1])
    self.assertEqual(self._file.rounds('b'), [1, 2, 3])

  def test_two_processes_do_not_interleave(self):
    context = multiprocessing.get_context('spawn')
    processes = [
      context.Process(target=_append_many, args=(self._path, run, 40))
      for run in 'ab'
    ]
    for process in processes:
      process.start()
    for process in processes:
      process.join()
      self.assertEqual(process.exitcode, 0)
    self.assertEqual(self._file.rounds('a'), list(range(40)))
    self.assertEqual(self._file.rounds('b'), list(range(40)))

  def test_values_of_numpy_and_non_finite_floats_are_written(self):
    self._file.append(
      {
        'kind': 'run',
        'run': 'a',
        'a': np.float32(0.5),
        'b': np.arange(2),
        'c': float('nan'),
        'd': np.inf,
        'e': (np.int64(3), True),
      }
    )
    self.assertEqual(
      self._file.rows(),
      [
        {
          'kind': 'run',
          'run': 'a',
          'a': 0.5,
          'b': [0, 1],
          'c': 'nan',
          'd': 'inf',
          'e': [3, True],
        }
      ],
    )

  def test_read_joins_rows_with_their_config(self):
    self._file.append({'kind': 'run', 'run': 'a', 'config': {'seed': 1}})
    self._file.append(_round('a', 1))
    self.assertEqual(
      result_rows.read(self._path), [_round('a', 1, config={'seed': 1})]
    )

  def test_begin_describes_a_run_once_for_each_environment(self):
    for number in (1, 1, 2, 2):
      self._file.begin('a', {'seed': 1}, {'commit': number}, data='digits')
    row, other = self._file.rows()
    self.assertEqual(row['environment'], {'commit': 1})
    self.assertEqual(other['environment'], {'commit': 2})
    self.assertEqual((row['kind'], row['data']), ('run', 'digits'))
    self.assertNotEmpty(row['started'])

  def test_store_passes_rows_on_when_they_are_on_disk(self):
    stored = self._file.store('a', {}, iter([{'x': 1}, {'x': 2}]), kind='time')
    self.assertEqual(next(stored), {'x': 1})
    self.assertLen(self._file.rows(), 2)
    self.assertEqual(list(stored), [{'x': 2}])
    self.assertEqual(
      [row['x'] for row in result_rows.read(self._path, kind='time')], [1, 2]
    )

  def test_store_replaces_the_rows_of_an_earlier_try(self):
    for number in (1, 2):
      list(self._file.store('a', {}, [dict(x=number)], kind='time'))
      list(self._file.store('b', {}, [dict(x=0)], kind='time'))
    rows = result_rows.read(self._path, kind='time')
    self.assertEqual([(r['run'], r['x']) for r in rows], [('a', 2), ('b', 0)])
    self.assertLen(self._file.rows(), 4)
    # Nothing is lost before there is something to put in its place.
    self.assertEmpty(list(self._file.store('a', {}, [])))
    self.assertLen(self._file.rows(), 4)

  def test_store_missing_measures_each_cell_once(self):
    measured = []

    def measure(cell):
      measured.append(cell)
      return dict(dataclasses.asdict(cell), y=0.5)

    for wanted in ([1], [1, 2], [1, 2]):
      found = list(
        self._file.store_missing('table', map(_Cell, wanted), measure)
      )
    self.assertEmpty(found)
    self.assertEqual(measured, [_Cell(1), _Cell(2)])
    self.assertEqual(self._file.rounds('table'), [1, 2])


@dataclasses.dataclass(frozen=True)
class _Cell:
  x: int
  text: str = 'a'


class HeldTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._folder = self.create_tempdir().full_path
    self._path = os.path.join(self._folder, 'new', 'deep', 'r.jsonl')

  def test_a_second_run_is_refused_until_the_first_ends(self):
    first, second = (results_file.ResultsFile(self._path) for _ in range(2))
    with first.held():
      first.append(_round('a', 1))
      with self.assertRaisesRegex(
        command_line.UserError,
        "^Another run writes to '.*r.jsonl': wait for its end or write to "
        'another place[.]$',
      ):
        with second.held():
          self.fail()
      first.append(_round('a', 2))
    with second.held():
      second.append(_round('a', 3))
    self.assertEqual(second.rounds('a'), [1, 2, 3])

  def test_a_file_system_without_locks_is_said(self):
    error = OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
    with mock.patch.object(fcntl, 'flock', side_effect=error):
      with self.assertRaisesRegex(OSError, "No locks available: '.*r.jsonl"):
        with results_file.ResultsFile(self._path).held():
          self.fail()

  def test_nothing_is_left_where_nothing_was_written(self):
    file = results_file.ResultsFile(self._path)
    with self.assertRaises(KeyError):
      with file.held():
        raise KeyError
    self.assertEmpty(os.listdir(self._folder))

  def test_a_smoke_run_adds_to_smoke_runs_only(self):
    smoke, real = (
      results_file.ResultsFile(self._path, is_smoke=is_smoke)
      for is_smoke in (True, False)
    )
    for number in (1, 2):  # The second continues.
      with smoke.held():
        smoke.begin('a', {}, {})
        smoke.append(_round('a', number))
    real.begin('b', {}, {})
    before = real.rows()
    self.assertEqual([row.get('smoke') for row in before], [True, *[None] * 3])
    with self.assertRaisesRegex(
      command_line.UserError,
      "^--smoke must not add to rows of real runs, found '.*r.jsonl': write to",
    ):
      with smoke.held():
        self.fail()
    self.assertEqual(real.rows(), before)

  def test_what_was_there_stays(self):
    os.makedirs(os.path.dirname(self._path))
    file = results_file.ResultsFile(self._path)
    file.append(_round('a', 1))
    with file.held():
      pass
    self.assertEqual(file.rounds('a'), [1])

  def test_a_place_that_cannot_be_written_is_an_error_at_once(self):
    with open(os.path.join(self._folder, 'new'), 'w'):
      pass
    with self.assertRaises(OSError):
      with results_file.ResultsFile(self._path).held():
        self.fail()
    with self.assertRaises(IsADirectoryError):
      with results_file.ResultsFile(self._folder).held():
        self.fail()
    self.assertEqual(os.listdir(self._folder), ['new'])


class NoFileTest(absltest.TestCase):
  def test_store_passes_rows_on(self):
    rows = [dict(round=1), dict(round=2)]
    stored = results_file.NoFile().store('a', {}, iter(rows), kind='time')
    self.assertEqual(list(stored), rows)


class RunNameTest(absltest.TestCase):
  def test_every_setting_counts(self):
    config = {
      'dataset': 'digits',
      'aggregator': 'autotuned:modulus=16',
      'seed': 1,
      'width': 1.0,
    }
    name = results_file.run_name(config)
    self.assertStartsWith(name, 'digits-autotuned_modulus_16-seed1-')
    self.assertEqual(
      name, results_file.run_name(dict(reversed(config.items())))
    )
    self.assertNotEqual(name, results_file.run_name({**config, 'width': 0.5}))


if __name__ == '__main__':
  absltest.main()
