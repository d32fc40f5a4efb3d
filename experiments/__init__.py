# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Experiments: one folder each, and what they share in `common`.

Libraries take a config and return rows. Binaries (`run*`, `plot`, `tabulate`)
read flags, write files and show progress. See `experiments/README.md`.
"""
