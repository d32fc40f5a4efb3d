# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
import numpy as np

from experiments.training import figures


class TunedBinSizeTest(absltest.TestCase):
  def test_the_bin_size_of_a_calibration_is_left_out(self):
    def row(calibrating):
      return dict(
        aggregator={'value/bin_size': 0.5, 'value/calibrating': calibrating}
      )

    self.assertIsNone(figures.tuned_bin_size(row(True)))
    self.assertEqual(figures.tuned_bin_size(row(False)), 0.5)
    self.assertIsNone(figures.tuned_bin_size({'aggregator': {}}))


def _final(aggregator, seed, share):
  return dict(
    run=f'{aggregator}-{seed}',
    round=1,
    config=dict(aggregator=aggregator, seed=seed, clients_per_round=10),
    bits_per_coordinate=8,
    bytes_per_client=40,
    test_accuracy=share,
  )


class AlphaFigureTest(absltest.TestCase):
  def test_a_panel_for_each_modulus(self):
    rows = []
    for seed in (1, 2):
      rows.append(_final('plain_mean', seed, 0.80 + 0.01 * seed))
      for modulus, lost in ((16, 0.02), (256, 0.01)):
        name = f'autotuned:modulus={modulus}'
        rows.append(_final(name, seed, 0.80 + 0.01 * seed))
        # The share of a normal variable outside two standard deviations.
        name += ',wrap_probability=0.0455'
        rows.append(_final(name, seed, 0.80 + 0.01 * seed - lost))
    figure = figures.alpha_figure(rows)
    self.assertEqual(
      [axes.get_title() for axes in figure.axes], ['k = 256', 'k = 16']
    )
    for axes, lost in zip(figure.axes, (1.0, 2.0)):
      marks = [line for line in axes.lines if line.get_marker() == 'o']
      np.testing.assert_allclose(
        marks[0].get_xydata(), [[0.5, -lost]], rtol=1e-3
      )

  def test_rows_without_a_fixed_alpha_are_refused(self):
    rows = [_final('plain_mean', 1, 0.8), _final('autotuned', 1, 0.8)]
    with self.assertRaisesRegex(ValueError, 'wrap_probability'):
      figures.alpha_figure(rows)


def _predicted(aggregator, round_num, **measured):
  return dict(
    run=aggregator,
    round=round_num,
    config=dict(aggregator=aggregator, seed=1),
    aggregator={f'value/{name}': x for name, x in measured.items()},
  )


class PredictionFigureTest(absltest.TestCase):
  def test_gains_of_who_predicts_and_errors_of_all(self):
    with_it, without = 'autotuned:prediction=true', 'autotuned'
    rows = []
    for number, gain in ((1, 1.0), (2, 0.5)):
      rows += [
        _predicted(with_it, number, prediction_gain=gain, predicted_nmse=0.1),
        _predicted(without, number, predicted_nmse=0.2),
      ]
    left, right = figures.prediction_figure(rows).axes
    curves = [line.get_xydata() for line in left.lines]
    np.testing.assert_allclose(curves, [[[1, 1.0], [2, 0.5]]])
    heights = [line.get_ydata()[0] for line in right.lines]
    np.testing.assert_allclose(heights, [0.1, 0.2])

  def test_rows_without_a_prediction_are_refused(self):
    with self.assertRaisesRegex(ValueError, 'prediction=true, found none'):
      figures.prediction_figure([_predicted('autotuned', 1)])


if __name__ == '__main__':
  absltest.main()
