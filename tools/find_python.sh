#!/bin/sh
# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Prints the path of the Python to build the environment with, or one sentence
# that says what is supported (on stderr, exit status 1). Downloads nothing.
#
# PYTHON names the interpreter to use. Without it, the first of python3.11,
# python3.10, python3.9 and python3 that will do.
set -eu

supported='tff_autotune_secagg runs on Linux (x86-64 with AVX, glibc 2.31 or newer) with CPython 3.9, 3.10 or 3.11'

refuse() {
  echo "$supported; $1." >&2
  exit 1
}

[ "$(uname -s)" = Linux ] || refuse "this is $(uname -s)"
[ "$(uname -m)" = x86_64 ] || refuse "this processor is $(uname -m)"
# TensorFlow's wheels die of an illegal instruction without AVX.
if [ -r /proc/cpuinfo ] && ! grep -qw avx /proc/cpuinfo; then
  refuse 'this processor has no AVX'
fi

# Must run on every Python from 2.7 on: it is how an old one is recognized.
probe='
import platform, struct, sys
libc, libc_version = platform.libc_ver()
libc_parts = [int(p) for p in libc_version.split(".")[:2] if p.isdigit()]
if platform.python_implementation() != "CPython":
  print("it is " + platform.python_implementation())
elif not (3, 9) <= sys.version_info[:2] <= (3, 11):
  print("it is Python %d.%d" % sys.version_info[:2])
elif struct.calcsize("P") != 8:
  print("it is a 32-bit Python")
elif libc != "glibc" or libc_parts < [2, 31]:
  print("its C library is " + ((libc + " " + libc_version).strip() or "not glibc"))
else:
  print("ok")
'

# Sets `verdict` to ok, or to why the interpreter $1 will not do.
examine() {
  # A pyenv shim exists and yet does not run, hence the run and not `command -v`.
  verdict=$("$1" -c "$probe" 2>/dev/null) || verdict='it does not run'
}

if [ -n "${PYTHON:-}" ]; then
  examine "$PYTHON"
  [ "$verdict" = ok ] || refuse "PYTHON=$PYTHON will not do, $verdict"
  command -v "$PYTHON"
  exit 0
fi

found=
for candidate in python3.11 python3.10 python3.9 python3; do
  examine "$candidate"
  if [ "$verdict" = ok ]; then
    command -v "$candidate"
    exit 0
  fi
  [ "$verdict" = 'it does not run' ] ||
    found="$found${found:+, }$candidate ($verdict)"
done
refuse "found ${found:-no Python}. Install one of these, or name it with PYTHON=/path/to/python"
