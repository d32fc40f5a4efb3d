# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `seed_sources`."""

import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_autotune_secagg.numerics import seeds
from tff_autotune_secagg.numerics.privacy import seed_sources


def _drawn(**options):
  return tf.random.uniform([2], 0, 9, tf.int64, **options)


def _frozen():
  return tf.constant(np.frombuffer(os.urandom(16), np.int64))


def _drawn_beside():
  _drawn()
  return tf.constant([1, 2], tf.int64)


def _of_a_file(name):
  return tf.ensure_shape(tf.io.decode_raw(tf.io.read_file(name), tf.int64), [2])


def _drawn_on_a_condition(true_fn):
  condition = tf.compat.v1.placeholder_with_default(True, [])
  return tf.cond(condition, true_fn, _frozen)


def _under_a_seed():
  tf.compat.v1.set_random_seed(1)
  return _drawn()


def _dataset(*tensors):
  return tf.data.Dataset.from_tensors(*tensors).get_single_element()


_GENERATOR = tf.random.Generator

# Seeds, and whether another one can come in the next run of their graph.
_CASES = dict(
  system=(seeds.system_seed, True),
  private=(seeds.private_seed, True),
  split=(lambda: seeds.split(seeds.private_seed(), 1)[0], True),
  drawn=(_drawn, True),
  drawn_in_a_function=(lambda: tf.function(_drawn)(), True),
  drawn_on_a_condition=(lambda: _drawn_on_a_condition(_drawn), True),
  mixed_with_a_constant=(lambda: _drawn() + _frozen(), True),
  of_a_generator=(
    lambda: _GENERATOR.from_non_deterministic_state().uniform(
      [2], 0, 9, tf.int64
    ),
    True,
  ),
  frozen=(_frozen, False),
  frozen_in_a_function=(lambda: tf.function(_frozen)(), False),
  frozen_on_a_condition=(lambda: _drawn_on_a_condition(_frozen), False),
  frozen_in_a_variable=(
    lambda: tf.compat.v1.Variable(_frozen(), use_resource=True).value(),
    False,
  ),
  frozen_in_a_dataset=(lambda: _dataset(_frozen()), False),
  of_a_file_that_is_read_once=(lambda: _of_a_file('/dev/urandom'), False),
  drawn_beside=(_drawn_beside, False),
  of_a_fixed_seed=(lambda: _drawn(seed=3), False),
  of_a_fixed_seed_in_a_function=(
    lambda: tf.function(lambda: _drawn(seed=3))(),
    False,
  ),
  under_a_seed=(_under_a_seed, False),
  of_a_generator_with_a_seed=(
    lambda: _GENERATOR.from_seed(1).uniform([2], 0, 9, tf.int64),
    False,
  ),
)


class HasSourceTest(parameterized.TestCase):
  @parameterized.named_parameters(
    (name, seed_fn, expected) for name, (seed_fn, expected) in _CASES.items()
  )
  def test_tells_what_may_change_from_what_cannot(self, seed_fn, expected):
    with tf.Graph().as_default():
      seed = tf.convert_to_tensor(seed_fn())
      self.assertEqual(seed_sources.has_source(seed), expected)

  def test_a_tensor_from_outside_is_a_constant(self):
    outside = tf.constant([1, 2], tf.int64)
    found = []

    @tf.function
    def trace():
      found.append(seed_sources.has_source(outside))
      found.append(seed_sources.has_source(outside + 0))
      found.append(seed_sources.has_source(seeds.system_seed()))
      return 0

    trace()
    self.assertEqual(found, [False, False, True])


if __name__ == '__main__':
  absltest.main()
