# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reading a sum that is known modulo k only: its size, and its coordinates."""
