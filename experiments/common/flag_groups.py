# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The flags that experiment binaries share, in groups.

`define_training` and `define_output` define them, `training_configs` turns them
into configs, and `parse` is the `flags_parser` for `app.run`: its `--help`
prints the groups one by one.
"""

import dataclasses
import sys
from typing import Any, Dict, List, Sequence, Set

from absl import flags

from experiments.common import aggregators
from experiments.common import datasets
from experiments.common import models
from experiments.mean_estimation import estimation
from experiments.training import trainer

FLAGS = flags.FLAGS

# To stay short, smoke runs leave out what comes after so many aggregators: each
# must be compiled. The demo has as many.
_SMOKE_AGGREGATORS = 4

_groups: Dict[str, List[str]] = {}
_checked: Set[str] = set()

# Flags of these names become the fields of `federated_training.Config`.
_FIELD_DEFAULTS = {
  field.name: field.default for field in dataclasses.fields(trainer.Config)
}


def _add(group: str, define, name: str, *args, **kwargs) -> None:
  if name in _groups.get(group, ()):
    return  # Tests load several binaries into one process.
  define(name, *args, **kwargs)
  _groups.setdefault(group, []).append(name)


def _add_field(group, name, summary, lower_bound=None, default=None):
  """Adds a flag for a config field of the same name, type and default."""
  default = _FIELD_DEFAULTS[name] if default is None else default
  if isinstance(default, bool):
    _add(group, flags.DEFINE_boolean, name, default, summary)
  elif isinstance(default, int):
    _add(
      group,
      flags.DEFINE_integer,
      name,
      default,
      summary,
      lower_bound=1 if lower_bound is None else lower_bound,
    )
  else:
    _add(
      group,
      flags.DEFINE_float,
      name,
      default,
      summary,
      lower_bound=0.0 if lower_bound is None else lower_bound,
    )


def _check(name: str, parse) -> None:
  """Reports the `ValueError` of `parse` on any item as a flag error."""
  if name in _checked:
    return
  _checked.add(name)

  def check(values):
    try:
      for value in values:
        parse(value)
    except ValueError as e:
      raise flags.ValidationError(str(e)) from e
    return True

  flags.register_validator(name, check)


def define_training() -> None:
  """Defines the flags of `federated_training.Config` and of repeats."""
  _add(
    'Data',
    flags.DEFINE_enum,
    'dataset',
    'digits',
    datasets.NAMES,
    'The images to train on.',
  )
  _add(
    'Data',
    flags.DEFINE_string,
    'data_dir',
    None,
    'Folder that has the files of the data set, if not the usual one.',
  )
  _add(
    'Data',
    flags.DEFINE_boolean,
    'allow_download',
    False,
    'Let Keras download missing files of the data set.',
  )
  _add_field('Data', 'augment', 'Mirror and shift training images at random.')
  _add(
    'Clients',
    flags.DEFINE_enum,
    'partition',
    'iid',
    ['iid', 'dirichlet'],
    'How training images are split among the clients.',
  )
  _add_field(
    'Clients',
    'dirichlet_concentration',
    'Concentration of the dirichlet partition: smaller is less even.',
  )
  _add_field('Clients', 'num_clients', 'Clients that share the images.')
  _add_field('Clients', 'clients_per_round', 'Clients drawn for a round.')
  _add_field('Clients', 'local_epochs', 'Passes over its images per client.')
  _add_field('Clients', 'batch_size', 'Images in a batch of a client.')
  _add_field('Clients', 'client_learning_rate', 'Step size of the clients.')
  _add_field('Clients', 'client_momentum', 'Momentum of the clients.')
  _add(
    'Model',
    flags.DEFINE_enum,
    'model',
    'digits_cnn',
    models.NAMES,
    'The network.',
  )
  _add_field('Model', 'width', 'Factor on its number of filters.')
  _add_field('Server', 'num_rounds', 'Rounds of training.')
  _add_field('Server', 'eval_every', 'Rounds between two evaluations.')
  _add_field('Server', 'server_learning_rate', 'Factor on the mean update.')
  _add_field('Server', 'server_momentum', 'Momentum of the server.')
  _add(
    'Aggregation',
    flags.DEFINE_multi_string,
    'aggregator',
    ['plain_mean', 'autotuned'],
    'Aggregator with its settings; may be repeated, one run for each. '
    f'{aggregators.describe()}.',
  )
  _check('aggregator', estimation.Config)
  _add(
    'Seeds',
    flags.DEFINE_list,
    'seeds',
    ['1'],
    'Seeds of sampling, batches, initial weights and aggregators; one run '
    'of every aggregator for each.',
  )
  _check('seeds', _seed)
  _add(
    'Seeds',
    flags.DEFINE_integer,
    'partition_seed',
    0,
    'Seed of the partition into clients.',
    lower_bound=0,
  )


def _seed(text: str) -> int:
  if not text.isdigit():
    raise ValueError(f'`seeds` must be nonnegative ints, found {text!r}.')
  return int(text)


def define_output() -> None:
  """Defines the flags of places, pace and noise."""
  _add(
    'Output',
    flags.DEFINE_string,
    'output_dir',
    None,
    'Folder of results and checkpoints; a run that was interrupted there '
    'continues. By default a new folder in ./results.',
  )
  _add(
    'Output',
    flags.DEFINE_integer,
    'checkpoint_every',
    10,
    'Rounds between two checkpoints.',
    lower_bound=1,
  )
  _add(
    'Output',
    flags.DEFINE_boolean,
    'tensorboard',
    True,
    'Write TensorBoard summaries too.',
  )
  _add(
    'Output',
    flags.DEFINE_list,
    'workers',
    [],
    'Addresses host:port of workers that compute the clients, separated by '
    'commas; "python -m tff_autotune_secagg.worker --port=8000" starts one. '
    'By default this machine computes.',
  )
  _add(
    'Output',
    flags.DEFINE_boolean,
    'quiet',
    False,
    'Show no progress; only the closing table.',
  )
  _add(
    'Output',
    flags.DEFINE_boolean,
    'smoke',
    False,
    'Shrink everything to seconds, on random images: shows that it runs.',
  )


def define_mean_estimation() -> None:
  """Defines the flags of `mean_estimation.Config` and of its combinations."""
  _add(
    'Vectors',
    flags.DEFINE_list,
    'vectors',
    ['dense'],
    f'Kinds of vectors, of {", ".join(estimation.KINDS)}; recorded are '
    'client updates of a training run with the settings below.',
  )
  _check('vectors', lambda kind: estimation.Config('plain_mean', vectors=kind))
  _add(
    'Vectors',
    flags.DEFINE_integer,
    'dim',
    10_000,
    'Entries of a synthetic vector.',
    lower_bound=1,
  )
  _add(
    'Vectors',
    flags.DEFINE_integer,
    'settling_rounds',
    3,
    'First rounds, which figures leave out.',
    lower_bound=0,
  )
  _add(
    'Vectors',
    flags.DEFINE_list,
    'bits',
    ['4', '8'],
    'Bits per coordinate: what {bits} and {modulus} in an aggregator stand '
    'for; {max} stands for the largest entry.',
  )
  _check('bits', _seed)


def mean_estimation_configs() -> List[estimation.Config]:
  """All combinations of the flags, shrunken if `--smoke` says so."""
  settings = dict(
    num_clients=FLAGS.clients_per_round,
    dim=FLAGS.dim,
    num_rounds=FLAGS.num_rounds,
    settling_rounds=FLAGS.settling_rounds,
  )
  run_seeds, bits = (
    [_seed(s) for s in FLAGS.seeds],
    [int(b) for b in FLAGS.bits],
  )
  aggregators = FLAGS.aggregator
  if FLAGS.smoke:
    settings.update(num_clients=2, dim=100, num_rounds=2, settling_rounds=1)
    run_seeds, bits, aggregators = run_seeds[:1], bits[-1:], aggregators[:2]
  return estimation.configs(
    aggregators, bits, FLAGS.vectors, run_seeds, **settings
  )


def define_results() -> None:
  """Defines the flags of binaries that read results."""
  _add('Input', flags.DEFINE_list, 'results', None, 'Files of result rows.')
  _add(
    'Input',
    flags.DEFINE_multi_string,
    'select',
    [],
    'Keep only rows whose config has this setting=value; may be repeated, '
    'then all must hold. Values of one setting are separated by |, and a '
    'prefix of the text is enough.',
  )


def define_plot(choices, with_results: bool = True) -> None:
  """Defines the flags of binaries that draw.

  Args:
    choices: Further enum flags: name to (default, values, help).
    with_results: Whether the binary reads results, of which a title speaks.
  """
  if with_results:
    define_results()
    _add('Output', flags.DEFINE_string, 'title', '', 'Written above.')
  _add(
    'Output',
    flags.DEFINE_string,
    'output',
    None,
    'Picture to write; its suffix says how.',
  )
  for name, (default, values, summary) in choices.items():
    _add('Output', flags.DEFINE_enum, name, default, values, summary)


def sweep_options() -> Dict[str, Any]:
  """Keyword arguments of `sweep`'s classes that the flags decide."""
  names = ('data_dir', 'allow_download', 'quiet', 'workers')
  return {name: FLAGS[name].value for name in names}


def require(*names: str) -> None:
  """Exits with status 1 and a sentence if one of these flags is not given.

  Not absl's `required`, which would hold for every binary of a process.

  Args:
    *names: Names of flags.
  """
  missing = [f'--{name}' for name in names if FLAGS[name].value is None]
  if missing:
    sys.stderr.write(
      f'These flags must be given: {", ".join(missing)}.\nTry --help.\n'
    )
    sys.exit(1)


def select_rows(rows):
  """Keeps the rows that `--select` asks for.

  Args:
    rows: Joined rows.

  Returns:
    Those whose config has all the selected settings.

  Raises:
    ValueError: If none is left; the message says what there is.
  """
  kept = rows
  for condition in FLAGS.select:
    key, _, values = condition.partition('=')
    before, kept = (
      kept,
      [
        r
        for r in kept
        if key in r['config']
        and str(r['config'][key]).startswith(tuple(values.split('|')))
      ],
    )
    if not kept:
      found = sorted({str(r['config'].get(key)) for r in before})
      raise ValueError(
        f'`select` must leave some rows, found none with {condition!r}; the '
        f'values of {key!r} are {", ".join(found)}.'
      )
  return kept


def recording_config() -> trainer.Config:
  """The training run whose client updates mean estimation records."""
  return _training_config('plain_mean', FLAGS.seeds[0])


def _training_config(aggregator, seed):
  fields = {
    name: getattr(FLAGS, name)
    for name in _FIELD_DEFAULTS
    if name in FLAGS and name not in ('aggregator', 'smoke')
  }
  config = trainer.Config(**fields, aggregator=aggregator, seed=_seed(seed))
  return trainer.smoke(config) if FLAGS.smoke else config


def training_configs() -> List[trainer.Config]:
  """One config for each seed and aggregator of the flags."""
  run_seeds, aggregators = FLAGS.seeds, FLAGS.aggregator
  if FLAGS.smoke:
    run_seeds, aggregators = run_seeds[:1], aggregators[:_SMOKE_AGGREGATORS]
  return [
    _training_config(aggregator, seed)
    for seed in run_seeds
    for aggregator in aggregators
  ]


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


def help_text(summary: str) -> str:
  """The text of `--help`: the flags in their groups, with defaults."""
  lines = [summary.strip(), '']
  for group, names in _groups.items():
    lines.append(f'{group}:')
    for name in names:
      flag = FLAGS[name]
      default = flag.default_as_str
      if flag.boolean:
        head = f'--[no]{name}'
      elif isinstance(flag, flags.EnumFlag):
        head = f'--{name}=<{"|".join(flag.parser.enum_values)}>'
      else:
        head = f'--{name}=...'
      # absl puts the choices before the text of an enum, and a remark behind
      # that of a repeated flag; the heads here say both.
      text = flag.help.split('>: ', 1)[-1].split(';\n', 1)[0]
      note = '' if default is None else f' Default: {default}.'
      lines.append(f'  {head}')
      lines.append(flags.text_wrap(text + note, 80, '      '))
    lines.append('')
  lines.append(
    '--flagfile=FILE reads flags from a file; '
    '--helpfull lists the flags of all libraries.'
  )
  return '\n'.join(lines)


def parse(argv: Sequence[str]) -> Sequence[str]:
  """Parses `argv` into `FLAGS`, as the `flags_parser` of `app.run`.

  Args:
    argv: The command line, program first.

  Returns:
    What is left of it. Exits with status 0 after `--help` and 1, with one
    sentence, after a wrong flag.
  """
  if any(a in ('--help', '-help', '-h', '-?') for a in argv[1:]):
    print(help_text(sys.modules['__main__'].__doc__ or ''))
    sys.exit(0)
  try:
    rest = FLAGS(argv)
  except flags.Error as e:
    sys.stderr.write(f'{e}\nTry --help.\n')
    sys.exit(1)
  if len(rest) > 1:
    sys.stderr.write(
      f'Arguments must be flags like --name=value, found {rest[1]!r}.\n'
      'Try --help.\n'
    )
    sys.exit(1)
  return rest
