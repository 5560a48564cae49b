"""The predicted value of each region."""

from itertools import pairwise

import numpy as np

from calibrant._params import Choice
from calibrant._text import Setting
from calibrant._typing import FloatArray
from calibrant.errors import InvalidValueError
from calibrant.intervals import Interval
from calibrant.intervals.shift.base import effective_rows
from calibrant.partition import Partition
from calibrant.tally import Tally

VALUES = ("jeffreys", "mean", "midpoint", "monotone")


def region_values(
    value: str, partition: Partition, tally: Tally, limits: Interval, rows: tuple[FloatArray, FloatArray] | None = None
) -> FloatArray:
    """Return the predicted value of each region, of N rows with k positives; for weighted rows see `effective_rows`.

    "jeffreys" is (k + 1/2) / (N + 1), the mean of Jeffreys' posterior: never exactly 0 or 1. "mean" is k / N, and the
    middle of the interval where no row was seen. "midpoint" is the middle of the interval. "monotone" is "jeffreys"
    where these values do not fall from one bin of a segment to the next; bins that break the order share the mean of
    their values, weighted by N + 1 (isotonic regression).

    >>> tally = Tally.from_counts([9, 9, 19], [4, 3, 10])
    >>> nothing_known = Interval(np.zeros(3), np.ones(3))
    >>> region_values("jeffreys", Partition.fixed_width(3), tally, nothing_known)
    array([0.45 , 0.35 , 0.525])
    >>> region_values("monotone", Partition.fixed_width(3), tally, nothing_known)
    array([0.4  , 0.4  , 0.525])
    """
    Choice(VALUES).check("value", value)
    middle = limits.midpoint  # 1/2 where nothing was seen
    if value == "midpoint":
        return middle
    counts, positives = effective_rows(tally) if rows is None else rows
    if value == "mean":
        return np.divide(positives, counts, out=middle, where=counts > 0)
    values = (positives + 0.5) / (counts + 1.0)
    if value == "jeffreys":
        return values
    if not partition.bins_by_segment:
        rule = ("not be 'monotone' for regions without an order, such as those of ", Setting("partition"))
        raise InvalidValueError("value", rule, got="'monotone'")
    first = partition.as_bins().layout.cells.first
    weights = counts + 1.0
    pieces = [slice(low, high) for low, high in pairwise(first.tolist())]
    return np.concatenate([_rising(values[piece], weights[piece]) for piece in pieces])


def _rising(values: FloatArray, weights: FloatArray) -> FloatArray:
    """The nearest values that never fall, in weighted squares: neighbours that break the order are pooled."""
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        size = 1
        while blocks and blocks[-1][0] > value:
            other, more, length = blocks.pop()
            value, weight, size = (value * weight + other * more) / (weight + more), weight + more, size + length
        blocks.append((value, weight, size))
    return np.repeat([value for value, _, _ in blocks], [size for _, _, size in blocks])
