# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Flags that several binaries share, and flags for the fields of a config.

A flag belongs to the module that calls a function here, so that absl's `--help`
lists it there. Tests load several binaries into one process: a flag that is
there already, with the same meaning, is left alone.
"""

import contextlib
import dataclasses
import datetime
import os
import tempfile
from typing import (
  Any,
  Dict,
  Iterator,
  List,
  Mapping,
  Optional,
  Sequence,
  Tuple,
  Union,
)

from absl import flags

from experiments.common import aggregators
from experiments.common import command_line
from experiments.common import datasets
from experiments.common import models
from experiments.common import result_rows
from experiments.common import results_file

FLAGS = flags.FLAGS
flags.disclaim_key_flags()

_definitions: Dict[str, Any] = {}


def _define(define, name: str, *args, **kwargs) -> None:
  definition = (define, args, kwargs)
  if _definitions.get(name) != definition:
    define(name, *args, **kwargs)  # Refuses the name of an unlike flag.
    _definitions[name] = definition


class _NumbersParser(flags.ArgumentParser):
  """Reads `1,2,3` as a list of ints or of floats that are not too small."""

  def __init__(self, number: type, at_least: int):
    self._number = number
    self._at_least = at_least
    self.syntactic_help = (
      f'{number.__name__}s of at least {at_least}, separated by commas'
    )

  def parse(self, argument) -> List[Any]:
    if isinstance(argument, list):
      return argument
    try:
      numbers = [self._number(item) for item in argument.split(',') if item]
    except ValueError:
      numbers = [self._at_least - 1]
    if not all(number >= self._at_least for number in numbers):
      raise ValueError(f'must be {self.syntactic_help}, found {argument!r}.')
    return numbers


def _define_list_of(name, number, default, summary, at_least) -> None:
  flags.DEFINE(
    _NumbersParser(number, at_least),
    name,
    default,
    summary,
    serializer=flags.ListSerializer(','),
  )


def define_numbers(
  name: str, default: Sequence[Any], summary: str, at_least: int = 0
) -> None:
  """Defines a flag whose value is a list of numbers of the default's type."""
  _define(
    _define_list_of, name, type(default[0]), list(default), summary, at_least
  )


def define_fields(config_class, *, at_least: int = 1, **summaries: str) -> None:
  """Defines a flag for each of some fields of a dataclass.

  Args:
    config_class: A dataclass whose fields of those names have defaults.
    at_least: The smallest value of int fields and of those of lists of ints;
      floats must not be negative.
    **summaries: The help text of each field.
  """
  defaults = {f.name: f.default for f in dataclasses.fields(config_class)}
  for name, summary in summaries.items():
    default = defaults[name]
    if isinstance(default, bool):
      _define(flags.DEFINE_boolean, name, default, summary)
    elif isinstance(default, int):
      _define(flags.DEFINE_integer, name, default, summary, at_least)
    elif isinstance(default, float):
      _define(flags.DEFINE_float, name, default, summary, 0.0)
    elif isinstance(default, str):
      _define(flags.DEFINE_string, name, default, summary)
    elif default and not isinstance(default[0], str):
      define_numbers(name, default, summary, at_least)
    else:
      _define(flags.DEFINE_list, name, list(default), summary)


def read_fields(
  config_class, *names: str, smoke: Optional[Mapping[str, Any]] = None, **others
):
  """Builds a config from flags named as its fields.

  Args:
    config_class: A dataclass.
    *names: Names of flags; by default those of all fields that have one.
    smoke: What fields become with `--smoke`, unless they are given on the
      command line.
    **others: Values of further fields.

  Returns:
    The config; lists become tuples.

  Raises:
    UserError: The values do not go together.
  """
  names = names or [f.name for f in dataclasses.fields(config_class)]
  values = {n: FLAGS[n].value for n in names if n in FLAGS and n not in others}
  values = {
    name: tuple(value) if isinstance(value, list) else value
    for name, value in values.items()
  }
  with command_line.user_errors():
    return config_class(**{**values, **smoke_values(smoke or {})}, **others)


def smoke_values(smoke: Mapping[str, Any]) -> Dict[str, Any]:
  """What `--smoke` changes: nothing without it, and no flag that is given."""
  if not FLAGS.smoke:
    return {}
  return {
    name: value
    for name, value in smoke.items()
    if name not in FLAGS or not command_line.is_given(name)
  }


def _check_aggregators(texts: Sequence[str]) -> bool:
  try:
    for text in texts:
      aggregators.parse(aggregators.fill_in(text, bits=1, largest=1.0))
  except ValueError as e:
    raise flags.ValidationError(str(e)) from e
  return True


def define_compared() -> None:
  """Defines aggregators, seeds and data set of what is compared."""
  _define(
    flags.DEFINE_multi_string,
    'aggregator',
    ['plain_mean', 'autotuned'],
    'Aggregator with its settings; may be repeated, one run for each. '
    f'{aggregators.describe()}.',
  )
  flags.register_validator('aggregator', _check_aggregators)
  define_numbers(
    'seeds',
    [1],
    'Seeds of everything that is drawn but the partition into clients; one run '
    'of every aggregator for each.',
  )
  _define(
    flags.DEFINE_enum,
    'dataset',
    'digits',
    datasets.NAMES,
    'The images to train on.',
  )
  _define(
    flags.DEFINE_string,
    'data_dir',
    None,
    'Folder that has the files of the data set, if not the usual one.',
  )
  _define(
    flags.DEFINE_boolean,
    'allow_download',
    False,
    'Let Keras download missing files of the data set.',
  )


def compared(most_in_smoke: int) -> Tuple[List[int], List[str]]:
  """The seeds and the aggregators of the flags, fewer if `--smoke` says so.

  Args:
    most_in_smoke: Smoke runs leave out what comes after so many aggregators,
      and all seeds but one, unless they are given on the command line.
  """
  seeds, texts = FLAGS.seeds, FLAGS.aggregator
  if FLAGS.smoke and not command_line.is_given('seeds'):
    seeds = seeds[:1]
  if FLAGS.smoke and not command_line.is_given('aggregator'):
    texts = texts[:most_in_smoke]
  return seeds, texts


def define_sweep() -> None:
  """Defines what every sweep over aggregators and seeds has."""
  define_compared()
  _define(
    flags.DEFINE_enum, 'model', 'digits_cnn', models.NAMES, 'The network.'
  )
  _define(
    flags.DEFINE_string,
    'output_dir',
    None,
    'Folder of the results; the same command with the same folder continues '
    'what was interrupted. By default a new folder in ./results; a temporary '
    'one with --smoke.',
  )
  _define(
    flags.DEFINE_list,
    'workers',
    [],
    'Addresses host:port of workers that compute the clients, separated by '
    'commas; "python -m tff_autotune_secagg.worker --port=8000" starts one. '
    'By default this machine computes.',
  )
  _define(
    flags.DEFINE_boolean,
    'quiet',
    False,
    'Show no progress; only the closing table.',
  )
  define_smoke()


def define_smoke() -> None:
  """Defines `--smoke`."""
  _define(
    flags.DEFINE_boolean,
    'smoke',
    False,
    'Shrink everything to seconds, on random data: shows that it runs. Writes '
    'to a temporary place unless the command line names another, and never '
    'into a file with rows of real runs.',
  )


def sweep_options() -> Dict[str, Any]:
  """Keyword arguments of `sweep.AbstractSweep` that the flags decide."""
  names = ('data_dir', 'allow_download', 'quiet', 'workers')
  options = {name: FLAGS[name].value for name in names}
  return dict(options, is_smoke=FLAGS.smoke)


def output_dir(prefix: str) -> str:
  """The folder of `--output_dir`, or one that was not there.

  Args:
    prefix: How the name of a new folder begins. It is in ./results, or where
      temporary files are if it is of a smoke run.
  """
  if FLAGS.smoke and not command_line.is_given('output_dir'):
    return tempfile.mkdtemp(prefix=f'{prefix}-')
  if FLAGS.output_dir:
    return FLAGS.output_dir
  stamp = datetime.datetime.now().strftime('%Y-%m-%d-%H%M%S')
  path = base = os.path.join('results', f'{prefix}-{stamp}')
  number = 2
  while os.path.exists(path):
    path, number = f'{base}-{number}', number + 1
  return path


def define_results(default: Optional[str] = None) -> None:
  """Defines the files of result rows that a binary reads or writes.

  Args:
    default: Of a binary that writes, if it has one.
  """
  _define(
    flags.DEFINE_list,
    'results',
    default,
    'Files of result rows (JSON lines), or folders of sweeps. A binary named '
    'run adds its rows to the one file; others read all.',
  )


@contextlib.contextmanager
def held_results(
  *, is_required: bool = False
) -> Iterator[Union[results_file.ResultsFile, results_file.NoFile]]:
  """Holds the file of `--results` for a binary that adds rows to it.

  With `--smoke` that is a file that is removed afterwards, unless the command
  line itself names another.

  Args:
    is_required: Whether the binary needs a file.

  Yields:
    The file; without the flag, what stores nothing.

  Raises:
    UserError: There are several files or the one that is required is missing,
      another run writes to it, or a smoke run is not to.
    OSError: It cannot be written.
  """
  with contextlib.ExitStack() as stack:
    paths = FLAGS.results
    if FLAGS.smoke and not command_line.is_given('results'):
      folder = stack.enter_context(tempfile.TemporaryDirectory())
      paths = [os.path.join(folder, results_file.NAME)]
    if not paths:
      if is_required:
        raise command_line.UserError('--results must have a value, found none.')
      yield results_file.NoFile()
      return
    if len(paths) > 1:
      raise command_line.UserError(
        f'--results must be one file to write to, found {len(paths)}.'
      )
    file = results_file.ResultsFile(paths[0], is_smoke=FLAGS.smoke)
    stack.enter_context(file.held())
    yield file


def define_select() -> None:
  """Defines the choice among the rows of `--results`."""
  _define(
    flags.DEFINE_multi_string,
    'select',
    [],
    'Keep only rows whose config has this setting=value; may be repeated, '
    'then all must hold. Values of one setting are separated by |, and a '
    'prefix of the text is enough, unless it ends with $.',
  )


def read_rows(
  columns: Sequence[str] = (),
  kind: str = 'round',
  paths: Optional[Sequence[str]] = None,
) -> List[results_file.Row]:
  """The rows of files that `--select` keeps, where there is that flag.

  Args:
    columns: What one row of each file at least must have.
    kind: Of the rows.
    paths: Of the files; by default those of `--results`.

  Raises:
    UserError: A file has no such rows, or none is kept.
    OSError: A file cannot be read.
  """
  found = []
  with command_line.user_errors():
    for path in FLAGS.results if paths is None else paths:
      rows = result_rows.read(path, kind=kind)
      if not any(all(name in row for name in columns) for row in rows):
        raise ValueError(
          f'--results must have rows of kind {kind!r} with '
          f'{", ".join(columns)}, found none in {path!r}: give the rows of '
          'this experiment.'
        )
      found += rows
    return result_rows.select(found, FLAGS.select if 'select' in FLAGS else ())


def define_picture() -> None:
  """Defines the flags of binaries that draw."""
  _define(flags.DEFINE_string, 'title', '', 'Written above.')
  _define(
    flags.DEFINE_string,
    'output',
    None,
    'Picture to write; its suffix says how.',
  )
