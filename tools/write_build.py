# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the BUILD files from the Python files there are: `make build-file`.

One BUILD for each folder that holds Python files, and one at the root. Each
module has a target of its own name, an `__init__` that of its folder, with the
dependencies that its import statements show: a py_test, a py_binary if it has a
main, else a py_library. The packages that pip installs are not Bazel's: targets
run with the Python found first on PATH.
"""

from __future__ import annotations

import ast
import pathlib
from typing import Optional

PROJECT = pathlib.Path(__file__).parent.parent
FOLDERS = ('examples', 'experiments', 'tests', 'tff_autotune_secagg', 'tools')

# A test that compiles computations or starts processes may need more than the
# five minutes that Bazel gives to a `medium` one.
_MODULES_OF_LARGE_TESTS = {'experiments', 'subprocess', 'tensorflow_federated'}

_LICENSE = """\
# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""

_ROOT = (
  _LICENSE
  + """\
#
# Written by `make build-file`, as are the BUILD files of the folders. A test
# compares them with the files there are. Targets run with the Python found
# first on PATH, into which requirements.txt has been installed:
# PATH="$PWD/.venv/bin:$PATH" bazel test //...

package(default_visibility = ["//visibility:public"])

# What a test may read or run, for those that look for files of the project.
filegroup(
    name = "project_files",
    testonly = True,
    srcs = glob([
        "*",
        ".ci/**",
        "docs/**",
    ]) + [
"""
)


def _folders(project: pathlib.Path) -> list[pathlib.PurePath]:
  """Folders of `project` with Python files in them or below, but the root."""
  folders = set()
  for top in FOLDERS:
    for path in (project / top).rglob('*.py'):
      folders.update(path.relative_to(project).parents)
  return sorted(folders - {pathlib.PurePath('.')})


def source_files(project: pathlib.Path = PROJECT) -> list[pathlib.PurePath]:
  """Python files of `project` that get a target."""
  return sorted(
    path.relative_to(project)
    for top in FOLDERS
    for path in (project / top).rglob('*.py')
    # pytest's own hook file is no module that anything imports.
    if path.name != 'conftest.py'
  )


def is_test(path: pathlib.PurePath) -> bool:
  return path.parts[0] == 'tests' and path.name.endswith('_test.py')


def _target_name(path: pathlib.PurePath) -> str:
  return path.parent.name if path.stem == '__init__' else path.stem


def label(path: pathlib.PurePath, folder: pathlib.PurePath) -> str:
  """Label of the target of the file at `path`, as seen from `folder`."""
  name = f':{_target_name(path)}'
  return name if path.parent == folder else f'//{path.parent}{name}'


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
  # The folder's __init__ is asked last: a name is that of a module first.
  for length in range(len(parts), max(len(parts) - 2, 0), -1):
    stem = pathlib.PurePath(*parts[:length])
    for path in (stem.with_suffix('.py'), stem / '__init__.py'):
      if (project / path).is_file():
        return path
  return None


def _imported_files(
  path: pathlib.PurePath, project: pathlib.Path
) -> set[pathlib.PurePath]:
  """Files of `project` that the import statements at `path` name."""
  tree = ast.parse((project / path).read_text(encoding='utf-8'))
  files = {_file_of(module, project) for module in _imported_modules(tree)}
  return files - {None, path}


def _inits(
  path: pathlib.PurePath, project: pathlib.Path
) -> set[pathlib.PurePath]:
  """The `__init__` files that Python runs before the module at `path`."""
  inits = {folder / '__init__.py' for folder in path.parents}
  return {init for init in inits if (project / init).is_file()}


def dependencies(
  project: pathlib.Path = PROJECT,
) -> dict[pathlib.PurePath, set[pathlib.PurePath]]:
  """What each source file needs of `project`.

  That is what it imports, and the `__init__` of each folder on the way, which
  Python runs first: without it, a checkout that is also on Python's path would
  be taken in place of Bazel's files. An `__init__` that itself needs the file
  is left out, since Bazel knows no circles; whoever needs the file names it.
  """
  imported = {p: _imported_files(p, project) for p in source_files(project)}
  reached = {}
  for path in imported:
    reached[path], todo = set(), [path]
    while todo:
      new = imported[todo.pop()] - reached[path]
      reached[path] |= new
      todo += new
  return {
    path: files
    | {
      init
      for file in files
      for init in _inits(file, project) - {path}
      if path not in reached[init]
    }
    for path, files in imported.items()
  }


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


def _rule_of(
  path: pathlib.PurePath, files: set[pathlib.PurePath], project: pathlib.Path
) -> str:
  """The one rule for the file at `path`, which needs `files`."""
  tree = ast.parse((project / path).read_text(encoding='utf-8'))
  modules = _imported_modules(tree)
  kind, size, data = 'py_library', None, []
  if is_test(path):
    kind, size = 'py_test', 'medium'
    if {m.partition('.')[0] for m in modules} & _MODULES_OF_LARGE_TESTS:
      size = 'large'
    if _reads_project(tree):
      data = ['//:project_files']
  elif _has_main(tree):
    kind = 'py_binary'
  elif path.stem == '__init__':
    if (project / path.parent / 'py.typed').is_file():
      data = ['py.typed']
  return _rule(
    kind,
    name=_target_name(path),
    size=size,
    testonly=kind != 'py_test' and path.parts[0] in ('tests', 'tools'),
    srcs=[path.name],
    data=data,
    # Or Bazel would add an empty __init__.py to every folder, and hide the
    # package's own.
    legacy_create_init=None if kind == 'py_library' else '0',
    deps=sorted(
      (label(file, path.parent) for file in files),
      key=lambda dep: (dep.startswith('//'), dep.replace(':', '!')),
    ),
  )


def _files_label(folder: pathlib.PurePath) -> str:
  return f'        "//{folder}:files",\n'


def _folder_text(
  folder: pathlib.PurePath,
  folders: list[pathlib.PurePath],
  needs: dict[pathlib.PurePath, set[pathlib.PurePath]],
  project: pathlib.Path,
) -> str:
  """What BUILD in `folder` should hold."""
  rules = [
    _rule_of(path, files, project)
    for path, files in needs.items()
    if path.parent == folder
  ]
  # A glob stops where a folder has a BUILD of its own.
  below = ''.join(_files_label(f) for f in folders if f.parent == folder)
  srcs = 'glob(["**"])' + (f' + [\n{below}    ]' if below else '')
  parts = [
    _LICENSE,
    'package(default_visibility = ["//visibility:public"])\n',
    'filegroup(\n    name = "files",\n    testonly = True,\n'
    f'    srcs = {srcs},\n)\n',
    *rules,
  ]
  if rules:
    kinds = sorted({rule.partition('(')[0] for rule in rules})
    symbols = ', '.join(f'"{kind}"' for kind in kinds)
    parts.insert(1, f'load("@rules_python//python:defs.bzl", {symbols})\n')
  return '\n'.join(parts)


def build_texts(
  project: pathlib.Path = PROJECT,
) -> dict[pathlib.PurePath, str]:
  """Returns what each BUILD file should hold for the files of `project`."""
  folders = _folders(project)
  needs = dependencies(project)
  below = ''.join(_files_label(f) for f in folders if len(f.parts) == 1)
  return {
    pathlib.PurePath('BUILD'): f'{_ROOT}{below}    ],\n)\n',
    **{
      folder / 'BUILD': _folder_text(folder, folders, needs, project)
      for folder in folders
    },
  }


def build_files(project: pathlib.Path = PROJECT) -> set[pathlib.PurePath]:
  """Returns the BUILD files that are there, also those of no use any more."""
  paths = [project / 'BUILD']
  for top in FOLDERS:
    paths.extend((project / top).rglob('BUILD'))
  return {path.relative_to(project) for path in paths if path.is_file()}


def write(project: pathlib.Path = PROJECT) -> None:
  """Writes the BUILD files of `project` and removes those of no use."""
  texts = build_texts(project)
  for path in build_files(project) - set(texts):
    (project / path).unlink()
  for path, text in texts.items():
    (project / path).write_text(text, encoding='utf-8')


if __name__ == '__main__':
  write()
