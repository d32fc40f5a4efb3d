# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Quantization over an unbounded range and reduction modulo k."""

import collections
from typing import Optional, Union

import tensorflow_federated as tff

from tff_autotune_secagg import _checks
from tff_autotune_secagg.factories import state_guard
from tff_autotune_secagg.factories import value_types
from tff_autotune_secagg.numerics import quantization
from tff_autotune_secagg.numerics import round_codec
from tff_autotune_secagg.numerics import seeds
from tff_autotune_secagg.numerics import tuning


class QuantizeModFactory(tff.aggregators.UnweightedAggregationFactory):
  """Sums float structures as residues modulo `modulus`.

  At clients: each entry is divided by the current bin size, rounded at random
    to a neighbouring integer and reduced to `0 .. modulus - 1`. A client with
    an entry that is not finite sends zeros and is counted. One whose entries
    are all 0 sends zeros, too: it adds no rounding noise and no dither.
  At server: a residue of the inner sum is read as the integer nearest to 0 in
    its class and multiplied by the same bin size, or decoded to its posterior
    mean.
  Types: `value_type` is a structure of float16, bfloat16, float32 and float64
    tensors. The inner factory is created for int32 tensors of the same shapes
    and must return their sum modulo `modulus`. The result type equals
    `value_type`.
  State: `settings`, `seed` (int64 [2]) and `round` for dither, `tuner` (owned
    by the tuner, opaque here; empty for a fixed bin size) and `inner`.
  Measurements: `bin_size` (units of the values, the one of this round; of a
    calibration round the one before), `calibrating`, `blind`, `zero_sum`,
    `modulus_too_small` (bools, about this round), `sum_stddev` (fitted root
    mean square of an entry of the true sum), `wrap_probability` (fitted share
    of wrapped entries), `predicted_nmse`, `num_clients` (whose update is not
    0), `rejected_clients`, `bits_per_coordinate`, `bytes_per_client` (payload
    of the residues) and `inner`.
  Randomness: stochastic rounding draws one fresh seed per client and round;
    leaves of a structure use streams of their own. Dither uses the round's
    seed.

  Guarantees: with `Decoding.CENTRED` and a fixed bin size the result has mean
    equal to the sum and variance at most `num_clients * bin_size**2 / 4` per
    entry, if no entry of the rounded sum leaves half a period. With
    `Decoding.POSTERIOR_MEAN` the expected error energy is at most that of the
    sum itself, if entries are normal around 0, as after a rotation.
  Limits: an entry outside half a period is off by a multiple of
    `modulus * bin_size`. An entry of 2**30 bins or more, or of 2**21 periods,
    in one client is replaced by a random residue.
  Secure signals: beside the residues, two counts by
    `tff.federated_secure_sum`: clients whose update is not 0, and rejected
    ones.

  Reference: Bonawitz et al. (2019, arXiv:1912.00131).
  """

  def __init__(
    self,
    inner_factory: tff.aggregators.UnweightedAggregationFactory,
    *,
    modulus: int,
    bin_size: Union[float, tuning.WrappedNormalTuner],
    rounding: quantization.Rounding = quantization.Rounding.STOCHASTIC,
    decoding: quantization.Decoding = quantization.Decoding.CENTRED,
    seed: Optional[int] = None,
  ):
    """Initializes the factory.

    Args:
      inner_factory: sums int32 structures modulo `modulus`, such as
        `ModularSecureSumFactory`.
      modulus: int in 2 .. 2**30.
      bin_size: positive float for a fixed bin size, in units of the values, or
        a `WrappedNormalTuner` of the same modulus and rounding.
      rounding: `Rounding` of the clients.
      decoding: `Decoding` of the server. With a tuner, calibration and blind
        rounds are decoded to the posterior mean whatever is chosen.
      seed: of the dither; int of 0 .. 2**63 - 1, or None to draw one in every
        `initialize`.

    Raises:
      TypeError, ValueError: an argument is of the wrong kind or out of range,
        or the tuner is of another modulus or rounding.
    """
    self._inner_factory = value_types.check_sum_factory(
      'inner_factory', inner_factory
    )
    modulus = _checks.check_modulus(modulus)
    rounding = _checks.check_enum('rounding', rounding, quantization.Rounding)
    decoding = _checks.check_enum('decoding', decoding, quantization.Decoding)
    tuner = None
    if isinstance(bin_size, tuning.WrappedNormalTuner):
      tuner = bin_size
      _checks.check_equal('bin_size.modulus', tuner.modulus, 'modulus', modulus)
      _checks.check_equal(
        'bin_size.rounding', tuner.rounding, 'rounding', rounding
      )
    else:
      bin_size = _checks.check_float(
        'bin_size', bin_size, at_least=1e-30, at_most=1e30
      )
    self._codec = round_codec.Codec(
      modulus, rounding, decoding, tuner, bin_size
    )
    self._seed = _checks.check_seed(seed)

  def create(self, value_type) -> tff.templates.AggregationProcess:
    """Creates the process.

    Args:
      value_type: structure of float tensors of defined shape.

    Returns:
      A `tff.templates.AggregationProcess`.

    Raises:
      TypeError: `value_type` holds something else.
    """
    value_types.check_floats(value_type)
    codec = self._codec
    settings = codec.settings

    @tff.tensorflow.computation
    def own_state():
      return collections.OrderedDict(
        settings=state_guard.as_state(settings),
        **seeds.initial_state(self._seed, seeds.DITHER_STREAM),
        tuner=codec.initial_tuner_state(),
      )

    own_type = own_state.type_signature.result

    @tff.tensorflow.computation(own_type)
    def broadcast_values(state):
      return codec.bin_sizes(state['tuner']), seeds.round_seed(state)

    bins_type, seed_type = broadcast_values.type_signature.result

    @tff.tensorflow.computation(value_type, bins_type, seed_type)
    def encode(value, bin_sizes, shared_seed):
      return codec.encode(value, bin_sizes, shared_seed, value_type)

    residues_type, counts_type = encode.type_signature.result
    inner_process = self._inner_factory.create(residues_type)

    @tff.tensorflow.computation(own_type, residues_type, counts_type)
    def decode(state, residues, counts):
      result, tuner_state, measurements = codec.decode(
        residues,
        counts,
        state['tuner'],
        seeds.round_seed(state),
        value_type,
      )
      next_state = collections.OrderedDict(
        settings=state_guard.checked(
          state['settings'], settings, 'QuantizeModFactory'
        ),
        **seeds.next_state(state),
        tuner=tuner_state,
      )
      return result, next_state, measurements

    @tff.federated_computation
    def init_fn():
      own = tff.federated_eval(own_state, tff.SERVER)
      return _join(own, inner_process.initialize())

    @tff.federated_computation(
      init_fn.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
    )
    def next_fn(state, value):
      # Server to clients.
      own = tff.federated_zip(
        collections.OrderedDict((k, state[k]) for k in _OWN_FIELDS)
      )
      parameters = tff.federated_broadcast(
        tff.federated_map(broadcast_values, own)
      )

      # Client computation.
      encoded = tff.federated_map(encode, (value, parameters[0], parameters[1]))

      # Inner aggregation.
      inner = inner_process.next(state['inner'], encoded[0])
      counts = tff.federated_secure_sum(encoded[1], max_input=1)

      # Server computation.
      result, own, measurements = tff.federated_map(
        decode, (own, inner.result, counts)
      )
      measurements = tff.federated_zip(
        collections.OrderedDict(
          [(k, measurements[k]) for k in round_codec.MEASUREMENTS]
          + [('inner', inner.measurements)]
        )
      )
      return tff.templates.MeasuredProcessOutput(
        state=_join(own, inner.state),
        result=result,
        measurements=measurements,
      )

    return tff.templates.AggregationProcess(init_fn, next_fn)


_OWN_FIELDS = ('settings', 'seed', 'round', 'tuner')


def _join(own, inner):
  """Returns the factory's state with the inner one beside its own fields."""
  fields = [(k, own[k]) for k in _OWN_FIELDS]
  return tff.federated_zip(collections.OrderedDict(fields + [('inner', inner)]))
