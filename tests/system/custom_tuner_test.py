# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The tuner of docs/own_tuner.md, under the public names alone."""

import collections
import pathlib
import re

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow_federated as tff

from tests import factory_conformance
from tests import stat_checks
import tff_autotune_secagg as autotune

setUpModule = factory_conformance.set_up_context

_DIM = 4000
_PAGE = pathlib.Path(__file__).parents[2] / 'docs' / 'own_tuner.md'


def _code_of_page():
  (code,) = re.findall(
    r'```python\n(.*?)```', _PAGE.read_text(encoding='utf-8'), re.DOTALL
  )
  return code


# Defines `SixteenthTuner` and an `aggregator` of it.
_NAMES = {}
exec(compile(_code_of_page(), str(_PAGE), 'exec'), _NAMES)


class CustomTunerTest(parameterized.TestCase):
  @parameterized.parameters(*autotune.Rounding)
  def test_sets_the_bins_of_every_round(self, rounding):
    tuner = _NAMES['SixteenthTuner'](modulus=2**12, rounding=rounding)
    process = autotune.QuantizeModFactory(
      autotune.ExactModularSumFactory(modulus=tuner.modulus),
      tuner=tuner,
      seed=1,
    ).create(tff.TensorType(np.float32, [_DIM]))
    state_type = process.initialize.type_signature.result.member
    self.assertEqual(
      state_type['tuner'],
      tff.to_type(collections.OrderedDict(bin_size=np.float32)),
    )
    rng = np.random.default_rng(2)
    state = process.initialize()
    bin_size = None
    for scale in (0.1, 1.0, 10.0, 0.0):
      values = (scale * rng.standard_normal([5, _DIM])).astype(np.float32)
      output = process.next(state, list(values))
      state, found = output.state, output.measurements
      total = values.sum(axis=0)
      self.assertEqual(found['calibrating'], bin_size is None)
      if not scale:
        np.testing.assert_array_equal(output.result, total)
        break
      if bin_size is not None:
        self.assertAlmostEqual(found['bin_size'] / bin_size, 1.0, places=6)
        # Where half a period is at least 12 standard deviations, nothing wraps.
        variance = 1 / 12 if rounding is autotune.Rounding.DITHER else 1 / 6
        expected = 5 * variance * bin_size**2
        tolerance = stat_checks.Z * stat_checks.variance_error(expected, _DIM)
        error = np.mean((output.result - total) ** 2)
        # The posterior mean shrinks by the noise's share, which is small.
        self.assertLess(abs(error / expected - 1), tolerance / expected + 0.01)
      bin_size = float(state['tuner']['bin_size'])
      # The fit's standard error, of a sixteenth of the coordinates if they are
      # on a ladder, and float32.
      num_read = _DIM / 16 if found['calibrating'] else _DIM
      ratio = 16 * bin_size / np.std(total)
      self.assertLess(abs(ratio - 1), stat_checks.Z / np.sqrt(2 * num_read))
    # A round of zeros says nothing of the size.
    self.assertEqual(state['tuner']['bin_size'], np.float32(bin_size))
    # What became of a state in a round is refused in a sentence, too.
    state['tuner']['bin_size'] = np.float32(np.inf)
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      'The bin sizes of `SixteenthTuner` must be finite, above 0 and equal or'
      ' ascending, found inf to inf: mend its `bin_sizes` or the state that'
      ' they come from.',
    ):
      process.next(state, list(values))

  def test_the_page_is_short_and_its_aggregator_one_of_tff(self):
    tuner = _code_of_page().partition('class ')[2].partition('\n\n\n')[0]
    self.assertLess(len(tuner.splitlines()), 22)
    self.assertIsInstance(
      _NAMES['aggregator'], tff.aggregators.WeightedAggregationFactory
    )


if __name__ == '__main__':
  absltest.main()
