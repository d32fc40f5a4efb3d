# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Importing this gives each TensorFlow operation one thread.

The clients of a round run side by side, which fills the cores; operations of
these small models that share their work among threads as well mostly wait for
one another (a round of ten clients took 0.55 s on two cores, and 0.34 s so).
To be imported before TensorFlow; the worker process of TFF's simulation
inherits the environment. Set `TF_NUM_INTRAOP_THREADS` yourself to choose; rows
record it, as it changes the last bits of sums.
"""

import os

os.environ.setdefault('TF_NUM_INTRAOP_THREADS', '1')
