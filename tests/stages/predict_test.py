# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Histories of predicted sums, without TFF."""

import collections
import functools

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.tuning import wrapped_normal_tuner
from tff_autotune_secagg.stages import predict
from tff_autotune_secagg.stages import quantize
from tff_autotune_secagg.stages import rotate

_VECTOR = (tf.TensorSpec([2048], tf.float32),)
_LEAVES = (
  tf.TensorSpec([30, 50], tf.float64),
  tf.TensorSpec([0], tf.float32),
  tf.TensorSpec([700], tf.float16),
)
_DITHER = modes.Rounding.DITHER


def _options(**tuning):
  tuner = wrapped_normal_tuner.WrappedNormalTuner(**tuning)
  return (
    dict(num_rotations=1, min_dim=1024, seed=3),
    dict(tuner=tuner, seed=4),
  )


class _Unpredicted:
  """The two stages one after the other, as they are without a prediction."""

  def __init__(self, specs, rotation, quantization):
    self._rotate = rotate.RotateStage(list(specs), **rotation)
    self._quantize = quantize.QuantizeStage(
      self._rotate.out_specs, **quantization
    )

  def initial_state(self):
    return self._rotate.initial_state(), self._quantize.initial_state()

  def parameters(self, state):
    return self._rotate.parameters(state[0]), self._quantize.parameters(
      state[1]
    )

  def encode(self, leaves, parameters):
    leaves, _ = self._rotate.encode(leaves, parameters[0])
    return self._quantize.encode(leaves, parameters[1])

  def decode(self, leaves, signals, state):
    leaves, inner, measured = self._quantize.decode(leaves, signals, state[1])
    leaves, outer, _ = self._rotate.decode(leaves, (), state[0])
    return leaves, (outer, inner), measured


class _Server:
  """A stage, traced once, and its state."""

  def __init__(self, made, modulus):
    self._made, self._modulus = made, modulus
    self._parameters = tf.function(made.parameters, autograph=False)
    self._encode = tf.function(made.encode, autograph=False)
    self._decode = tf.function(made.decode, autograph=False)
    self.reset()

  def reset(self):
    self.state = self._made.initial_state()

  def run(self, clients):
    """Sums lists of leaves; returns sum and measurements."""
    parameters = self._parameters(self.state)
    sent = [self._encode(leaves, parameters) for leaves in clients]
    leaves = [
      tf.constant(np.sum(parts, axis=0) % self._modulus, tf.int32)
      for parts in zip(*(leaves for leaves, _ in sent))
    ]
    signals = tf.nest.map_structure(
      lambda *parts: tf.constant(sum(map(int, parts))),
      *(signals for _, signals in sent),
    )
    decoded, self.state, measured = self._decode(leaves, signals, self.state)
    return decoded, {name: x.numpy() for name, x in measured.items()}


@functools.lru_cache(maxsize=None)
def _server(is_predicting, specs=_VECTOR, **tuning):
  rotation, quantization = _options(**tuning)
  if is_predicting:
    made = predict.PredictStage(
      list(specs), rotation=rotation, quantization=quantization
    )
  else:
    made = _Unpredicted(specs, rotation, quantization)
  return _Server(made, tuning['modulus'])


def _new_server(is_predicting, specs=_VECTOR, **tuning):
  server = _server(is_predicting, specs, **tuning)
  server.reset()
  return server


class _Clients:
  """Updates with a part that all have, and one of their own."""

  def __init__(self, seed, specs=_VECTOR, own=1.0):
    self._rng = np.random.default_rng(seed)
    self._specs, self._own = specs, own
    self.turn()

  def turn(self):
    """From now on another part is what all have."""
    self._common = [self._rng.standard_normal(s.shape) for s in self._specs]

  def draw(self, num, size=1.0):
    return [
      [
        tf.constant(
          size * (x + self._own * self._rng.standard_normal(spec.shape)),
          spec.dtype,
        )
        for x, spec in zip(self._common, self._specs)
      ]
      for _ in range(num)
    ]


def _nmse(found, clients):
  """Squared error over the squared norm, over all leaves."""
  error = energy = 0.0
  for leaf, *parts in zip(found, *clients):
    total = np.sum([np.float64(x) for x in parts], axis=0)
    error += np.sum((np.float64(leaf) - total) ** 2)
    energy += np.sum(total**2)
  return error / energy


def _history(server, rounds):
  """Returns errors and measurements of rounds of clients."""
  found = [(clients, server.run(clients)) for clients in rounds]
  errors = [_nmse(leaves, clients) for clients, (leaves, _) in found]
  return np.array(errors), [measured for _, (_, measured) in found]


def _both(rounds, **tuning):
  """Returns the histories with and without a prediction."""
  rounds = list(rounds)
  specs = tuning.pop('specs', _VECTOR)
  return [
    _history(_new_server(is_predicting, specs, **tuning), rounds)
    for is_predicting in (True, False)
  ]


class PredictTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('stochastic', dict(modulus=64)),
    ('dither', dict(modulus=64, rounding=_DITHER)),
    ('leaves', dict(modulus=64, specs=_LEAVES)),
    ('paper', dict(modulus=64, wrap_probability=1e-3)),
  )
  def test_sums_that_are_alike_have_a_fraction_of_the_error(self, options):
    clients = _Clients(1, options.get('specs', _VECTOR))
    rounds = [clients.draw(12) for _ in range(9)]
    (errors, measured), (without, others) = _both(rounds, **options)
    gains = [float(m['prediction_gain']) for m in measured]
    self.assertEqual(gains[:2], [1.0, 1.0])  # Nothing to predict from.
    # Of the sums, a thirteenth is of its round; the mean of sums has noise too.
    self.assertLess(max(gains[4:]), 0.2)
    self.assertLess(np.mean(errors[5:]), 0.3 * np.mean(without[5:]))
    for m, other in zip(measured[2:], others[2:]):
      # The measurement is of the sum, and the forecast of the rest.
      ratio = float(m['sum_stddev']) / float(other['sum_stddev'])
      self.assertAlmostEqual(ratio, 1.0, delta=0.1)
      self.assertLessEqual(float(m['predicted_nmse']), 1.0)
      self.assertNotIn('prediction_gain', other)
    self.assertLess(float(measured[-1]['size_forecast']), 0.6 * 12)

  def test_sums_that_are_not_alike_are_what_they_were(self):
    clients = _Clients(2)
    rounds = []
    for _ in range(8):
      clients.turn()
      rounds.append(clients.draw(5))
    (errors, measured), (without, _) = _both(
      rounds, modulus=64, rounding=_DITHER
    )
    np.testing.assert_allclose(errors, without, rtol=1e-2)
    self.assertEqual({float(m['prediction_gain']) for m in measured}, {1.0})

  @parameterized.product(own=[0.02, 1.0], seed=[3, 4])
  def test_a_prediction_that_fails_costs_one_round(self, own, seed):
    clients = _Clients(seed, own=own)
    rounds = [clients.draw(12) for _ in range(8)]
    clients.turn()
    rounds += [clients.draw(12) for _ in range(7)]
    (errors, measured), (without, _) = _both(rounds, modulus=64)
    self.assertGreater(errors[8], 5 * without[8])  # It did fail,
    self.assertLess(errors[8], 1.05)  # no worse than a round that is dropped,
    # and once: no ladder follows, and two rounds of bins as after any jump.
    self.assertFalse(any(m['calibrating'] for m in measured[1:]))
    self.assertLess(np.max(errors[9:11] / without[9:11]), 3.0)
    self.assertLess(np.max(errors[11:] / without[11:]), 1.5)
    self.assertLess(errors[-1], 0.7 * without[-1])

  def test_cohorts_that_vary_are_predicted(self):
    clients = _Clients(5)
    cohorts = [10, 20, 4, 20, 12, 5, 18, 9, 3, 20, 6, 15]
    rounds = [clients.draw(num) for num in cohorts]
    (errors, measured), (without, _) = _both(rounds, modulus=64)
    self.assertLess(np.mean(errors[6:]), 0.3 * np.mean(without[6:]))
    self.assertLess(max(m['prediction_gain'] for m in measured[6:]), 0.5)

  def test_other_rounds_between_leave_the_prediction_as_it_is(self):
    clients = _Clients(6)
    server = _new_server(True, modulus=64)
    _history(server, [clients.draw(12) for _ in range(6)])
    before = server.state['prediction']
    zeros = [[tf.zeros_like(x) for x in leaves] for leaves in clients.draw(3)]
    broken = [[tf.fill(x.shape, np.nan) for x in zeros[0]]]
    for between in (zeros, broken, zeros[:1]):
      decoded, measured = server.run(between)
      self.assertFalse(np.any(decoded[0]))
      self.assertEqual(int(measured['num_clients']), 0)
      self.assertEqual(float(measured['prediction_gain']), 1.0)
      tf.nest.map_structure(
        np.testing.assert_array_equal, server.state['prediction'], before
      )
    _, (measured,) = _history(server, [clients.draw(12)])
    self.assertLess(float(measured['prediction_gain']), 0.2)
    # A sum a million times as large is blind, and then found.
    errors, found = _history(server, [clients.draw(12, 1e6) for _ in range(5)])
    self.assertTrue(found[0]['blind'])
    self.assertTrue(any(m['calibrating'] for m in found))
    self.assertLess(errors[4], 0.2)

  def test_dither_repeats_bit_for_bit(self):
    clients = _Clients(7)
    rounds = [clients.draw(8) for _ in range(5)]
    found = []
    for _ in range(2):
      server = _new_server(True, modulus=64, rounding=_DITHER)
      found.append([server.run(one)[0][0].numpy() for one in rounds])
    np.testing.assert_array_equal(*found)

  def test_settings_are_those_of_both_parts(self):
    rotation, quantization = _options(modulus=64)
    made = predict.PredictStage(
      list(_VECTOR), rotation=rotation, quantization=quantization
    )
    self.assertEqual(
      made.settings,
      collections.OrderedDict(
        state_format=3, modulus=64, dither=0, dim=2048, num_rotations=1
      ),
    )
    self.assertEqual(made.out_modulus, 64)


if __name__ == '__main__':
  absltest.main()
