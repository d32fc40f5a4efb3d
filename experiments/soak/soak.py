# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Thousands of rounds of the aggregator under a random script of faults.

`run(config)` draws a script: clients with bad values or weights, cohorts that
change size, updates that grow or shrink up to a thousandfold at once. It runs
the weighted aggregator through it and checks every round against a float64 mean
of the clients that must count. It yields one row for every block of rounds.
"""

import asyncio
import collections
import dataclasses
import os
import shutil
import time
from typing import Any, Dict, Iterator, List, Optional

import numpy as np
from scipy import stats
import tensorflow_federated as tff

from experiments.common import checkpoints
from experiments.common import command_line
from experiments.common import environment
from experiments.common import results_file
from experiments.soak import script
import tff_autotune_secagg as autotune

# The chance that an honest round breaks the bound on its wrapped entries.
_FALSE_ALARM = 1e-9
# A round is recovered below this error. The steady state is near 0.002 at 256.
_RECOVERED_NMSE = 0.25
# Sums of like size: the bin size of one serves the other.
_LIKE_SIZE = 1.5
# The last of so many sums of like size in a row must be read: a jump costs two
# rounds.
_RECOVERED_ROUNDS = 3
# Unless sums have changed by e^1.5 more often than this in so many rounds: what
# repeats is noise to the tuner, and it no longer follows each change.
_MAX_CHANGES, _CHANGES_ROUNDS, _CHANGE_LOG = 3, 13, 1.5


class _Truth:
  """The float64 mean of the clients that must count, and their numbers."""

  def __init__(self, values, weights, dim):
    self.sum = np.zeros(dim)
    self.weight_sum, self.num_rejected, self.num_contributing = 0.0, 0, 0
    for value, weight in zip(values, weights):
      with np.errstate(all='ignore'):
        product = value.astype(np.float64) * np.float64(weight)
        is_good = 0 <= weight <= 2.0**40 and np.linalg.norm(product) < 1.8e19
      if not is_good:
        self.num_rejected += 1
        continue
      self.sum += product
      self.weight_sum += float(weight)
      # The runtime treats denormal numbers as 0.
      self.num_contributing += bool(np.any(np.abs(product) > 1.2e-38))
    self.stddev = float(np.sqrt(np.mean(self.sum**2)))


def error_bound(
  stddev, num_clients, bin_size, dim, modulus, dither=False
) -> float:
  """The most that a round with one bin size may be off, in energy of the sum.

  Rounding adds at most 1/4 bin^2 per entry and client. Dither may add up over
  clients whose updates are small against a bin: n^2 / 12 bin^2 per entry.
  Entries that come near half a period cost at most a period each; their number
  is bounded by what a normal exceeds with probability `_FALSE_ALARM`. Where the
  sum is much wider than that, its own energy bounds the expected error.
  """
  variance = num_clients / 4
  if dither:
    variance = max(variance, num_clients**2 / 12)
  noise = variance * bin_size**2
  period = modulus * bin_size
  spread = np.sqrt(stddev**2 + noise)
  tail = 2 * stats.norm.sf(0.9 * period / 2 / spread)
  wrapped = stats.binom.isf(_FALSE_ALARM, dim, tail)
  return float(2 * noise * dim + min(wrapped * period**2, 2 * dim * stddev**2))


class _Checker:
  """Checks rounds one by one and keeps what a block of them showed."""

  def __init__(self, config: script.Config):
    self._config = config
    self._recent = collections.deque(maxlen=_CHANGES_ROUNDS + 1)
    self.reset()

  def reset(self):
    """Forgets the block, not the rounds that recovery is judged by."""
    self.violations: List[Dict[str, Any]] = []
    self.counts = collections.Counter()
    self.worst = collections.Counter()
    self.ratios: List[float] = []

  def check(self, step, truth, output, next_state_bins):
    """Checks one round.

    Args:
      step: The step of the script.
      truth: Its `_Truth`.
      output: What the process returned.
      next_state_bins: (round counter, bin size) of the returned state.
    """
    measured = output.measurements
    inner = measured['value']
    self.counts[step.fault or 'clean'] += 1
    self._recent.append(truth.stddev) if truth.stddev > 0 else None

    def require(claim, is_met, **numbers):
      if not is_met:
        self.violations.append(
          dict(claim=claim, **dataclasses.asdict(step), **numbers)
        )

    counter, next_bin = next_state_bins
    require('round counter advances', counter == step.round, found=counter)
    require(
      'bin size finite and positive',
      np.isfinite(next_bin) and next_bin > 0,
      found=next_bin,
    )
    require('result finite', bool(np.all(np.isfinite(output.result))))
    require(
      'rejected clients counted',
      int(measured['rejected_clients']) == truth.num_rejected,
      found=int(measured['rejected_clients']),
      expected=truth.num_rejected,
    )
    require(
      'contributing clients counted',
      int(inner['num_clients']) == truth.num_contributing,
      found=int(inner['num_clients']),
      expected=truth.num_contributing,
    )
    require(
      'weights summed',
      np.isclose(measured['weight_sum'], truth.weight_sum, rtol=1e-6),
      found=float(measured['weight_sum']),
      expected=truth.weight_sum,
    )

    total = np.asarray(output.result, np.float64) * truth.weight_sum
    error = float(np.sum((total - truth.sum) ** 2))
    energy = float(np.sum(truth.sum**2))
    lost = bool(inner['calibrating'] or inner['blind'])
    self.counts['calibrating'] += bool(inner['calibrating'])
    self.counts['blind'] += bool(inner['blind'])
    if truth.num_contributing == 0:
      require('nothing gives 0', error <= 1e-60, error=error)
      return
    nmse = error / energy
    if lost:
      self.worst['nmse_lost'] = max(self.worst['nmse_lost'], nmse)
      require('lost round within the energy', nmse <= 1.5, nmse=nmse)
    else:
      bound = error_bound(
        truth.stddev,
        truth.num_contributing,
        float(inner['bin_size']),
        self._config.dim,
        self._config.modulus,
        self._config.dither,
      )
      ratio = error / bound
      self.worst['error_over_bound'] = max(
        self.worst['error_over_bound'], ratio
      )
      require('error within its bound', ratio <= 1, ratio=ratio, nmse=nmse)
    self._check_recovery(require, nmse, lost, inner)

  def _check_recovery(self, require, nmse, lost, inner):
    """The third sum of like size in a row must be read."""
    sizes = np.array(self._recent)
    last = sizes[-_RECOVERED_ROUNDS:]
    like = last.max() <= _LIKE_SIZE * last.min()
    changes = np.abs(np.diff(np.log(sizes))) > _CHANGE_LOG
    if len(last) < _RECOVERED_ROUNDS or not like or sum(changes) > _MAX_CHANGES:
      return
    self.counts['settled'] += 1
    self.worst['nmse_settled'] = max(self.worst['nmse_settled'], nmse)
    self.ratios.append(nmse / float(inner['predicted_nmse']))
    require(
      'recovered in two rounds',
      not lost and nmse <= _RECOVERED_NMSE,
      nmse=nmse,
      lost=lost,
    )


def _resident_mib(pid: int) -> float:
  with open(f'/proc/{pid}/statm') as f:
    pages = int(f.read().split()[1])
  return pages * os.sysconf('SC_PAGE_SIZE') / 2**20


def _counter_and_bin(state):
  """The rounds so far and the bin size in the aggregator's state."""
  quantize = state['value']['inner']
  return int(quantize['round']), float(quantize['tuner']['bin_size'])


def _build(config: script.Config) -> tff.templates.AggregationProcess:
  rounding = autotune.Rounding.STOCHASTIC
  if config.dither:
    rounding = autotune.Rounding.DITHER
  return autotune.autotuned_secure_aggregator(
    modulus=config.modulus,
    zeroing=False,
    clipping=False,
    rounding=rounding,
    seed=config.seed,
  ).create(tff.TensorType(np.float32, [config.dim]), tff.TensorType(np.float32))


def check(config: script.Config) -> None:
  """Raises ValueError if the aggregator refuses a setting."""
  autotune.WrappedNormalTuner(modulus=config.modulus)


def run(
  config: script.Config,
  *,
  state_manager: Optional[tff.program.ProgramStateManager] = None,
) -> Iterator[results_file.Row]:
  """Runs a soak in the current context, which must be the local simulation's.

  Args:
    config: What to run.
    state_manager: Where the state is kept after each block, and the one to
      continue from; None for neither.

  Yields:
    Rows with `round` (the last of the block), `seconds`, `python_mib` and
    `worker_mib` (resident memory), `violations` (list, empty if all is well),
    `counts` by fault and event, `worst` (largest `nmse_lost`, `nmse_settled`
    and `error_over_bound`) and `mean_nmse_over_predicted` of settled rounds.
  """
  process = _build(config)
  state, done = process.initialize(), 0
  if state_manager is not None:
    state, done = asyncio.run(
      autotune.load_latest_state(state_manager, process)
    )
  checker = _Checker(config)
  start = time.monotonic()
  for step in script.steps(config):
    if step.round <= done:
      continue
    values, weights = script.clients(config, step)
    output = process.next(state, values, weights)
    state = output.state
    truth = _Truth(values, weights, config.dim)
    checker.check(step, truth, output, _counter_and_bin(state))
    if step.round % config.block and step.round != config.num_rounds:
      continue
    (worker_pid,) = autotune.simulation.worker_pids()
    ratios = checker.ratios
    yield dict(
      round=step.round,
      seconds=round(time.monotonic() - start, 1),
      python_mib=round(_resident_mib(os.getpid()), 1),
      worker_mib=round(_resident_mib(worker_pid), 1),
      violations=checker.violations,
      counts=dict(sorted(checker.counts.items())),
      worst={k: float(f'{v:.3g}') for k, v in sorted(checker.worst.items())},
      mean_nmse_over_predicted=(
        float(f'{np.mean(ratios):.4g}') if ratios else None
      ),
    )
    if state_manager is not None:
      checkpoints.save(state_manager, state, step.round)
    checker.reset()
    start = time.monotonic()


def _run_name(config: script.Config) -> str:
  settings = dataclasses.asdict(config)
  return results_file.run_name(dict(settings, aggregator='soak'))


def rows_of(
  config: script.Config, file: results_file.ResultsFile
) -> List[results_file.Row]:
  """The rows of a soak that a file has."""
  run = _run_name(config)
  return [
    row for row in file.rows() if row['kind'] == 'round' and row['run'] == run
  ]


def run_to_file(
  config: script.Config, file: results_file.ResultsFile
) -> Iterator[results_file.Row]:
  """As `run`, with each row appended to a file, and continued from there.

  Args:
    config: What to run.
    file: Gets the rows; beside it, a folder with the state while it runs.

  Yields:
    The new rows: none of a soak that the file has whole.

  Raises:
    UserError: The rows before the state were taken away.
  """
  run_name = _run_name(config)
  done = max(file.rounds(run_name), default=0)
  if done == config.num_rounds:
    return
  folder = f'{file.path}.{run_name}.state'
  manager = checkpoints.open_folder(folder)
  if checkpoints.last_version(manager) > done:
    raise command_line.UserError(
      f'{file.path!r} must have the rows before the state in {folder!r}, found'
      f' those up to round {done}: restore them, or give another file to start'
      ' anew.'
    )
  file.begin(run_name, dataclasses.asdict(config), environment.describe())
  for row in run(config, state_manager=manager):
    file.drop_rounds_after(run_name, row['round'] - 1)
    file.append(dict(kind='round', run=run_name, **row))
    yield row
  shutil.rmtree(folder, ignore_errors=True)


def summarize(rows: List[results_file.Row]) -> Dict[str, Any]:
  """What a whole soak showed, from its rows."""
  counts, worst = collections.Counter(), collections.Counter()
  for row in rows:
    counts.update(row['counts'])
    for key, value in row['worst'].items():
      worst[key] = max(worst[key], value)
  weighted = [
    (row['counts'].get('settled', 0), row['mean_nmse_over_predicted'])
    for row in rows
    if row['mean_nmse_over_predicted'] is not None
  ]
  settled = sum(n for n, _ in weighted)
  summary = dict(
    rounds=rows[-1]['round'],
    violations=sum(len(row['violations']) for row in rows),
    seconds_per_round=sum(r['seconds'] for r in rows) / rows[-1]['round'],
    mean_nmse_over_predicted=(
      sum(n * m for n, m in weighted) / max(settled, 1)
    ),
    counts=dict(sorted(counts.items())),
    worst=dict(worst),
  )
  for name in ('python_mib', 'worker_mib'):
    summary[name] = [
      row[name] for row in (rows[0], rows[len(rows) // 2], rows[-1])
    ]
  return summary
