# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The code of the section "Adding a stage" of CONTRIBUTING.md."""

import pathlib
import re

_TEXT = pathlib.Path(__file__).parents[1] / 'CONTRIBUTING.md'


def blocks() -> list[str]:
  """Returns the code of the section: the stage, then the factory."""
  text = _TEXT.read_text(encoding='utf-8')
  section = text.partition('\n## Adding a stage\n')[2].partition('\n## ')[0]
  return re.findall(r'```python\n(.*?)```', section, re.DOTALL)


# Defines `ScaleStage`.
exec(compile(blocks()[0], str(_TEXT), 'exec'), globals())
