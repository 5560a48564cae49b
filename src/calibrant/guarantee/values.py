"""The predicted value of each region."""

import itertools

import numpy as np

from calibrant._typing import FloatArray
from calibrant.cells.partition import Partition
from calibrant.cells.tally import Tally
from calibrant.errors import InvalidValueError
from calibrant.limits.interval import Interval
from calibrant.limits.shift.evidence import effective_rows
from calibrant.params.rules import Choice
from calibrant.text.sentences import Setting

VALUES = ("jeffreys", "mean", "midpoint", "monotone")


def region_values(
    value: str,
    partition: Partition,
    tally: Tally,
    limits: Interval,
    rows: tuple[FloatArray, FloatArray] | None = None,
) -> FloatArray:
    """Return the predicted value of each region, which has N rows, k of them positive.

    For weighted rows, see `effective_rows`.

    "jeffreys" is (k + 1/2) / (N + 1), the mean of Jeffreys' posterior: never exactly 0 or 1. "mean"
    is k / N, or the midpoint of the interval if there are no rows. "midpoint" is the midpoint of
    the interval. "monotone" is "jeffreys" where these values do not decrease from one bin of a
    segment to the next; bins that break the order share the mean of their values, weighted by N + 1
    (isotonic regression).

    >>> tally = Tally.from_counts([9, 9, 19], [4, 3, 10])
    >>> nothing_known = Interval(np.zeros(3), np.ones(3))
    >>> region_values("jeffreys", Partition.fixed_width(3), tally, nothing_known)
    array([0.45 , 0.35 , 0.525])
    >>> region_values("monotone", Partition.fixed_width(3), tally, nothing_known)
    array([0.4  , 0.4  , 0.525])
    """
    Choice(VALUES).check("value", value)
    middle = limits.midpoint  # 1/2 without rows
    if value == "midpoint":
        return middle
    counts, positives = effective_rows(tally) if rows is None else rows
    if value == "mean":
        return np.divide(positives, counts, out=middle, where=counts > 0)
    # also without rows, where it is 1/2
    values = (positives + 0.5) / (counts + 1.0)
    if value == "jeffreys":
        return values
    if not partition.bins_by_segment:
        rule = (
            "not be 'monotone' for regions without an order, such as those of ",
            Setting("partition"),
        )
        raise InvalidValueError("value", rule, got="'monotone'")
    from sklearn.isotonic import isotonic_regression

    pieces = itertools.pairwise(partition.as_bins().layout.cells.first.tolist())
    pooled = [isotonic_regression(values[a:b], sample_weight=counts[a:b] + 1.0) for a, b in pieces]
    return np.concatenate(pooled)
