# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a round measured, whatever wraps the aggregator, and how not to."""

import collections
import collections.abc
from typing import Any, Mapping

import tensorflow_federated as tff

from tff_autotune_secagg import _checks

# Every aggregator of this package reports it.
_MARK = 'bits_per_coordinate'


def drop_metrics(
  metric_finalizers: Any, local_unfinalized_metrics_type: Any = None
) -> tff.Computation:
  """Leaves the metrics of clients out of a training; for `metrics_aggregator=`.

  TFF's default sums each client's loss and number of examples exactly and, to
  the runtime, in the clear. Under distributed differential privacy they would
  leave outside of epsilon, and a secure sum of them too.

  Pass the function itself, as `metrics_aggregator=autotune.drop_metrics`, to
  `tff.learning.algorithms.build_unweighted_fed_avg`. The process then reports
  no 'train' metrics; evaluate the model on data that may be used for it.

  Args:
    metric_finalizers: of the model; not used.
    local_unfinalized_metrics_type: of the model; not used.

  Returns:
    A `tff.Computation` that takes the clients' metrics, sends nothing, and
    returns an empty `OrderedDict` at the server.
  """
  del metric_finalizers, local_unfinalized_metrics_type  # Unused.

  @tff.federated_computation
  def nothing(metrics):
    del metrics  # They stay at the clients.
    return tff.federated_value(collections.OrderedDict(), tff.SERVER)

  return nothing


def round_measurements(metrics: Mapping[str, Any]) -> collections.OrderedDict:
  """Returns what an aggregator of this package measured in a round.

  A mean, and TFF's zeroing and clipping, put the measurements of what they wrap
  one level down. So the path of `bin_size` depends on `weighted`, `zeroing` and
  `clipping`. Its name here does not.

  Args:
    metrics: `output.metrics` of a learning process, its 'aggregator' alone, or
      `output.measurements` of an aggregation process.

  Returns:
    Values by name, on one level: the measurements of `QuantizeModFactory` or of
    `distributed_dp_aggregator`, and of everything around it, such as the
    `weight_sum` of a mean or the clients that TFF's zeroing counts; of a
    learning process also those of `low_bit_model_distributor`. If two have
    the same name, the outer one is returned. A client that a mean rejects is a
    client of zeros to the sum inside, so only the mean's `rejected_clients`
    counts it. `bin_size`, `sum_stddev` and `size_forecast` of a weighted mean
    are in units of updates times weights.

  Raises:
    TypeError: `metrics` is not a mapping.
    ValueError: no aggregator of this package measured something in it.
  """
  _checks.check_instance(
    'metrics',
    metrics,
    collections.abc.Mapping,
    'a mapping, `output.metrics` of a learning process or `output.measurements`'
    ' of an aggregation process',
  )
  found = collections.OrderedDict()
  level = [metrics.get('aggregator', metrics), metrics.get('distributor', ())]
  while level:
    nodes = [
      node for node in level if isinstance(node, collections.abc.Mapping)
    ]
    level = [member for node in nodes for member in node.values()]
    for node in nodes:
      for name, value in node.items():
        # Parts without measurements have an empty tuple.
        if not isinstance(value, (collections.abc.Mapping, tuple)):
          found.setdefault(name, value)
  if _MARK not in found:
    raise ValueError(
      '`metrics` must hold the measurements of an aggregator of this package,'
      f' found {sorted(found) or "none"}. Pass `output.metrics` of a learning'
      ' process or `output.measurements` of an aggregation process.'
    )
  return found
