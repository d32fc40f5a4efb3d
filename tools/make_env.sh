#!/bin/sh
# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Makes .venv with the packages of requirements.txt, and makes it again when
# that file, or the Python asked for with PYTHON, is another one.
set -eu
cd "$(dirname "$0")/.."

# Two of these at once (`make demo` beside `make test`) would delete each
# other's work. The lock ends with this process.
exec 9<requirements.txt
if command -v flock >/dev/null; then flock 9; fi

stamp=.venv/made-from
lock_sum=$(cksum <requirements.txt)

# The stamp is written last: without it, the making was interrupted.
if [ -f "$stamp" ] && .venv/bin/python -c '' 2>/dev/null; then
  { read -r made_sum && read -r made_version; } <"$stamp" || made_sum=
  wanted_version=$made_version
  if [ -n "${PYTHON:-}" ]; then
    python=$(sh tools/find_python.sh)
    wanted_version=$("$python" -c 'import platform; print(platform.python_version())')
  fi
  if [ "$made_sum" = "$lock_sum" ] && [ "$made_version" = "$wanted_version" ]
  then
    exit 0
  fi
fi

python=$(sh tools/find_python.sh)
version=$("$python" -c 'import platform; print(platform.python_version())')

if [ -e .venv ] && [ ! -f .venv/made-by-make ]; then
  echo 'There is a .venv that `make` has not made: move it out of the way.' >&2
  exit 1
fi

# Debian's python3 comes without ensurepip (package python3-venv), but a pip
# from 22.3 on can install into an environment that has none.
if "$python" -c 'import venv, ensurepip' 2>/dev/null; then
  pip_of_env=yes
elif "$python" -c 'import venv' 2>/dev/null &&
  "$python" -m pip --python "$python" --version >/dev/null 2>&1; then
  pip_of_env=no
else
  echo "$python (Python $version) can make no environment: install its" \
    'venv module with ensurepip (on Debian and Ubuntu the package' \
    "python${version%.*}-venv), or pip 22.3 or newer." >&2
  exit 1
fi

echo "Making .venv with Python $version: about 2.7 GB, some minutes, once."
rm -rf .venv
if [ "$pip_of_env" = yes ]; then
  "$python" -m venv .venv
  touch .venv/made-by-make
  set -- .venv/bin/python -m pip
else
  "$python" -m venv --without-pip .venv
  touch .venv/made-by-make
  set -- "$python" -m pip --python .venv/bin/python
fi
# --no-deps: TFF's own pins cannot be met (overrides.txt), and the list is
# complete. Where nobody watches, only what goes wrong is worth a line.
if [ -t 1 ]; then quiet=; else quiet=--quiet; fi
set -- "$@" install --disable-pip-version-check --no-input --no-deps $quiet
"$@" -r requirements.txt
# The checkout itself, found from any folder. The list holds what builds it.
"$@" --no-build-isolation --editable .

printf '%s\n%s\n' "$lock_sum" "$version" >"$stamp"
