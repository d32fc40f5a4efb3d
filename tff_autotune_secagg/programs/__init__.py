# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Programs of TFF over secure sums: trainings that end well and continue.

They compute in the context of the calling thread, whichever it is:
`simulation.set_local_context` and `simulation.set_remote_context` set one.
"""

from tff_autotune_secagg.programs.cohort_source import CohortSource
from tff_autotune_secagg.programs.running import run_program
from tff_autotune_secagg.programs.training import train_in_folder

__all__ = ['CohortSource', 'run_program', 'train_in_folder']
