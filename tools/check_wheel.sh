#!/bin/sh
# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Installs the wheel of the last commit in a new environment beside the pinned
# packages, and runs the fast tests against what was installed.
#
# Usage: tools/check_wheel.sh [ENVIRONMENT]
# ENVIRONMENT is one in which requirements.txt is installed already. Without it
# all packages are installed, with the Python that PYTHON names.
set -eu
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

mkdir "$work/checkout"
git archive HEAD | tar -x -C "$work/checkout"

env_python=$work/env/bin/python
if [ -n "${1:-}" ]; then
  pinned_python=$(cd "$1" && pwd)/bin/python
  "$pinned_python" -m venv --without-pip "$work/env"
  # Python adds every folder that a .pth file names.
  "$pinned_python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
    >"$("$env_python" -c \
      'import sysconfig; print(sysconfig.get_path("purelib"))')/pinned.pth"
else
  "$(sh tools/find_python.sh)" -m venv "$work/env"
  pinned_python=$env_python
  "$env_python" -m pip install --disable-pip-version-check --quiet --no-deps \
    -r requirements.txt
fi

cd "$work/checkout"
"$pinned_python" -m build --no-isolation --outdir "$work/dist" \
  >"$work/build.log" || { cat "$work/build.log"; exit 1; }
# --ignore-installed: the pinned environment's checkout is no wheel.
"$pinned_python" -m pip --python "$env_python" install --no-deps --quiet \
  --ignore-installed --disable-pip-version-check "$work"/dist/*.whl

# The tests look for files of the project, so they run in a checkout; but the
# package that they find in it is the one that was installed.
find tff_autotune_secagg -type f ! -name BUILD -delete
cp -R "$work"/env/lib/python3*/site-packages/tff_autotune_secagg .
"$env_python" -m pytest -n auto --maxprocesses=8 --dist=loadfile \
  -m 'not slow' -p no:cacheprovider
