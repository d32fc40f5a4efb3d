# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Flags that several binaries share, and flags for the fields of a config.

A flag belongs to the module that calls a function here, so that absl's `--help`
lists it there. Tests load several binaries into one process: a flag that is
there already, with the same meaning, is left alone.
"""

import dataclasses
from typing import Any, Dict, List, Sequence

from absl import app
from absl import flags

from experiments.common import aggregators
from experiments.common import datasets
from experiments.common import models
from experiments.common import result_rows

FLAGS = flags.FLAGS
flags.disclaim_key_flags()

_definitions: Dict[str, Any] = {}


def _define(define, name: str, *args, **kwargs) -> None:
  definition = (define, args, kwargs)
  if _definitions.get(name) != definition:
    define(name, *args, **kwargs)  # Refuses the name of an unlike flag.
    _definitions[name] = definition


class _NumbersParser(flags.ArgumentParser):
  """Reads `1,2,3` as a list of nonnegative ints or of floats."""

  def __init__(self, number: type):
    self._number = number
    self.syntactic_help = f'{number.__name__}s, separated by commas'

  def parse(self, argument) -> List[Any]:
    if isinstance(argument, list):
      return argument
    try:
      numbers = [self._number(item) for item in argument.split(',') if item]
    except ValueError:
      numbers = [-1]
    if any(number < 0 for number in numbers):
      raise ValueError(
        f'must be nonnegative {self.syntactic_help}, found {argument!r}.'
      )
    return numbers


def _define_list_of(name, number, default, summary) -> None:
  flags.DEFINE(
    _NumbersParser(number),
    name,
    default,
    summary,
    serializer=flags.ListSerializer(','),
  )


def define_numbers(name: str, default: Sequence[Any], summary: str) -> None:
  """Defines a flag whose value is a list of numbers of the default's type."""
  _define(_define_list_of, name, type(default[0]), list(default), summary)


def define_fields(config_class, *, at_least: int = 1, **summaries: str) -> None:
  """Defines a flag for each of some fields of a dataclass.

  Args:
    config_class: A dataclass whose fields of those names have defaults.
    at_least: The smallest value of int fields; floats must not be negative.
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
      define_numbers(name, default, summary)
    else:
      _define(flags.DEFINE_list, name, list(default), summary)


def read_fields(config_class, *names: str, **others):
  """Builds a config from flags named as its fields.

  Args:
    config_class: A dataclass.
    *names: Names of flags; by default those of all fields that have one.
    **others: Values of further fields.

  Returns:
    The config; lists become tuples.
  """
  names = names or [f.name for f in dataclasses.fields(config_class)]
  values = {n: FLAGS[n].value for n in names if n in FLAGS and n not in others}
  values = {
    name: tuple(value) if isinstance(value, list) else value
    for name, value in values.items()
  }
  return config_class(**values, **others)


def _check_aggregators(texts: Sequence[str]) -> bool:
  try:
    for text in texts:
      aggregators.parse(aggregators.fill_in(text, bits=1, largest=1.0))
  except ValueError as e:
    raise flags.ValidationError(str(e)) from e
  return True


def define_sweep() -> None:
  """Defines what every sweep over aggregators and seeds has."""
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
  _define(
    flags.DEFINE_enum, 'model', 'digits_cnn', models.NAMES, 'The network.'
  )
  _define(
    flags.DEFINE_string,
    'output_dir',
    None,
    'Folder of the results; a sweep that was interrupted there continues. By '
    'default a new folder in ./results.',
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
    'Shrink everything to seconds, on random data: shows that it runs.',
  )


def sweep_options() -> Dict[str, Any]:
  """Keyword arguments of `sweep.AbstractSweep` that the flags decide."""
  names = ('data_dir', 'allow_download', 'quiet', 'workers')
  return {name: FLAGS[name].value for name in names}


def define_results() -> None:
  """Defines the flags of binaries that read results."""
  _define(flags.DEFINE_list, 'results', None, 'Files of result rows.')
  _define(
    flags.DEFINE_multi_string,
    'select',
    [],
    'Keep only rows whose config has this setting=value; may be repeated, '
    'then all must hold. Values of one setting are separated by |, and a '
    'prefix of the text is enough.',
  )


def read_rows(kind: str = 'round') -> List[result_rows.Row]:
  """The rows of `--results` that `--select` keeps."""
  return result_rows.select(
    result_rows.read(*FLAGS.results, kind=kind), FLAGS.select
  )


def define_picture() -> None:
  """Defines the flags of binaries that draw."""
  _define(flags.DEFINE_string, 'title', '', 'Written above.')
  _define(
    flags.DEFINE_string,
    'output',
    None,
    'Picture to write; its suffix says how.',
  )


def define_output(default: str = None) -> None:
  """Defines the file to which a binary adds its rows."""
  _define(
    flags.DEFINE_string, 'output', default, 'JSON lines file to append to.'
  )


def take_only_flags(argv: Sequence[str]) -> None:
  """Refuses words on the command line that are no flags.

  Args:
    argv: What absl left of the command line, the program first.

  Raises:
    app.UsageError: If there are such words.
  """
  if len(argv) > 1:
    raise app.UsageError(
      f'Arguments must be flags like --name=value, found {argv[1]!r}.'
    )


def set_defaults_from_file(path: str) -> None:
  """Makes the flags of a flag file the defaults of a binary.

  Unlike `--flagfile`, a repeated flag on the command line then replaces the
  values of the file instead of adding to them.

  Args:
    path: The flag file: lines `--name=value`, comments and blank lines.
  """
  given: Dict[str, List[str]] = {}
  with open(path) as f:
    for line in f:
      if line.startswith('--'):
        name, _, value = line[2:].strip().partition('=')
        given.setdefault(name, []).append(value)
  for name, values in given.items():
    is_list = isinstance(FLAGS[name], flags.MultiFlag)
    FLAGS.set_default(name, values if is_list else values[0])
