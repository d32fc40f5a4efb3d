# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Federated computations around `numerics`: wiring, no arithmetic."""
