# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rounding to integer bins at clients, and the noise that it leaves."""
