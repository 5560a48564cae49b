"""Kinds of scores: fine near 0 and 1, where a rate affects the tails of a sum of labels most."""

import numpy as np

from calibrant._typing import FloatArray, IndexArray

N_KINDS = 128
"""The number of kinds."""


def kinds_of(scores: FloatArray) -> IndexArray:
    """The kind of each probability, from 0 to 127.

    128 sqrt(s / 2) up to 1/2 and 128 (1 - sqrt((1 - s) / 2)) above, rounded down. Square roots are
    correctly rounded everywhere, so every engine finds the same kind.

    >>> kinds_of(np.array([0.0, 0.001, 0.5, 0.999, 1.0]))
    array([  0,   2,  64, 125, 127])
    """
    low = N_KINDS * np.sqrt(scores / 2.0)
    high = N_KINDS * (1.0 - np.sqrt((1.0 - scores) / 2.0))
    place = np.floor(np.where(scores <= 0.5, low, high)).astype(np.intp)
    return np.minimum(place, N_KINDS - 1)
