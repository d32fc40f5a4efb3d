# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a runtime gets of the package, and that it runs as the simulation does.

The form's graphs run in plain sessions, and every secure sum is computed under
pairwise masks while clients drop out. With dither nothing is random but what
the state holds, so that the simulation must agree: in every bit of integers,
and in floats but for the last bits. TFF's worker is another build of TensorFlow
than Python's, and adds up in another order. Updates here are multiples of a
power of two, whose rotation is exact in any order.
"""

import dataclasses
import functools
from typing import Any, Mapping
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from experiments.deployment import deployed_rounds
from experiments.deployment import form as deployed_form
from experiments.deployment import masked_sums
from experiments.deployment import plain_graph
from tests import factory_conformance
import tff_autotune_secagg as autotune

setUpModule = factory_conformance.set_up_context

_Path = deployed_form.Path
_DIM = 40
_VALUE_TYPE = tff.TensorType(np.float32, [_DIM])
_INT_TYPE = tff.TensorType(np.int32, [_DIM])
_WEIGHT_TYPE = tff.TensorType(np.float32)
_NUM_CLIENTS = 8
_THRESHOLD = 4
_DROPPED = (frozenset(), {3}, {0, 7}, set(), {5})

_ready = functools.partial(
  autotune.autotuned_secure_aggregator,
  rounding=autotune.Rounding.DITHER,
  seed=1,
)
_sum = functools.partial(
  autotune.AutotunedSecureSumFactory,
  rounding=autotune.Rounding.DITHER,
  seed=1,
)

# Every public factory, under the name that makes it.
_PUBLIC = {
  'AutotunedSecureSumFactory': lambda: _sum(modulus=2**8),
  'ExactModularSumFactory': lambda: autotune.ExactModularSumFactory(
    modulus=250
  ),
  'FlattenFactory': lambda: autotune.FlattenFactory(
    tff.aggregators.SecureSumFactory(1.0, -1.0)
  ),
  'HadamardRotationFactory': lambda: autotune.HadamardRotationFactory(
    tff.aggregators.SecureSumFactory(1.0, -1.0)
  ),
  'QuantizeModFactory': lambda: autotune.QuantizeModFactory(
    autotune.ExactModularSumFactory(modulus=2**8),
    tuner=autotune.WrappedNormalTuner(modulus=2**8),
  ),
  'SecureMeanFactory': lambda: autotune.SecureMeanFactory(_sum(modulus=250)),
  'SecureUnweightedMeanFactory': lambda: autotune.SecureUnweightedMeanFactory(
    _sum(modulus=2**8)
  ),
  'autotuned_secure_aggregator': lambda: _ready(
    modulus=2**8, zeroing=True, clipping=True
  ),
  'distributed_dp_aggregator': lambda: autotune.distributed_dp_aggregator(
    noise_multiplier=1.0, min_clients=5, seed=1
  ),
}

# With a prediction in the state, and with a sample of the coordinates.
_VARIANTS = {
  'prediction': lambda: autotune.SecureUnweightedMeanFactory(
    _sum(modulus=2**8, predict_sum=True)
  ),
  'sampling': lambda: autotune.distributed_dp_aggregator(
    noise_multiplier=1.0, min_clients=5, sampled_fraction=0.25, seed=1
  ),
}
_ALL = {**_PUBLIC, **_VARIANTS}

# Those whose rounds must be the simulation's: a mean without weights; with
# weights, and a modulus that is no power of two; with zeroing and clipping; and
# with a prediction.
_DETERMINISTIC = (
  'SecureUnweightedMeanFactory',
  'SecureMeanFactory',
  'autotuned_secure_aggregator',
  'prediction',
)

# Of the largest number of a leaf. A bin is a thousandth and more.
_LAST_BITS = 1e-5


@dataclasses.dataclass(frozen=True)
class _Process:
  """An aggregation process whose clients bring one value, as forms want it."""

  initialize: tff.Computation
  next: tff.Computation
  inner: tff.templates.AggregationProcess
  weighted: bool


def _create(factory) -> _Process:
  weighted = isinstance(factory, tff.aggregators.WeightedAggregationFactory)
  is_int = isinstance(factory, autotune.ExactModularSumFactory)
  types = [_INT_TYPE if is_int else _VALUE_TYPE, _WEIGHT_TYPE][: 1 + weighted]
  inner = factory.create(*types)

  @tff.federated_computation(
    inner.initialize.type_signature.result,
    tff.FederatedType(tff.to_type(types), tff.CLIENTS),
  )
  def next_fn(state, clients):
    output = inner.next(state, *(clients[i] for i in range(len(types))))
    return output.state, tff.federated_zip((output.result, output.measurements))

  return _Process(inner.initialize, next_fn, inner, weighted)


@functools.lru_cache(maxsize=None)
def _compiled(name):
  process = _create(_ALL[name]())
  return process, deployed_form.Form(process)


def _flat(value: Any) -> list:
  """The leaves of nested containers in the order in which they were made."""
  if isinstance(value, Mapping):
    value = list(value.values())
  if isinstance(value, (list, tuple)):
    return [leaf for member in value for leaf in _flat(member)]
  return [value]


def _difference(found, wanted) -> float:
  """The largest difference of a float over the largest of its leaf.

  Infinite if leaves, dtypes, shapes or any integer differ.
  """
  found, wanted = ([np.asarray(x) for x in _flat(v)] for v in (found, wanted))
  if [(x.dtype, x.shape) for x in found] != [
    (x.dtype, x.shape) for x in wanted
  ]:
    return np.inf
  largest = 0.0
  for one, other in zip(found, wanted):
    if one.dtype.kind == 'f' and one.size:
      scale = np.max(np.abs(other))
      apart = np.max(np.abs(one.astype(np.float64) - other))
      largest = max(largest, apart / scale if apart else 0.0)
    elif not np.array_equal(one, other):
      return np.inf
  return largest


def _updates(round_num):
  """Norms below 1, and after three rounds above, where they are clipped."""
  rng = np.random.default_rng(round_num)
  steps = rng.integers(-64, 64, [_NUM_CLIENTS, _DIM], endpoint=True)
  return (steps / 2**9 * (1 if round_num < 3 else 2)).astype(np.float32)


def _weights():
  return np.arange(1, _NUM_CLIENTS + 1, dtype=np.float32) / 4


@pytest.mark.slow
class MaskedRoundsTest(parameterized.TestCase):
  @parameterized.parameters(*_DETERMINISTIC)
  def test_rounds_under_masks_are_the_simulations(self, name):
    process, form = _compiled(name)
    deployed = deployed_rounds.Runtime(form)
    state, simulated = deployed.initialize(), process.initialize()
    errors = []
    for number, dropped in enumerate(_DROPPED):
      updates, weights = _updates(number), _weights()
      values = [updates, weights][: 1 + process.weighted]
      outcome = deployed.run_round(
        state, list(zip(*values)), threshold=_THRESHOLD, dropped=dropped
      )
      alive = [i for i in range(_NUM_CLIENTS) if i not in dropped]
      output = process.inner.next(
        simulated, *([v[i] for i in alive] for v in values)
      )
      state, simulated = outcome.state, output.state
      wanted = [output.result, output.measurements]
      self.assertLess(_difference(outcome.output, wanted), _LAST_BITS, number)
      self.assertLess(_difference(state, simulated), _LAST_BITS, number)
      shares = weights if process.weighted else np.ones_like(weights)
      mean = np.average(updates[alive], axis=0, weights=shares[alive])
      everybody = np.average(updates, axis=0, weights=shares)
      errors.append(np.linalg.norm(output.result - mean))
      if number == 2:
        # The survivors' mean, and no other.
        self.assertLess(errors[-1], 0.2 * np.linalg.norm(mean))
        self.assertGreater(np.linalg.norm(everybody - mean), 2 * errors[-1])

  def test_a_residue_more_is_seen(self):
    # The negative control: one client one bin off in one coordinate.
    _, form = _compiled('SecureUnweightedMeanFactory')
    deployed = deployed_rounds.Runtime(form)
    state = deployed.initialize()
    for number in range(2):
      clients = [(update,) for update in _updates(number)]
      before = state
      outcome = deployed.run_round(before, clients, threshold=_THRESHOLD)
      state = outcome.state
    place = [part.path for part in form.sent].index(_Path.MODULAR)
    work = form.work

    def one_off(values):
      sent = work(values)
      if values[0] is clients[0][0]:
        sent[place][7] = (sent[place][7] + 1) % 2**8
      return sent

    with mock.patch.object(form, 'work', one_off):
      other = deployed.run_round(before, clients, threshold=_THRESHOLD)
    self.assertGreater(
      _difference(other.output[0], outcome.output[0]), 10 * _LAST_BITS
    )

  def test_too_few_survivors_leave_the_state_alone(self):
    _, form = _compiled('autotuned_secure_aggregator')
    deployed = deployed_rounds.Runtime(form)
    clients = list(zip(_updates(1), _weights()))
    with self.assertRaisesRegex(
      masked_sums.BelowThresholdError,
      '^At least 4 clients must survive, found 3 of 8[.]$',
    ):
      deployed.run_round(
        deployed.initialize(), clients, threshold=4, dropped={0, 1, 2, 3, 4}
      )

  def test_distributed_dp_below_min_clients_is_refused(self):
    _, form = _compiled('distributed_dp_aggregator')
    deployed = deployed_rounds.Runtime(form)
    state = deployed.initialize()
    clients = [(update,) for update in _updates(1)]
    for num_dropped, refused in ((3, False), (4, True)):
      outcome = deployed.run_round(
        state, clients, threshold=3, dropped=set(range(num_dropped))
      )
      result, measurements = outcome.output
      self.assertEqual(bool(_find(measurements, 'refused')), refused)
      self.assertEqual(not np.any(result), refused)
    # The graph of a client draws anew in each round, and for each client.
    received = form.prepare(state)
    (place,) = (
      i for i, part in enumerate(form.sent) if part.path is _Path.MODULAR
    )
    first, again = (form.work([*clients[0], *received]) for _ in range(2))
    self.assertGreater(np.mean(first[place] != again[place]), 0.3)
    # A runtime with the threshold that the page asks for unmasks nothing.
    with self.assertRaises(masked_sums.BelowThresholdError):
      deployed.run_round(state, clients, threshold=5, dropped={0, 1, 2, 3})


def _find(nested, name):
  """The value of that name, at any depth."""
  if isinstance(nested, Mapping):
    for key, value in nested.items():
      if key == name:
        return value
      found = _find(value, name)
      if found is not None:
        return found
  return None


@pytest.mark.slow
class FormsTest(parameterized.TestCase):
  def test_every_public_factory_is_here(self):
    names = [
      name
      for name in autotune.__all__
      if name.endswith(('Factory', '_aggregator'))
    ]
    self.assertCountEqual(names, _PUBLIC)

  @parameterized.parameters(*_ALL)
  def test_compiles_to_both_forms_with_nothing_in_the_clear(self, name):
    process, form = _compiled(name)
    self.assertNotEmpty(form.sent)
    self.assertNotIn(_Path.PLAIN, [part.path for part in form.sent])
    tff.backends.mapreduce.get_distribute_aggregate_form_for_computation(
      process.next
    )

  def test_plain_sums_are_seen(self):
    # The negative control.
    form = deployed_form.Form(_create(tff.aggregators.MeanFactory()))
    self.assertEqual({part.path for part in form.sent}, {_Path.PLAIN})

  def test_the_modulus_is_the_one_that_was_set_or_planned(self):
    planned = autotune.plan_distributed_dp_modulus(
      num_clients=5, min_clients=5, noise_multiplier=1.0, dim=_DIM
    )
    for name, modulus in (
      ('autotuned_secure_aggregator', 2**8),
      ('ExactModularSumFactory', 250),
      ('distributed_dp_aggregator', planned),
    ):
      _, form = _compiled(name)
      bounds = [p.bound for p in form.sent if p.path is _Path.MODULAR]
      self.assertEqual(bounds, [modulus], name)

  def test_the_graph_of_a_client_with_noise_is_small(self):
    _, form = _compiled('distributed_dp_aggregator')
    self.assertLess(form.work.num_bytes, 400_000)


_INPUTS, _OUTPUTS = 128, 8


def _model():
  layer = tf.keras.layers.Dense(
    _OUTPUTS, kernel_initializer='zeros', input_shape=[_INPUTS]
  )
  return tff.learning.models.from_keras_model(
    tf.keras.Sequential([layer]),
    loss=tf.keras.losses.MeanSquaredError(),
    input_spec=(
      tf.TensorSpec([None, _INPUTS], tf.float32),
      tf.TensorSpec([None, _OUTPUTS], tf.float32),
    ),
    metrics=[tf.keras.metrics.MeanAbsoluteError()],
  )


def _fed_avg() -> tff.learning.templates.LearningProcess:
  return tff.learning.algorithms.build_weighted_fed_avg(
    _model,
    client_optimizer_fn=tff.learning.optimizers.build_sgdm(2.0**-5),
    # A norm and its clipping are not exact.
    model_aggregator=_ready(modulus=2**8, clipping=False),
    model_distributor=autotune.low_bit_model_distributor(
      _model, bits=8, seed=1
    ),
    metrics_aggregator=tff.learning.metrics.secure_sum_then_finalize,
  )


def _data(seed):
  """Small whole numbers: steps from a model of zeros are exact."""
  rng = np.random.default_rng(seed)
  x = rng.integers(-1, 2, [4 + 4 * (seed % 3), _INPUTS]).astype(np.float32)
  y = x[:, :_OUTPUTS] + rng.integers(-1, 2, [len(x), _OUTPUTS])
  return tf.data.Dataset.from_tensor_slices((x, y.astype(np.float32))).batch(4)


@pytest.mark.slow
class FedAvgTest(absltest.TestCase):
  def test_weights_are_the_simulations_and_metrics_are_summed_securely(self):
    process = _fed_avg()
    form = deployed_form.Form(process)
    self.assertNotIn(_Path.PLAIN, [part.path for part in form.sent])
    deployed = deployed_rounds.Runtime(form)
    state, simulated = deployed.initialize(), process.initialize()
    datasets = [_data(seed) for seed in range(_NUM_CLIENTS)]
    clients = [(plain_graph.serialize_dataset(data),) for data in datasets]
    before = [0.0, 0.0]
    for number, dropped in enumerate(_DROPPED[:4]):
      outcome = deployed.run_round(
        state, clients, threshold=_THRESHOLD, dropped=dropped
      )
      alive = [d for i, d in enumerate(datasets) if i not in dropped]
      simulated = process.next(simulated, alive).state
      state = outcome.state
      weights = form.nest_state(state)['global_model_weights']['trainable']
      wanted = process.get_model_weights(simulated).trainable
      # Of the round's step. Once the model is coded floats are not exact, and
      # a coordinate may fall into the next bin.
      step = np.linalg.norm(wanted[0] - before[0])
      apart = np.linalg.norm(weights[0] - wanted[0])
      self.assertLess(apart, (1e-2 if number else 1e-5) * step + 1e-9, number)
      before = wanted
    self.assertGreater(step, 0)


if __name__ == '__main__':
  absltest.main()
