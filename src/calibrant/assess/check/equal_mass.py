"""Bins of equal mass, and the rate of positives in each."""

import numpy as np

from calibrant._typing import CodeArray, FloatArray, IndexArray
from calibrant.cells.score_partition import equal_mass

_BINS_PER_ROOT = 2.0  # bins of the score, times the cube root of the number of rows


def equal_mass_bins(values: FloatArray) -> IndexArray:
    """Bins of about equal mass, cut between values; each value is one where there are few.

    The order plays no part.
    """
    distinct, number, counts = np.unique(values, return_inverse=True, return_counts=True)
    n_bins = max(1, int(_BINS_PER_ROOT * np.cbrt(values.size)))
    if distinct.size <= n_bins:
        return np.asarray(number)
    return np.unique(equal_mass(counts, n_bins), return_inverse=True)[1][number]


def rates_of(codes: CodeArray, bins: IndexArray) -> FloatArray:
    """The rate of positives in each bin."""
    return np.bincount(bins, weights=codes) / np.bincount(bins)
