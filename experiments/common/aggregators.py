# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The texts by which experiments name an aggregator.

For instance `plain_mean` or `autotuned:modulus=16,wrap_probability=0.001`: a
name in `NAMES`, then settings. `parse` reads such a text, without TensorFlow;
`aggregator_factories.build` makes the aggregator that it names.
"""

import dataclasses
import math
import re
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

# What `autotuned` had before its defaults were others.
FORMER_DEFAULTS = 'clipping=false,decoding=posterior_mean'

_REQUIRED = object()


def _boolean(text: str) -> bool:
  values = {'true': True, 'false': False}
  if text.lower() not in values:
    raise ValueError('true or false')
  return values[text.lower()]


def _positive_float(text: str) -> float:
  value = float(text)
  if not 0 < value < math.inf:
    raise ValueError('a positive number')
  return value


def _nonnegative_float(text: str) -> float:
  value = float(text)
  if not 0 <= value < math.inf:
    raise ValueError('0 or a positive number')
  return value


def _int_or_auto(text: str) -> Optional[int]:
  return None if text == 'auto' else int(text)


def _float_or_auto(text: str) -> Optional[float]:
  return None if text == 'auto' else _positive_float(text)


def _probability(text: str) -> Optional[float]:
  if text == 'auto':
    return None
  value = float(text)
  if not 0 < value < 1:
    raise ValueError('auto or a number between 0 and 1')
  return value


def _share(text: str) -> float:
  value = float(text)
  if not 0 < value <= 1:
    raise ValueError('above 0 and at most 1')
  return value


def _one_of(*choices: str) -> Callable[[str], str]:
  def read(text):
    if text not in choices:
      raise ValueError(' or '.join(choices))
    return text

  read.rule = ' or '.join(choices)
  return read


_RULES = {
  int: 'an int',
  _boolean: 'true or false',
  _positive_float: 'a positive number',
  _nonnegative_float: '0 or a positive number',
  _int_or_auto: 'auto or an int',
  _float_or_auto: 'auto or a positive number',
  _probability: 'auto or a number between 0 and 1',
  _share: 'above 0 and at most 1',
}


@dataclasses.dataclass(frozen=True)
class _Entry:
  summary: str
  settings: Mapping[str, Tuple[Callable[[str], Any], Any]]
  secure: bool = True


def _entry(summary: str, **settings) -> _Entry:
  """What an aggregator is, in a line, and its settings: type and default."""
  return _Entry(summary, settings)


def _in_the_clear(summary: str, **settings) -> _Entry:
  """As `_entry`, of one whose server sees single updates."""
  return _Entry(summary, settings, secure=False)


_ENTRIES: Dict[str, _Entry] = {
  'plain_mean': _in_the_clear(
    'mean of 32-bit floats, in the clear',
    zeroing=(_boolean, False),
    clipping=(_boolean, False),
  ),
  'clipped_mean': _in_the_clear(
    'plain_mean whose sum is clipped to factor times its usual norm',
    factor=(_positive_float, 1.5),
  ),
  'fixed_range': _entry(
    'fixed clipping range and room for every sum, without autotuning; an odd '
    'number of levels, with one at 0, unless there are two or it rotates; '
    'clip_range is in units of the update times the client weight; auto is '
    "TFF's estimate from a quantile of the clients' largest values; "
    'sampled_fraction of the rotated coordinates is sent',
    bits=(int, 8),
    clip_range=(_float_or_auto, _REQUIRED),
    rotate=(_boolean, False),
    sampled_fraction=(_share, 1.0),
    zeroing=(_boolean, False),
    clipping=(_boolean, False),
  ),
  'secure_aggregator': _entry(
    'tff.learning.secure_aggregator: 32-bit integers under secure aggregation',
    zeroing=(_boolean, True),
    clipping=(_boolean, True),
  ),
  'rotated_secure_sum': _entry(
    "rotation, then the 32-bit integers and TFF's estimated range of "
    'secure_aggregator',
  ),
  'compression_aggregator': _in_the_clear(
    'tff.learning.compression_aggregator: large tensors 8 bits, in the clear',
    zeroing=(_boolean, True),
    clipping=(_boolean, True),
  ),
  'ddp_secure_aggregator': _entry(
    'tff.learning.ddp_secure_aggregator, by default without noise; an '
    'unweighted mean',
    bits=(int, 20),
    zeroing=(_boolean, True),
    noise_multiplier=(_nonnegative_float, 0.0),
  ),
  'central_dp': _in_the_clear(
    'tff.aggregators.DifferentiallyPrivateFactory: Gaussian noise of the '
    'server, updates in the clear; an unweighted mean',
    noise_multiplier=(_positive_float, 1.0),
    clip_norm=(_float_or_auto, None),
  ),
  'distributed_dp': _entry(
    'this package, with noise of the clients; an unweighted mean; min_clients '
    'are those of the round unless given; sampled_fraction of the coordinates '
    'is sent',
    noise_multiplier=(_positive_float, 1.0),
    min_clients=(_int_or_auto, None),
    clip_norm=(_float_or_auto, None),
    modulus=(_int_or_auto, None),
    sampled_fraction=(_share, 1.0),
  ),
  'rotated_quantization': _in_the_clear(
    'rotation, then a range per client, in the clear (Suresh et al. 2017)',
    bits=(int, 8),
  ),
  'kashin': _entry(
    'Kashin coefficients instead of a rotation, autotuned as this package is',
    modulus=(int, 256),
    wrap_probability=(_probability, None),
  ),
  'autotuned': _entry(
    'this package; wrap_probability=auto minimizes the error',
    modulus=(int, 256),
    wrap_probability=(_probability, None),
    rounding=(_one_of('stochastic', 'dither'), 'stochastic'),
    decoding=(_one_of('unbiased', 'posterior_mean', 'centred'), 'unbiased'),
    zeroing=(_boolean, True),
    clipping=(_boolean, True),
    num_rotations=(int, 1),
    prediction=(_boolean, False),
  ),
}
NAMES: Tuple[str, ...] = tuple(_ENTRIES)


@dataclasses.dataclass(frozen=True)
class Scheme:
  """An aggregator and its settings, not yet bound to a model.

  Attributes:
    text: The text it was parsed from, which names it in results.
    name: One of `NAMES`.
    settings: All its settings, defaults filled in.
  """

  text: str
  name: str
  settings: Mapping[str, Any]

  @property
  def secure(self) -> bool:
    """Whether the server sees nothing of an update but the sum."""
    return _ENTRIES[self.name].secure


def parse(text: str) -> Scheme:
  """Reads `name` or `name:setting=value,setting=value`.

  Args:
    text: The text.

  Returns:
    The scheme.

  Raises:
    ValueError: If a name, setting or value is wrong; the message lists the
      right ones.
  """
  name, colon, rest = text.partition(':')
  if name not in _ENTRIES:
    raise ValueError(
      f'`aggregator` must be one of {", ".join(NAMES)}, found {name!r}.'
    )
  known = _ENTRIES[name].settings
  given = {}
  # An empty setting is refused, too: rows are named by the text.
  for item in rest.split(',') if colon else ():
    key, equals, value = item.partition('=')
    if key not in known or not equals:
      right = ', '.join(f'{k}=...' for k in known) or 'none'
      hint = ''
      if key == 'bits' and 'modulus' in known:
        hint = ' The modulus is 2**bits: write modulus=256 for 8 bits.'
      raise ValueError(
        f'Settings of the aggregator {name!r} must be among {right}; found '
        f'{item!r}.{hint}'
      )
    if key in given:
      raise ValueError(
        f'Settings of the aggregator {name!r} must be given once each, found'
        f' {key!r} again in {text!r}.'
      )
    reader = known[key][0]
    try:
      given[key] = reader(value)
    except ValueError as e:
      rule = getattr(reader, 'rule', None) or _RULES[reader]
      raise ValueError(
        f'Setting {key!r} of the aggregator {name!r} must be {rule}, found '
        f'{value!r}.'
      ) from e
  settings = {}
  for key, (_, default) in known.items():
    if default is _REQUIRED and key not in given:
      raise ValueError(
        f'The aggregator {name!r} must be given the setting {key!r}, found '
        f'{text!r}. Write for instance {name}:{key}=1.'
      )
    settings[key] = given.get(key, default)
  if name == 'fixed_range':
    _check_sample(settings)
  return Scheme(text, name, settings)


def _check_sample(settings: Mapping[str, Any]) -> None:
  """Raises ValueError if coordinates are left out that were not rotated."""
  if settings['sampled_fraction'] < 1 and not settings['rotate']:
    raise ValueError(
      "Setting 'sampled_fraction' of the aggregator 'fixed_range' must be 1 "
      f'without rotate=true, found {settings["sampled_fraction"]:g}: a few '
      'large coordinates could be left out. Write rotate=true.'
    )


def label(text: str) -> str:
  """The text as legends have it.

  Settings that were the package's defaults once, and are in the text since they
  are no longer, become two words.
  """
  for before in ',:':
    text = text.replace(
      f'{before}{FORMER_DEFAULTS}', f'{before} posterior mean'
    )
  return text


def fill_in(
  text: str, bits: int, largest: float, deviation: float = 1.0
) -> str:
  """Replaces what stands for a number in the text of an aggregator.

  `{bits}`, `{modulus}` (2**bits), `{max}`, and `{max/4}` for a fourth of it or
  `{max/N}` for another part; `{3*rms}` or `{N*rms}` for so many deviations.

  Args:
    text: The text.
    bits: What `{bits}` and `{modulus}` stand for.
    largest: The largest absolute coordinate.
    deviation: Root mean square of a coordinate after a rotation.

  Returns:
    The text with all of them replaced.
  """
  text = re.sub(
    r'\{max/([1-9][0-9]*)\}',
    lambda match: repr(float(largest) / int(match[1])),
    text,
  )
  text = re.sub(
    r'\{([1-9][0-9]*)\*rms\}',
    lambda match: repr(int(match[1]) * float(deviation)),
    text,
  )
  return (
    text.replace('{bits}', str(bits))
    .replace('{modulus}', str(2**bits))
    .replace('{max}', repr(float(largest)))
  )


def describe() -> str:
  """One line for each aggregator, with its settings and their defaults."""
  lines = []
  for name, entry in _ENTRIES.items():
    settings = ', '.join(
      f'{key}='
      + (
        '...'
        if default is _REQUIRED
        else 'auto'
        if default is None
        else str(default).lower()
      )
      for key, (_, default) in entry.settings.items()
    )
    lines.append(f'{name}{":" if settings else ""}{settings} ({entry.summary})')
  return '; '.join(lines)
