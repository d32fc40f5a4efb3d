# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a colour means, in every picture: it stands for one aggregator.

An aggregator is named as in `aggregators`, and so it stands in legends. Curves
of one aggregator with several settings share its hue and differ in lightness
and line style. The colours are those of Okabe and Ito (2008) and of Tol (2021),
which colour-blind readers can tell apart.
"""

from typing import Any, Dict, Iterable, List, Tuple

from matplotlib import colors

from experiments.common import arms

# This package, and what it is compared with: colour and marker.
_LOOKS: Dict[str, Tuple[str, str]] = {
  'autotuned': ('#0072B2', 'o'),
  'plain_mean': ('#000000', 's'),
  'fixed_range': ('#009E73', 'v'),
  'secure_aggregator': ('#CC79A7', 'D'),
  'compression_aggregator': ('#E69F00', '^'),
  'ddp_secure_aggregator': ('#D55E00', 'P'),
  'rotated_quantization': ('#661100', 'X'),
  'kashin': ('#999933', '*'),
  'distributed_dp': ('#332288', 'p'),
  'central_dp': ('#882255', 'h'),
  'clipped_mean': ('#DDAA33', '<'),
  'rotated_secure_sum': ('#117733', '>'),
}
COLOURS: Dict[str, str] = {name: colour for name, (colour, _) in _LOOKS.items()}
# Parts of libraries that are no aggregators by themselves.
COLOURS.update(TFF='#AA4499', TFMOT='#44AA99')
# All that is of nobody: bounds, limits, guides to the eye.
NEUTRAL = COLOURS['neutral'] = '#7F7F7F'

_STYLES = ('-', '--', '-.', ':')
# The lightest curve of a hue is mixed with so much white.
_MOST_WHITE = 0.6
_DITHERED = ':rounding=dither'


def shades(name: str, count: int) -> List[Dict[str, Any]]:
  """Colours and line styles of `count` curves of one aggregator, darkest first.

  Args:
    name: Of `COLOURS`.
    count: At least 1; more than four curves repeat line styles, not colours.
  """
  hue = colors.to_rgb(COLOURS[name])
  found = []
  for index in range(count):
    white = _MOST_WHITE * index / max(count - 1, 1)
    found.append(
      dict(
        color=colors.to_hex([white + (1 - white) * part for part in hue]),
        linestyle=_STYLES[index % len(_STYLES)],
      )
    )
  return found


def family_name(arm: str) -> str:
  """The name of an arm's aggregator, without its settings."""
  return arms.aggregator(arm).partition(':')[0]


def curves(compared: Iterable[str]) -> Dict[str, Dict[str, Any]]:
  """Colour and line style of each arm of a picture.

  Args:
    compared: Arms (`arms.of`), also repeated.

  Returns:
    The look of each, by the text, in the order of appearance.
  """
  texts = list(dict.fromkeys(compared))
  by_name: Dict[str, List[str]] = {}
  for text in texts:
    by_name.setdefault(family_name(text), []).append(text)
  looks = {}
  for name, members in by_name.items():
    looks.update(zip(members, shades(name, len(members))))
  return {text: looks[text] for text in texts}


def family(aggregator: str) -> str:
  """The family of an aggregator text, which may hold places for bits.

  Its name, and whether it rounds by dither.
  """
  is_dither = 'rounding=dither' in aggregator
  return aggregator.partition(':')[0] + (_DITHERED if is_dither else '')


def families(present: Iterable[str]) -> List[str]:
  """The families among `present`, in the order of legends."""
  known = [name + end for name in _LOOKS for end in ('', _DITHERED)]
  found = set(present)
  return [name for name in known if name in found]


def family_style(name: str) -> Dict[str, Any]:
  """Label, marker and colour of a family; with dither, markers are hollow."""
  plain = name.partition(':')[0]
  colour, marker = _LOOKS[plain]
  look = dict(label=name, marker=marker, color=colour)
  if plain != name:
    look.update(markerfacecolor='white')
  return look
