# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Experiments: federated training and mean estimation with baselines.

Libraries (`datasets`, `models`, `baselines`, `federated_training`, ...) are
pure: they take a config and return rows. Binaries (`run_*`, `plot_*`) read
flags, write files and show progress. See `experiments/README.md`.
"""
