# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""docs/state.md lists the fields that states have, and no others."""

import functools
import math
import pathlib
import re

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow_federated as tff

import tff_autotune_secagg as autotune

_PAGE = pathlib.Path(__file__).parents[2] / 'docs' / 'state.md'
_VALUE_TYPE = tff.TensorType(np.float32, [1024])
_WEIGHT_TYPE = tff.TensorType(np.float32)


def _rows(heading: str) -> list[list[str]]:
  """Cells of the rows of all tables below a heading of the page."""
  section = _PAGE.read_text(encoding='utf-8').partition(f'\n## {heading}\n')[2]
  lines = section.partition('\n## ')[0].splitlines()
  rows = [
    [c.strip() for c in x.split('|')[1:-1]] for x in lines if x[:1] == '|'
  ]
  return [row for row in rows if not set(row[0]) <= {'-'}]


def _leaves(state_type: tff.Type, path: str = '') -> dict[str, str]:
  """Types of a state's leaves by their paths; empty parts are no leaves."""
  if not isinstance(state_type, tff.StructType):
    return {path: str(state_type)}
  leaves = {}
  elements = tff.structure.iter_elements(state_type)
  for index, (name, element) in enumerate(elements):
    part = str(index) if name is None else name
    leaves.update(_leaves(element, f'{path}/{part}' if path else part))
  return leaves


def _state_leaves(factory) -> dict[str, str]:
  is_weighted = isinstance(factory, tff.aggregators.WeightedAggregationFactory)
  process = factory.create(_VALUE_TYPE, *[_WEIGHT_TYPE] * is_weighted)
  return _leaves(process.initialize.type_signature.result.member)


@functools.lru_cache(maxsize=None)
def _autotuned_leaves(**options) -> dict[str, str]:
  return _state_leaves(autotune.autotuned_secure_aggregator(**options))


class StatePageTest(parameterized.TestCase):
  @parameterized.named_parameters(
    (
      'autotuned',
      'The autotuned aggregator',
      _autotuned_leaves,
    ),
    (
      'predicted',
      'With a prediction',
      lambda: {
        path: leaf
        for path, leaf in _autotuned_leaves(predict_sum=True).items()
        if path.startswith('inner_agg/inner_agg/value/')
      },
    ),
    (
      'private',
      'Distributed differential privacy',
      lambda: _state_leaves(
        autotune.distributed_dp_aggregator(noise_multiplier=1.0, min_clients=10)
      ),
    ),
  )
  def test_fields_are_those_of_the_state(self, heading, leaves_of):
    leaves = leaves_of()
    rows = [r for r in _rows(heading) if len(r) == 4 and r[0] != 'path']
    listed = {}
    for paths, dtype, _, _ in rows:
      for path in re.findall('`([^`]+)`', paths):
        listed[path.replace('...', 'inner_agg/inner_agg/value')] = dtype
    for path, dtype in listed.items():
      below = [p for p in leaves if f'{p}/'.startswith(f'{path}/')]
      if not path.endswith('ed_count_agg'):  # They are empty.
        self.assertNotEmpty(below, path)
      if dtype and path in leaves:
        self.assertEqual(leaves[path], dtype.replace(' [', '['))
      elif dtype:  # A folder: the dtype of all, and how many numbers or fields.
        self._check_folder({p: leaves[p] for p in below}, dtype)
    # Behind `inner_agg` and `value` everything has a row of its own.
    outer = {'inner_agg', 'inner_agg/inner_agg', 'inner_agg/inner_agg/value'}
    for leaf in leaves:
      owners = [p for p in listed if f'{leaf}/'.startswith(f'{p}/')]
      self.assertNotEmpty(set(owners) - outer, leaf)

  def _check_folder(self, leaves, dtype):
    """Checks a row such as 'float32, three' or 'float64, 42 in all'."""
    dtype, count = dtype.split(', ')
    found = [leaf.rstrip(']').partition('[')[::2] for leaf in leaves.values()]
    self.assertEqual({name for name, _ in found}, {dtype})
    num = sum(math.prod(map(int, filter(None, s.split(',')))) for _, s in found)
    self.assertIn(count, (f'{num} in all', {3: 'three'}.get(num)))

  def test_the_switches_nest_as_it_says(self):
    rows = [r for r in _rows('The autotuned aggregator') if len(r) == 2][1:]
    self.assertLen(rows, 4)
    for switches, fields in rows:
      options = eval(f'dict({switches.strip("`")})') if '`' in switches else {}
      leaves = _autotuned_leaves(**options)
      *outer, value = re.findall('`([^`]+)`', fields)
      self.assertIn(f'{value}/settings/dim', leaves)
      for leaf in leaves:
        self.assertTrue(
          any(f'{leaf}/'.startswith(f'{path}/') for path in (*outer, value)),
          leaf,
        )
    # Weighted or not.
    self.assertEqual(_autotuned_leaves(weighted=False), _autotuned_leaves())


if __name__ == '__main__':
  absltest.main()
