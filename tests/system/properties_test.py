# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What holds for every structure, modulus, cohort and history.

Cases come from Hypothesis, derandomized: the same in every run. Most work on
the maths that the factories are made of; one compiled process lives through
many histories.
"""

import collections
import functools

from absl.testing import absltest
import hypothesis
from hypothesis import strategies as st
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests import factory_conformance
import tff_autotune_secagg as autotune
from tff_autotune_secagg.numerics import round_codec
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.rotation import randomized_hadamard
from tff_autotune_secagg.numerics.rounding import quantization
from tff_autotune_secagg.numerics.tuning import operating_point

setUpModule = factory_conformance.set_up_context


def _cases(max_examples=25):
  return hypothesis.settings(
    derandomize=True, deadline=None, max_examples=max_examples, database=None
  )


_MODULI = st.one_of(
  st.integers(2, 300), st.integers(2, 2**30), st.sampled_from([2**16, 2**30])
)
_DIMS = st.integers(1, 3000)
_SEEDS = st.integers(0, 2**31)
# Log10 of the size of updates, what the ladder reaches and more.
_LOG_SCALES = st.floats(-12, 8)
_ROUNDINGS = st.sampled_from(list(autotune.Rounding))
_DECODINGS = st.sampled_from(list(autotune.Decoding))


def _seed(number):
  return tf.constant([number, 7], tf.int64)


def _run_round(tuner, state, values, seed):
  """What the server makes of the sum of `values`, [n, dim].

  Operation by operation, as no two cases share a graph.
  """
  codec = round_codec.RoundCodec(
    tuner, [tf.TensorSpec(values.shape[1:], values.dtype)]
  )
  shared_seed = _seed(seed)
  residues = np.zeros(values.shape[1:], np.int64)
  counts = collections.OrderedDict(contributing=0, rejected=0)
  for index, value in enumerate(values):
    (encoded,), found = codec.encode(
      [tf.constant(value)],
      tuner.bin_sizes(state),
      shared_seed,
      _seed(seed + 1 + index),
    )
    residues += encoded.numpy()
    for name in counts:
      counts[name] += int(found[name])
  return codec.decode(
    [tf.constant(residues % tuner.modulus, tf.int32)],
    tf.nest.map_structure(tf.constant, counts),
    state,
    shared_seed,
  )


class RotationProperties(absltest.TestCase):
  @_cases()
  @hypothesis.given(_DIMS, _SEEDS, st.integers(1, 3), st.booleans())
  def test_inverse_undoes_and_norm_stays(self, dim, seed, repeats, double):
    dtype = np.float64 if double else np.float32
    x = np.random.default_rng(seed).normal(size=dim).astype(dtype)
    rotated = randomized_hadamard.rotate(tf.constant(x), _seed(seed), repeats)
    back = randomized_hadamard.inverse_rotate(
      rotated, _seed(seed), dim, repeats
    )
    norm = np.linalg.norm(x)
    tolerance = 1e-13 if double else 1e-5
    np.testing.assert_allclose(np.linalg.norm(rotated), norm, rtol=tolerance)
    self.assertLessEqual(np.linalg.norm(back - x), tolerance * norm)


class EncodingProperties(absltest.TestCase):
  @_cases()
  @hypothesis.given(_MODULI, _DIMS, _SEEDS, _LOG_SCALES, st.booleans())
  def test_residues_are_in_range(self, modulus, dim, seed, log_scale, double):
    dtype = np.float64 if double else np.float32
    x = np.random.default_rng(seed).normal(size=dim) * 10.0**log_scale
    bins = tf.fill([stripes.NUM_STRIPES], np.float32(1e-3))
    residues = quantization.encode(
      tf.constant(x.astype(dtype)), bins, _seed(seed), modulus=modulus
    ).numpy()
    self.assertEqual(residues.shape, (dim,))
    self.assertBetween(residues.min(), 0, modulus - 1)
    self.assertBetween(residues.max(), 0, modulus - 1)

  @_cases(8)
  @hypothesis.given(
    _MODULI, st.integers(1, 40), st.integers(1, 30), _SEEDS, _ROUNDINGS
  )
  def test_decoding_commutes_with_the_modular_sum(
    self, modulus, dim, num_clients, seed, rounding
  ):
    # However often single residues wrap, the sum is off by whole periods and by
    # less than a bin of rounding for each client.
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(num_clients, dim)) * rng.choice([1, 100, 1e4])
    tuner = autotune.FixedBinSize(
      bin_size=1.0, modulus=modulus, rounding=rounding
    )
    state = tuner.initial_state()
    (decoded,), _, _ = _run_round(tuner, state, values, seed)
    self.assertLessEqual(np.max(np.abs(decoded)), modulus / 2)
    off = decoded.numpy() - values.sum(axis=0)
    off -= modulus * np.round(off / modulus)
    self.assertLessEqual(np.max(np.abs(off)), num_clients)


class TunerProperties(absltest.TestCase):
  @_cases(6)
  @hypothesis.given(
    st.integers(2, 2**20),
    _ROUNDINGS,
    _DECODINGS,
    st.one_of(st.none(), st.floats(5e-324, 0.999)),
    st.lists(
      st.tuples(_LOG_SCALES, st.integers(0, 8), st.booleans()),
      min_size=1,
      max_size=3,
    ),
    _SEEDS,
  )
  def test_state_stays_usable_in_every_history(
    self, modulus, rounding, decoding, wrap_probability, history, seed
  ):
    tuner = autotune.WrappedNormalTuner(
      modulus=modulus,
      wrap_probability=wrap_probability,
      rounding=rounding,
      decoding=decoding,
    )
    state = tuner.initial_state()
    rng = np.random.default_rng(seed)
    for log_scale, num_clients, aligned in history:
      values = rng.normal(size=(num_clients, 1024)) * 10.0**log_scale
      if aligned and num_clients:
        values[:] = values[0]
      before = state
      (result,), state, measured = _run_round(
        tuner, state, values.astype(np.float32), seed
      )
      self.assertTrue(np.all(np.isfinite(result)))
      for part in measured.values():
        self.assertTrue(np.isfinite(part) and float(part) >= 0)
      self.assertTrue(np.isfinite(state['bin_size']))
      self.assertGreater(state['bin_size'], 0)
      if not num_clients:
        tf.nest.map_structure(np.testing.assert_array_equal, state, before)
      if measured['blind'] or measured['zero_sum']:
        self.assertEqual(state['bin_size'], before['bin_size'])


class PlannerProperties(absltest.TestCase):
  @_cases(5)
  @hypothesis.given(
    st.integers(1, 10**6), st.integers(2, 29), _ROUNDINGS, st.floats(0, 2)
  )
  def test_predictions_are_in_range_and_fall_with_bits(
    self, num_clients, bits, rounding, uncertainty
  ):
    def predict(modulus):
      return autotune.predicted_nmse(
        num_clients=num_clients,
        modulus=modulus,
        rounding=rounding,
        size_uncertainty=uncertainty,
      )

    error = predict(2**bits)
    self.assertBetween(error, 0, 1)
    self.assertLessEqual(predict(2 ** (bits + 1)), error * (1 + 1e-6))


@functools.lru_cache(maxsize=None)
def _process():
  """One process for all histories: scalars, an empty leaf, three dtypes."""
  value_type = tff.to_type(
    collections.OrderedDict(
      half=tff.TensorType(np.float16, [7]),
      single=tff.TensorType(np.float32, [10, 90]),
      none=tff.TensorType(np.float32, [0]),
      double=tff.TensorType(np.float64),
    )
  )
  factory = autotune.autotuned_secure_aggregator(
    modulus=64,
    zeroing=False,
    clipping=False,
    rounding=autotune.Rounding.DITHER,
    seed=3,
  )
  return factory.create(value_type, tff.TensorType(np.float32))


_ODD = st.sampled_from([None, np.nan, np.inf, 0.0, 1e38, 1e-42])
_CLIENT = st.tuples(
  _ODD, st.sampled_from([1.0, 0.0, 100.0, 0.25, -1.0, np.nan, 1e30])
)
_ROUND = st.tuples(st.floats(-9, 3), st.lists(_CLIENT, max_size=6))


class ProcessProperties(absltest.TestCase):
  @_cases(8)
  @hypothesis.given(st.lists(_ROUND, min_size=1, max_size=4), _SEEDS)
  def test_measurements_keep_their_bounds_in_every_history(self, history, seed):
    process, rng = _process(), np.random.default_rng(seed)
    state = process.initialize()
    for log_scale, clients in history:
      values, weights = [], []
      for odd, weight in clients:
        single = rng.normal(size=(10, 90)) * 10.0**log_scale
        if odd is not None:
          single[:] = odd
        values.append(
          collections.OrderedDict(
            half=np.ones(7, np.float16),
            single=single.astype(np.float32),
            none=np.zeros(0, np.float32),
            double=np.float64(1),
          )
        )
        weights.append(np.float32(weight))
      before = state
      output = process.next(state, values, weights)
      state = output.state
      self._check(before, output, len(clients))
    self.assertEqual(state['value']['round'], len(history))

  def _check(self, before, output, num_clients):
    measured = output.measurements
    inner = measured['value']
    self.assertBetween(measured['rejected_clients'], 0, num_clients)
    self.assertBetween(
      inner['num_clients'], 0, num_clients - measured['rejected_clients']
    )
    self.assertGreaterEqual(measured['weight_sum'], 0)
    self.assertTrue(np.isfinite(measured['weight_sum']))
    for name in ('wrap_probability', 'predicted_nmse'):
      self.assertBetween(inner[name], 0, 1 + 1e-6, name)
    self.assertTrue(np.isfinite(inner['sum_stddev']))
    self.assertGreaterEqual(inner['sum_stddev'], 0)
    self.assertEqual(inner['bits_per_coordinate'], 6)
    self.assertEqual(inner['bytes_per_client'], 1024 * 6 // 8)
    for leaf in output.result.values():
      self.assertTrue(np.all(np.isfinite(leaf)))
    tuner = output.state['value']['inner']['tuner']
    self.assertTrue(np.isfinite(tuner['bin_size']))
    self.assertGreater(tuner['bin_size'], 0)
    if inner['num_clients'] == 0:
      tf.nest.map_structure(
        np.testing.assert_array_equal, tuner, before['value']['inner']['tuner']
      )
      self.assertFalse(np.any(output.result['single']))


class BinSizeProperties(absltest.TestCase):
  @_cases()
  @hypothesis.given(st.floats(5e-324, 1 - 1e-16))
  def test_every_wrap_probability_has_a_half_period(self, probability):
    found = operating_point.normal_quantile(probability)
    self.assertTrue(np.isfinite(found))
    self.assertGreaterEqual(found, 0)


if __name__ == '__main__':
  absltest.main()
