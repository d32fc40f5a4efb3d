# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a client of a form receives and sends, as tables for people."""

from experiments.common import tables
from experiments.deployment import form as deployed_form


def tables_of(form: deployed_form.Form, num_clients: int) -> str:
  """Two tables: what a client receives, and what it sends.

  Args:
    form: The form.
    num_clients: Clients of a round, on which moduli of whole numbers depend.
  """
  received = [
    (leaf.name, leaf.dtype, f'{leaf.length:,}', f'{leaf.num_bytes:,}')
    for leaf in form.received
  ]
  received.append(
    ('the graph itself, once', '', '', f'{form.work.num_bytes:,}')
  )
  sent = [
    (
      part.leaf.name,
      part.leaf.dtype,
      f'{part.leaf.length:,}',
      part.path.value,
      _bound(part),
      f'{part.modulus(num_clients):,}'
      if part.path is not deployed_form.Path.PLAIN
      else '',
      f'{part.num_bytes(num_clients):,}',
    )
    for part in form.sent
  ]
  heads = ('dtype', 'length')
  return '\n\n'.join(
    [
      tables.plain(('a client receives', *heads, 'bytes'), received),
      tables.plain(
        ('a client sends', *heads, 'path', 'bound', 'modulus', 'bytes'), sent
      ),
    ]
  )


def _bound(part: deployed_form.Sent) -> str:
  return {
    deployed_form.Path.PLAIN: '',
    deployed_form.Path.BITWIDTH: f'{part.bound} bits',
    deployed_form.Path.MAX_INPUT: f'{part.bound:,}',
    deployed_form.Path.MODULAR: '',
  }[part.path]
