# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command line of a binary: flags, flag files, errors and exit status.

A binary imports this before all that loads TensorFlow, which it does in its
`main`: `--help` and wrong flags are answered at once. What a user did wrong
ends in one sentence and status 1, Ctrl-C in one and status 130. All else is a
fault of the code and keeps its traceback.
"""

import atexit
import contextlib
import logging as standard_logging
import os
import sys
from typing import Callable, List, Optional, Sequence

from absl import app
from absl import flags
from absl import logging

from experiments.common import quiet

FLAGS = flags.FLAGS

INTERRUPTED_STATUS = 130  # What shells report for a program ended by Ctrl-C.


class UserError(ValueError):
  """A sentence that tells the user what to change."""


@contextlib.contextmanager
def user_errors():
  """Within it, a ValueError is a fault of the user's settings or files."""
  try:
    yield
  except ValueError as e:
    raise UserError(str(e)) from e


def run(
  main: Callable[[], Optional[int]],
  *,
  required: Sequence[str] = (),
  flag_file: Optional[str] = None,
  on_interrupt: str = 'Interrupted.',
) -> None:
  """Runs a binary and exits.

  Args:
    main: Its main function, which takes nothing and returns the exit status.
    required: Flags that must have a value.
    flag_file: Path of a flag file whose values are the flags' defaults.
    on_interrupt: What Ctrl-C prints.
  """
  quiet.silence()
  atexit.register(_let_go_of_tffs_context)
  # Not `app.run`: TensorFlow breaks Keras where it is imported within that, as
  # it then sets up its devices too early.
  app.define_help_flags()
  logging.use_absl_handler()
  # A warning between lines of progress needs no time and no thread.
  logging.get_absl_handler().setFormatter(
    standard_logging.Formatter('%(levelname)s: %(message)s')
  )
  files = [] if flag_file is None else [f'--flagfile={flag_file}']
  try:
    parse([sys.argv[0], *files, *sys.argv[1:]], required)
  except flags.Error as e:
    _end(e)
  except SystemExit:
    sys.exit(0)  # Only --help ends so, and absl counts it as a failure.
  try:
    sys.exit(main())
  except (UserError, OSError) as e:
    _end(e)
  except KeyboardInterrupt:
    print(f'\n{on_interrupt}', file=sys.stderr)
    sys.exit(INTERRUPTED_STATUS)


def _let_go_of_tffs_context():
  """Lets go of TFF's own default context before Python ends.

  Its destructor needs modules that Python, in some runs, has cleared when it
  gets there, and prints an ignored exception then.
  """
  tff = sys.modules.get('tensorflow_federated')
  if tff is not None:

    class NoContext(tff.framework.SyncContext):
      def invoke(self, comp, arg):
        raise RuntimeError('Python must be running, found that it ends.')

    tff.framework.set_default_context(NoContext())


def _end(error):
  sentence = str(error)
  if isinstance(error, OSError) and error.strerror:
    where = '' if error.filename is None else f'{error.filename!r}: '
    sentence = f'{where}{error.strerror}.'
  print(sentence, file=sys.stderr)
  sys.exit(1)


def parse(argv: Sequence[str], required: Sequence[str] = ()) -> List[str]:
  """Parses a command line.

  What flag files say are defaults: a flag of the command line takes the place
  of all that a file says of it, wherever it stands.

  Args:
    argv: The program and its arguments.
    required: Flags that must have a value.

  Returns:
    The program alone.

  Raises:
    flags.Error: Something is wrong with the arguments; a sentence says what.
  """
  files, rest = [], []
  words = iter(argv[1:])
  for word in words:
    name, equals, value = word.partition('=')
    if name in ('--flagfile', '-flagfile'):
      files.append(value if equals else next(words, ''))
    else:
      rest.append(word)
  _set_defaults(files)
  left = FLAGS([argv[0], *rest])
  if len(left) > 1:
    raise flags.Error(
      f'Arguments must be flags like --name=value, found {left[1]!r}.'
    )
  for name in required:
    if FLAGS[name].value in (None, []):
      raise flags.Error(f'--{name} must have a value, found none.')
  return left


def _set_defaults(paths):
  """Makes what flag files say the defaults of the flags."""
  given = {}
  for path in paths:
    if not os.path.isfile(path):
      raise flags.Error(f'--flagfile must name a file, found {path!r}.')
    in_file = {}
    for word in FLAGS.read_flags_from_files([f'--flagfile={path}']):
      name, equals, value = word.lstrip('-').partition('=')
      if not equals:
        is_no = name not in FLAGS and name.startswith('no')
        name, value = (name[2:], 'false') if is_no else (name, 'true')
      if name not in FLAGS:
        raise flags.Error(
          f'{path!r} must hold flags of this binary, found {word!r}.'
        )
      in_file.setdefault(name, []).append(value)
    given.update(in_file)
  for name, values in given.items():
    is_list = isinstance(FLAGS[name], flags.MultiFlag)
    FLAGS.set_default(name, values if is_list else values[-1])


def is_given(name: str) -> bool:
  """Whether a flag stands on the command line itself, not in a flag file."""
  return FLAGS[name].present > 0
