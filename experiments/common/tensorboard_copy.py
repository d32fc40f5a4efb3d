# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""A copy of result rows for TensorBoard."""

import shutil
from typing import Any, Iterator, Mapping


class TensorBoardCopy:
  """Writes the numbers of round rows as TensorBoard scalars.

  The folder of the run is made anew from the rows at hand each time it is
  opened, so that a resumed run shows no point twice.
  """

  def __init__(self, folder: str, rows: Iterator[Mapping[str, Any]] = ()):
    import tensorflow as tf  # Reading results must not need TensorFlow.

    self._tf = tf
    shutil.rmtree(folder, ignore_errors=True)
    self._writer = tf.summary.create_file_writer(folder)
    for row in rows:
      self.write(row)

  def write(self, row: Mapping[str, Any]) -> None:
    with self._writer.as_default(step=row['round']):
      for key, value in _scalars(row):
        self._tf.summary.scalar(key, value)
    self._writer.flush()

  def close(self) -> None:
    self._writer.close()


def _scalars(row, prefix=''):
  for key, value in row.items():
    if isinstance(value, Mapping):
      yield from _scalars(value, f'{prefix}{key}/')
    elif isinstance(value, (bool, int, float)) and key != 'round':
      yield prefix + key, float(value)
