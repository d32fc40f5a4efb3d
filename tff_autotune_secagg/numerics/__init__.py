# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""One round on plain tensors. Nothing here imports TensorFlow Federated.

`round_codec` is the round: what a client sends, and what the server reads from
the sum. It needs `rounding` at clients, `reading` at the server and `tuning`
between rounds; `prediction` is what may be subtracted before the reading.
`rotation` and `privacy` stand by themselves.
"""
