# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The binaries that draw: from result rows to a picture. They run nothing."""

import os
from typing import Any, Callable, Optional, Sequence

from absl import flags

from experiments.common import command_line
from experiments.common import flag_groups

FLAGS = flags.FLAGS
flags.disclaim_key_flags()


def main_of(
  draw: Callable[..., Any],
  columns: Optional[Sequence[str]] = (),
  kind: str = 'round',
) -> Callable[[], None]:
  """Defines the flags of a binary that draws, and makes its main function.

  Args:
    draw: Takes rows and a title and returns a figure. Imports what it needs
      itself, so that `--help` does not wait for it.
    columns: What rows must have to be drawn; None if none are read, and `draw`
      takes the title alone.
    kind: Of the rows.
  """
  if columns is not None:
    flag_groups.define_results()
    flag_groups.define_select()
  flag_groups.define_picture()

  def main():
    with command_line.user_errors():
      _check_picture(FLAGS.output)
      read = [] if columns is None else [flag_groups.read_rows(columns, kind)]
      from experiments.common import plot_style

      figure = draw(*read, FLAGS.title)
      try:
        print(plot_style.save(figure, FLAGS.output))
      except ValueError as error:  # Matplotlib names what it can write.
        raise ValueError(f'--output: {error}') from error

  return main


def run(main: Callable[[], None]) -> None:
  """Runs what `main_of` returned."""
  names = [name for name in ('results', 'output') if name in FLAGS]
  command_line.run(main, required=names)


def _check_picture(path):
  if not os.path.splitext(path)[1]:
    raise ValueError(f'--output must end in .png or the like, found {path!r}.')
  folder = os.path.dirname(os.path.abspath(path))
  if not os.path.isdir(folder):
    raise ValueError(
      f'--output must lie in a folder that is there, found {path!r}.'
    )
