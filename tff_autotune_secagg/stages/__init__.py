# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What each aspect of an aggregation does at clients and at the server.

Plain TensorFlow on lists of tensors; `factories.chain` wires stages into one
federated computation.
"""
