#!/bin/sh
# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Walks each way that docs/install.md gives, by its own commands, with the last
# commit and in new environments, and starts TensorBoard and the planner there.
# It downloads about 1 GB for each, and needs 3 GB of disk at a time.
#
# Usage: UV_VERSION=... tools/check_install.sh [make] [pip] [uv] [uv-sync]
# Without an argument it walks all. PYTHON names the interpreter.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- make pip uv uv-sync
python=$(sh tools/find_python.sh)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

# The folder's name is that of the guide's example of a project beside it.
mkdir "$work/tff_autotune_secagg"
git archive HEAD | tar -x -C "$work/tff_autotune_secagg"
cd "$work/tff_autotune_secagg"

# Prints the first block of the language $2 after the words $1 of the guide.
block() {
  awk -v words="$1" -v fence="\`\`\`$2" '
    index($0, words) { found = 1 }
    inside && $0 == "```" { exit }
    inside
    found && $0 == fence { inside = 1 }
  ' docs/install.md >"$work/block"
  [ -s "$work/block" ] || {
    echo "docs/install.md has no block of $2 after \"$1\"." >&2
    exit 1
  }
  cat "$work/block"
}

# Runs the commands of the block of the guide after the words $1.
run_block() {
  block "$1" shell | sed "s|python3\.11|$python|; s|--python 3\.11|--python $python|" \
    >"$work/commands"
  sh -eux "$work/commands"
}

install_uv() {
  [ ! -d "$work/uv" ] || return 0
  "$python" -m venv "$work/uv"
  "$work/uv/bin/python" -m pip install --quiet "uv==$UV_VERSION"
  PATH="$work/uv/bin:$PATH"
}

# Fails unless the command $1 shows a help that has the flag $2.
check_help() {
  # Abseil's --help ends with status 1.
  "$1" --help >"$work/help" 2>&1 || true
  grep -q -e "$2" "$work/help" || { cat "$work/help" >&2; exit 1; }
}

for way in "$@"; do
  case $way in
    make)
      PYTHON=$python make env
      env=$PWD/.venv ;;
    pip)
      run_block '### With pip alone'
      run_block 'When you install something later'
      env=$work/my-env ;;
    uv)
      install_uv
      run_block '### With uv'
      env=$work/my-env ;;
    uv-sync)
      install_uv
      mkdir "$work/my-project"
      block 'In a project that uv manages' toml \
        >"$work/my-project/pyproject.toml"
      (cd "$work/my-project" && uv sync --python "$python")
      env=$work/my-project/.venv ;;
    *)
      echo "A way must be make, pip, uv or uv-sync, found $way." >&2
      exit 2 ;;
  esac
  check_help "$env/bin/tensorboard" --logdir
  check_help "$env/bin/tff-autotune-planner" --num_clients
  "$env/bin/python" -I -c 'import tff_autotune_secagg'
  rm -rf "$env"
  echo "docs/install.md, $way: TensorBoard and the planner start."
done
