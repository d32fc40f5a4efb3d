# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest

from experiments.benchmark import figure
from experiments.benchmark import summary


class DrawTest(absltest.TestCase):
  def test_has_a_panel_for_each_group(self):
    size = dict(dim=8, num_clients=2, repeat=0)
    rows = [
      dict(size, group=group, case=case, seconds=1.0, process_seconds=0.5)
      for group, reference in (
        ('round', summary.PLAIN_SUM),
        ('encode', summary.COPY),
      )
      for case in (reference, 'new')
    ]
    titles = [axes.get_title() for axes in figure.draw(rows).axes]
    self.assertEqual(titles, ["a client's encoding", 'a whole round'])


if __name__ == '__main__':
  absltest.main()
