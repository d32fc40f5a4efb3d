# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a runtime gets of a learning process: graphs, and who sends what how.

TFF compiles a round into a `tff.backends.mapreduce.MapReduceForm`. Its graphs
are, in the order of a round:

    prepare     the server's state -> what all clients receive
    work        a client's data, what it received -> what it sends, by four
                paths: in the clear, and three kinds of secure sum
    zero, accumulate, report
                add up what came in the clear
    update      state, what was added up, the secure sums -> state, output
"""

import enum
from typing import Any, List, NamedTuple, Sequence

import tensorflow_federated as tff

from experiments.deployment import leaves
from experiments.deployment import plain_graph
from tff_autotune_secagg.numerics.rounding import quantization


class Path(enum.Enum):
  """How a tensor of a client reaches the server, in the order of `work`."""

  PLAIN = 'plain'
  BITWIDTH = 'secure sum, bits'
  MAX_INPUT = 'secure sum, largest'
  MODULAR = 'secure sum, modulo'


class Sent(NamedTuple):
  """A tensor that a client sends.

  Attributes:
    leaf: Its name, dtype and shape.
    path: How it goes.
    bound: Of the three secure paths the bits of a value, the largest value and
      the modulus; 0 for what goes in the clear.
  """

  leaf: leaves.Leaf
  path: Path
  bound: int

  def modulus(self, num_clients: int) -> int:
    """The smallest modulus by which so many clients can be summed."""
    if self.path is Path.MODULAR:
      return self.bound
    levels = 2**self.bound if self.path is Path.BITWIDTH else self.bound + 1
    return quantization.sum_modulus(levels, num_clients)

  def num_bytes(self, num_clients: int) -> int:
    """What it takes on the wire in a round of so many clients."""
    if self.path is Path.PLAIN:
      return self.leaf.num_bytes
    bits = quantization.num_bits(self.modulus(num_clients))
    return quantization.payload_bytes(self.leaf.length, bits)


class Form:
  """The graphs of a round.

  Attributes:
    initialize, prepare, work, zero, accumulate, report, update: The graphs;
      `initialize` makes the server's first state.
    received: Leaves that each client receives.
    sent: What each client sends, in the order of the results of `work`.
    state_type: TFF's type of the server's state.
    output_type: Of what a round returns beside it.
  """

  def __init__(self, process: tff.templates.IterativeProcess):
    """Compiles the form.

    Args:
      process: A learning process, or an aggregation process.

    Raises:
      TypeError: TFF cannot compile it.
    """
    compiled = tff.backends.mapreduce.get_map_reduce_form_for_computation(
      process.next
    )
    graph = plain_graph.PlainGraph
    self.initialize = graph(
      tff.backends.mapreduce.get_state_initialization_computation(
        process.initialize
      )
    )
    self.prepare = graph(compiled.prepare)
    self.work = graph(compiled.work)
    self.zero = graph(compiled.zero)
    self.accumulate = graph(compiled.accumulate)
    self.report = graph(compiled.report)
    self.update = graph(compiled.update)
    self.received = leaves.of(compiled.prepare.type_signature.result)
    self.state_type, self.output_type = compiled.update.type_signature.result
    self.sent = _sent(compiled)

  @property
  def num_state(self) -> int:
    """Leaves of the state."""
    return len(leaves.of(self.state_type))

  def nest_state(self, state: Sequence[Any]) -> Any:
    """The flat state as the process has it."""
    return leaves.pack(self.state_type, state)


def _sent(compiled: tff.backends.mapreduce.MapReduceForm) -> List[Sent]:
  bounds = {
    Path.BITWIDTH: compiled.secure_sum_bitwidth,
    Path.MAX_INPUT: compiled.secure_sum_max_input,
    Path.MODULAR: compiled.secure_modular_sum_modulus,
  }
  found = []
  for path, part in zip(Path, compiled.work.type_signature.result):
    members = leaves.of(part)
    limits = [0] * len(members)
    if path in bounds:
      limits = [int(v) for v in plain_graph.PlainGraph(bounds[path])()]
    found += [
      Sent(*entry) for entry in zip(members, [path] * len(members), limits)
    ]
  return found
