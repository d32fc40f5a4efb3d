# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes BUILD from the Python files that are there: `make build-file`.

One py_library for each module and one py_test for each test, with the
dependencies that their import statements show. A binary gets a py_binary
beside its library. The packages that pip installs are not Bazel's: targets run
with the Python found first on PATH.
"""

from __future__ import annotations

import ast
import pathlib
from typing import Optional

PROJECT = pathlib.Path(__file__).parent.parent
FOLDERS = ('tff_autotune_secagg', 'examples', 'experiments', 'tests', 'tools')

# A test that compiles computations or starts processes may need more than the
# five minutes that Bazel gives to a `medium` one.
_MODULES_OF_LARGE_TESTS = {'experiments', 'subprocess', 'tensorflow_federated'}

_HEADER = """\
# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Written by `make build-file`. A test compares it with the files there are.
# Targets run with the Python found first on PATH, into which requirements.txt
# has been installed: PATH="$PWD/.venv/bin:$PATH" bazel test //...

load("@rules_python//python:defs.bzl", "py_binary", "py_library", "py_test")

package(default_visibility = ["//visibility:public"])

# What a test may read or run, for those that look for files of the project.
filegroup(
    name = "project_files",
    testonly = True,
    srcs = glob([
        "*",
        ".ci/**",
        "docs/**",
        "examples/**",
        "experiments/**",
        "tests/**",
        "tff_autotune_secagg/**",
        "tools/**",
    ]),
)
"""


def source_files(project: pathlib.Path = PROJECT) -> list[pathlib.PurePath]:
  """Python files of `project` that get a target, in the order of BUILD."""
  return [
    path.relative_to(project)
    for folder in FOLDERS
    for path in sorted((project / folder).glob('**/*.py'))
    # pytest's own hook file is no module that anything imports.
    if path.name != 'conftest.py'
  ]


def is_test(path: pathlib.PurePath) -> bool:
  return path.parts[0] == 'tests' and path.name.endswith('_test.py')


def target_name(path: pathlib.PurePath) -> str:
  """Name of the target of the file at `path`.

  A module of the package and a test are known by their stem alone; elsewhere
  the folder comes first.
  """
  parts = list(path.with_suffix('').parts)
  if parts[-1] == '__init__':
    del parts[-1]
  elif parts[0] == 'tff_autotune_secagg' or is_test(path):
    del parts[0]
  return '_'.join(parts)


def _imported_modules(tree: ast.AST) -> set[str]:
  """Names that the import statements of `tree` may mean modules by."""
  names = set()
  for node in ast.walk(tree):
    if isinstance(node, ast.Import):
      names.update(alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
      names.update(f'{node.module}.{alias.name}' for alias in node.names)
  return names


def _file_of(module: str, project: pathlib.Path) -> Optional[pathlib.PurePath]:
  """File of `project` that holds `module`, or the name `module` ends with."""
  parts = module.split('.')
  if parts[0] not in FOLDERS:
    return None
  # The folder's __init__ is asked last: a target that needs one module of the
  # package must not depend on all of them.
  for length in range(len(parts), max(len(parts) - 2, 0), -1):
    stem = pathlib.PurePath(*parts[:length])
    for path in (stem.with_suffix('.py'), stem / '__init__.py'):
      if (project / path).is_file():
        return path
  return None


def _has_main(tree: ast.Module) -> bool:
  return any(
    isinstance(node, ast.If) and '__main__' in ast.dump(node.test)
    for node in tree.body
  )


def _reads_project(tree: ast.AST) -> bool:
  """Whether the file looks for others: they are found from `__file__`."""
  return any(
    getattr(node, 'id', None) == '__file__'
    or getattr(node, 'attr', None) == '__file__'
    for node in ast.walk(tree)
  )


def _rule(kind: str, **attributes: Optional[object]) -> str:
  """One rule in the layout that Bazel's own formatter gives."""
  lines = []
  for name, value in attributes.items():
    if not value:
      continue
    if isinstance(value, list) and len(value) > 1:
      items = ''.join(f'        "{item}",\n' for item in value)
      lines.append(f'    {name} = [\n{items}    ],\n')
    elif isinstance(value, list):
      lines.append(f'    {name} = ["{value[0]}"],\n')
    elif value in (True, '0'):
      lines.append(f'    {name} = {value},\n')
    else:
      lines.append(f'    {name} = "{value}",\n')
  return f'{kind}(\n{"".join(lines)})\n'


def _rules_of(path: pathlib.PurePath, project: pathlib.Path) -> list[str]:
  tree = ast.parse((project / path).read_text(encoding='utf-8'))
  name = target_name(path)
  modules = _imported_modules(tree)
  files = {_file_of(module, project) for module in modules} - {None, path}
  deps = sorted(f':{target_name(file)}' for file in files)
  if is_test(path):
    roots = {module.partition('.')[0] for module in modules}
    large = roots & _MODULES_OF_LARGE_TESTS
    return [
      _rule(
        'py_test',
        name=name,
        size='large' if large else 'medium',
        srcs=[str(path)],
        data=[':project_files'] if _reads_project(tree) else [],
        main=str(path),
        # Or Bazel would add an empty __init__.py to every folder, and hide the
        # package's own.
        legacy_create_init='0',
        deps=deps,
      )
    ]
  rules = [
    _rule(
      'py_library',
      name=name,
      testonly=path.parts[0] in ('tests', 'tools'),
      srcs=[str(path)],
      data=['tff_autotune_secagg/py.typed'] * (name == 'tff_autotune_secagg'),
      deps=deps,
    )
  ]
  if path.parts[0] in ('examples', 'experiments') and _has_main(tree):
    rules.append(
      _rule(
        'py_binary',
        name=path.stem,
        srcs=[str(path)],
        main=str(path),
        legacy_create_init='0',
        deps=[f':{name}'],
      )
    )
  return rules


def build_text(project: pathlib.Path = PROJECT) -> str:
  """Returns what BUILD should hold for the files of `project`."""
  rules = [
    rule for path in source_files(project) for rule in _rules_of(path, project)
  ]
  return '\n'.join([_HEADER, *rules])


def main() -> None:
  (PROJECT / 'BUILD').write_text(build_text(), encoding='utf-8')


if __name__ == '__main__':
  main()
