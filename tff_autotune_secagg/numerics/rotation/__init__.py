# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The randomized Hadamard rotation that makes coordinates look normal."""
