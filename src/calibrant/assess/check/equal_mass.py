"""Bins of equal mass, and the rate of positives in each."""

import numpy as np

from calibrant._typing import CodeArray, FloatArray, IndexArray, IntArray
from calibrant.cells.score_partition import equal_mass

_BINS_PER_ROOT = 2.0  # number of bins over the cube root of the number of rows


def equal_mass_bins(values: FloatArray) -> IndexArray:
    """Bins of about equal mass, cut between values; with few distinct values, each is a bin.

    The order of the rows does not matter.
    """
    _, number, counts = np.unique(values, return_inverse=True, return_counts=True)
    return bins_of_values(number, counts)


def bins_of_values(number: IndexArray, counts: IntArray) -> IndexArray:
    """Bins of about equal mass, given the index of each row's value among the distinct values, and
    their counts.
    """
    n_bins = max(1, int(_BINS_PER_ROOT * np.cbrt(number.size)))
    if counts.size <= n_bins:
        return np.asarray(number)
    of_values = equal_mass(counts, n_bins)
    is_new = np.diff(of_values, prepend=of_values[0]) != 0  # no value is in an earlier bin
    return np.asarray(np.cumsum(is_new)[number])


def rates_of(codes: CodeArray, bins: IndexArray) -> FloatArray:
    """The rate of positives in each bin."""
    return np.bincount(bins, weights=codes) / np.bincount(bins)
