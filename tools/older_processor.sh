#!/bin/sh
# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Runs a command as on a processor without AVX2, FMA and AVX-512. The C library,
# NumPy, OpenBLAS and TensorFlow's oneDNN then take other code, or none, and
# computed floats differ in their last bits, as they do between two machines.
# What TensorFlow compiles in by itself stays as it is.
#
# Usage: tools/older_processor.sh COMMAND [ARGUMENT ...]
set -eu
[ $# -gt 0 ] || { sed -n 's/^# Usage/Usage/p' "$0" >&2; exit 2; }

hwcaps=-AVX2,-FMA,-AVX512F,-AVX512VL,-AVX512DQ,-AVX512BW,-AVX512CD
hwcaps=$hwcaps,-AVX2_Usable,-FMA_Usable,-AVX512F_Usable  # Before glibc 2.33.
export GLIBC_TUNABLES="glibc.cpu.hwcaps=$hwcaps"
# A feature that the processor does not have is ignored with a warning.
export NPY_DISABLE_CPU_FEATURES='AVX2 FMA3 AVX512F AVX512CD AVX512_SKX
  AVX512_CLX AVX512_CNL AVX512_ICL'
export OPENBLAS_CORETYPE=Nehalem
export TF_ENABLE_ONEDNN_OPTS=0
exec "$@"
