# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The only place that states the package's version."""

__version__ = '0.1.0'
