# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""One round on plain tensors. Nothing here imports TensorFlow Federated."""
