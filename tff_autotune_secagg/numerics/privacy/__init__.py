# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Noise of distributed differential privacy, and what it costs in epsilon."""
