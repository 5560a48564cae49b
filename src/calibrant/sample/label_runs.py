"""Runs of equal labels, which show that rows are sorted."""

import numpy as np

from calibrant._typing import CodeArray, FloatArray

LONG_RUN = -30.0
"""Log probability below which a run of equal labels is never due to chance."""
_SHARE = 0.05  # a sorted file has at least this share of a label in one run; a stormy day has less


def long_run(codes: CodeArray, values: FloatArray, rates: FloatArray) -> int:
    """The length of the least likely run of equal labels; 0 if it may be due to chance, to rows
    sorted by score, or to groups: then it has few of the rows with this label.

    >>> codes, rates = np.repeat([0, 1], 100), np.full(200, 0.5)
    >>> long_run(codes, np.tile([0.4, 0.6], 100), rates), long_run(codes, np.arange(200.0), rates)
    (100, 0)
    """
    if is_sorted(values):
        return 0
    start = np.flatnonzero(np.diff(codes, prepend=2))
    chance = np.add.reduceat(np.log(np.where(codes == 1, rates, 1.0 - rates)), start)
    least = int(np.argmin(chance))
    length = int(np.diff(start, append=codes.size)[least])
    of_label = np.count_nonzero(codes == codes[start[least]])
    return length if chance[least] < LONG_RUN and length >= _SHARE * of_label else 0


def is_sorted(values: FloatArray) -> bool:
    """Whether values are nondecreasing or nonincreasing."""
    steps = np.diff(values)
    return bool((steps >= 0.0).all() or (steps <= 0.0).all())
