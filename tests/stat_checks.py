# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tolerances of statistical tests, from standard errors.

A statistical test states the standard error of its statistic and accepts
`Z` of them: two-sided probability 6e-7 of a false alarm per comparison, and
`z_for(num_comparisons)` keeps that for the largest of many. Sample sizes are
chosen such that the smallest defect that matters is 10 standard errors or more,
which a negative control in the test shows.
"""

import math

import numpy as np
from scipy import stats

# Standard errors accepted in one comparison.
Z = 5.0


def z_for(num_comparisons: int) -> float:
  """Standard errors to accept in the largest of several comparisons.

  Bonferroni: the chance that any of them fails is that of one at `Z`.
  """
  return float(stats.norm.isf(stats.norm.sf(Z) / num_comparisons))


def mean_error(stddev: float, num_samples: int) -> float:
  """Standard error of the mean of independent samples of that deviation."""
  return stddev / math.sqrt(num_samples)


def proportion_error(probability: float, num_samples: int) -> float:
  """Standard error of the share of successes at that true probability."""
  return math.sqrt(probability * (1.0 - probability) / num_samples)


def variance_error(
  variance: float, num_samples: int, excess_kurtosis: float = 0.0
) -> float:
  """Standard error of the unbiased sample variance (0 excess is the normal)."""
  relative = excess_kurtosis + 2.0 * num_samples / (num_samples - 1)
  return variance * math.sqrt(relative / num_samples)


def stddev_error(
  stddev: float, num_samples: int, excess_kurtosis: float = 0.0
) -> float:
  """Standard error of the sample standard deviation, to first order."""
  return variance_error(stddev**2, num_samples, excess_kurtosis) / (2 * stddev)


def correlation_error(num_samples: int) -> float:
  """Standard error of the sample correlation of independent pairs."""
  return 1.0 / math.sqrt(num_samples)


def kurtosis_error(num_samples: int) -> float:
  """Standard error of the sample excess kurtosis of normal samples."""
  return math.sqrt(24.0 / num_samples)


def chi_square_tolerance(degrees: int) -> float:
  """Largest chi-square statistic accepted, at the one-sided level of `Z`."""
  return float(stats.chi2.isf(stats.norm.sf(Z), degrees))


def chi_square_statistic(counts, expected) -> float:
  """Pearson's statistic of observed against expected counts."""
  counts = np.asarray(counts, np.float64)
  expected = np.asarray(expected, np.float64)
  return float(np.sum((counts - expected) ** 2 / expected))


def is_near(
  value: float, expected: float, standard_error: float, z: float = Z
) -> bool:
  """Whether `value` is within `z` standard errors of `expected`."""
  return abs(value - expected) <= z * standard_error
