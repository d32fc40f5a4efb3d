# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the deployed training, its settings, tables and picture."""

import dataclasses

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow_federated as tff

from experiments.deployment import deployed_rounds
from experiments.deployment import deployed_training
from experiments.deployment import figure
from experiments.deployment import form as deployed_form
from experiments.deployment import leaves
from experiments.deployment import settings
from experiments.deployment import what_moves
from experiments.training import trainer
from tests import factory_conformance
from tests import tiny_training

setUpModule = factory_conformance.set_up_context

_CONFIG = settings.Config(
  training=dataclasses.replace(
    tiny_training.CONFIG,
    num_clients=6,
    clients_per_round=5,
    num_rounds=5,
    eval_every=1,
  ),
  dropout=0.25,
  threshold_share=0.7,
)


class SettingsTest(parameterized.TestCase):
  @parameterized.parameters(
    (10, 2 / 3, 7), (9, 2 / 3, 6), (10, 0.7, 7), (3, 1.0, 3), (1, 0.6, 1)
  )
  def test_threshold_is_the_share_rounded_up(self, num_clients, share, wanted):
    training = dataclasses.replace(
      _CONFIG.training, num_clients=10, clients_per_round=num_clients
    )
    config = settings.Config(training, threshold_share=share)
    self.assertEqual(config.threshold, wanted)

  @parameterized.parameters(
    (dict(dropout=1.0), '`dropout` must be at least 0 and below 1, found 1.0.'),
    (
      dict(threshold_share=0.5),
      '`threshold_share` must be above 0.5 and at most 1, found 0.5.',
    ),
    (
      dict(run_by='tff'),
      "`run_by` must be 'masked' or 'simulated', found 'tff'.",
    ),
  )
  def test_refuses(self, changes, message):
    with self.assertRaisesWithLiteralMatch(ValueError, message):
      dataclasses.replace(_CONFIG, **changes)

  def test_a_row_names_all_settings(self):
    values = _CONFIG.asdict()
    self.assertEqual(values['aggregator'], _CONFIG.training.aggregator)
    self.assertEqual((values['run_by'], values['dropout']), ('masked', 0.25))
    self.assertNotIn('drop_metrics', values)  # Older rows keep their names.
    config = dataclasses.replace(_CONFIG, drop_metrics=True)
    self.assertEqual(config.asdict(), dict(values, drop_metrics=True))

  def test_metrics_stay_at_clients_of_private_trainings(self):
    self.assertTrue(settings.drops_metrics('distributed_dp:clip_norm=1'))
    self.assertFalse(settings.drops_metrics('autotuned:modulus=16'))

  def test_clients_vanish_at_random_and_the_same_ones_again(self):
    config = dataclasses.replace(_CONFIG, dropout=0.5)
    first = [deployed_training.sample_dropped(config, n) for n in range(1, 201)]
    again = [deployed_training.sample_dropped(config, n) for n in range(1, 201)]
    self.assertEqual(first, again)
    # Five standard errors of 1,000 draws.
    share = np.mean([len(dropped) / 5 for dropped in first])
    self.assertLess(abs(share - 0.5), 5 * 0.5 / np.sqrt(1000))


class _NoExecutor(tff.framework.SyncContext):
  """Runs nothing: under masks no executor of TFF takes part."""

  def invoke(self, comp, arg):
    raise AssertionError('TFF must not run anything, found that it does.')


@pytest.mark.slow
class DeployedTrainingTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    data = trainer.load_data(_CONFIG.training)
    forms = []
    with tff.framework.get_context_stack().install(_NoExecutor()):
      masked = list(deployed_training.run(_CONFIG, data, forms.append))
    (cls.form,) = forms
    config = dataclasses.replace(_CONFIG, run_by=settings.SIMULATED)
    simulated = list(deployed_training.run(config, data))
    cls.rows = {settings.MASKED: masked, settings.SIMULATED: simulated}

  def test_trains_as_the_simulation(self):
    masked, simulated = self.rows.values()
    self.assertLen(masked, 5)
    counts = {row['survivors'] for row in masked}
    self.assertGreater(len(counts), 1)
    for one, other in zip(masked, simulated):
      self.assertEqual(one['unmasked'], one['survivors'] >= 4)
      for name in (
        'round',
        'survivors',
        'unmasked',
        'download_bytes_per_client',
      ):
        self.assertEqual(one.get(name), other.get(name))
      # Of random images; floats differ in their last bits, and a coordinate
      # may fall into the next bin.
      self.assertAlmostEqual(one['test_loss'], other['test_loss'], places=2)
    self.assertNotEqual(masked[0]['test_loss'], masked[-1]['test_loss'])

  def test_a_round_of_too_few_leaves_the_model_alone(self):
    masked = self.rows[settings.MASKED]
    lost = [i for i, row in enumerate(masked) if not row['unmasked']]
    self.assertNotEmpty(lost)
    for index in lost:
      self.assertNotIn('train_loss', masked[index])
      if index:
        self.assertEqual(
          masked[index]['test_loss'], masked[index - 1]['test_loss']
        )

  def test_only_metrics_are_in_the_clear(self):
    seen = {
      part.leaf.name
      for part in self.form.sent
      if part.path is deployed_form.Path.PLAIN
    }
    self.assertEqual(
      seen, {'0/loss/0', '0/loss/1', '0/accuracy/0', '0/accuracy/1'}
    )

  def test_bytes_are_those_of_the_rows(self):
    row = next(r for r in self.rows[settings.MASKED] if r['unmasked'])
    (vector,) = (
      part for part in self.form.sent if part.path is deployed_form.Path.MODULAR
    )
    self.assertEqual(vector.num_bytes(5), row['bytes_per_client'])
    received = [x for x in self.form.received if x.name.startswith('0/')]
    self.assertEqual(
      sum(leaf.num_bytes for leaf in received),
      row['download_bytes_per_client'],
    )
    shown = what_moves.tables_of(self.form, 5)
    self.assertRegex(shown, r'int32 +[0-9,]+ +secure sum, modulo +256 ')
    self.assertRegex(
      shown, r'whole +int64 +1 +secure sum, largest +1,099,511,627,776 +5,497,'
    )

  def test_draws_both_and_their_difference(self):
    rows = [
      dict(row, run=run_by, config=dict(_CONFIG.asdict(), run_by=run_by))
      for run_by, rows in self.rows.items()
      for row in rows
    ]
    drawn = figure.accuracy_figure(rows, 'A title')
    left, right = drawn.axes
    self.assertLen(left.lines, 2)
    (difference,) = right.lines
    masked, simulated = (
      [100 * row['test_accuracy'] for row in rows]
      for rows in self.rows.values()
    )
    np.testing.assert_allclose(
      difference.get_ydata(), np.subtract(masked, simulated), atol=1e-9
    )


@pytest.mark.slow
class DroppedMetricsTest(absltest.TestCase):
  def test_nothing_is_in_the_clear(self):
    training = dataclasses.replace(
      _CONFIG.training,
      aggregator='distributed_dp:clip_norm=1',
      num_rounds=1,
    )
    config = settings.Config(training, dropout=0.0, drop_metrics=True)
    forms = []
    data = trainer.load_data(training)
    (row,) = deployed_training.run(config, data, forms.append)
    paths = {part.path for part in forms[0].sent}
    self.assertNotIn(deployed_form.Path.PLAIN, paths)
    self.assertTrue(row['unmasked'])
    self.assertNotIn('train_accuracy', row)
    self.assertIn('test_accuracy', row)


class RefusalTest(absltest.TestCase):
  def test_modular_sums_above_the_masks_are_refused(self):
    class Wide:
      sent = [
        deployed_form.Sent(
          leaves.Leaf('0', 'int64', (4,)), deployed_form.Path.MODULAR, 2**33
        )
      ]

    with self.assertRaisesWithLiteralMatch(
      ValueError,
      '`modulus` of a modular sum must be at most 4294967296 for masks of 32 '
      'bits, found 8589934592.',
    ):
      deployed_rounds.Runtime(Wide)


if __name__ == '__main__':
  absltest.main()
