"""The histogram below a diagram: the positions of its bars."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrant._typing import FloatArray, IndexArray, IntArray
from calibrant.assess.audit.findings import AuditTable
from calibrant.cells.tally import Tally
from calibrant.draw.report.scales import LARGE, Axis
from calibrant.text.numbers import nearest

MOST_BARS = 100  # more could not be told apart
_SMALLEST_BAR = 0.75
_ATOM_WIDTH = 3.0
_FEWEST_BARS = 4  # a histogram with fewer visible bars says less than the regions do


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of the histogram; its lower part shows the positive rows."""

    x: float
    width: float
    height: float
    positive: float
    data: dict[str, str]


def score_bars(
    table: AuditTable, chosen: IndexArray, histogram: Tally | None, x_axis: Axis
) -> tuple[tuple[Bar, ...], int]:
    """The bars of the histogram, or of the chosen regions if there is none, and how many rows lie
    beyond the axis.
    """
    if histogram is not None:
        # merge neighbours into one bar if there are too many bars to see
        first = np.arange(0, histogram.n_regions, -(-histogram.n_regions // MOST_BARS))
        counts, positives = (
            np.add.reduceat(sums, first) for sums in (histogram.counts, histogram.positives)
        )
        starts = first / histogram.n_regions
        ends = np.append(first[1:], histogram.n_regions) / histogram.n_regions
        seen = (counts > 0) & (ends > x_axis.low) & (starts < x_axis.high)
        if np.count_nonzero(seen) >= min(_FEWEST_BARS, chosen.size):
            bars = drawn_bars(
                starts[seen],
                ends[seen],
                counts[seen],
                positives[seen],
                x_axis,
                density=False,
            )
            return bars, int(counts[~seen].sum())
    left = table.low[chosen]
    right = table.high[chosen]
    counts = table.counts[chosen]
    positives = np.rint(table.rate[chosen] * counts).astype(np.int64)
    if (left == right).all():
        return drawn_bars(left, right, counts, positives, x_axis, density=False), 0
    middles = (right[:-1] + left[1:]) / 2
    starts = np.append(left[:1], middles)
    ends = np.append(middles, right[-1:])
    return drawn_bars(starts, ends, counts, positives, x_axis, density=True), 0


def _heights(values: FloatArray) -> list[float]:
    room = LARGE.histogram_bottom - LARGE.histogram_top
    largest = float(values.max(initial=0.0))
    return [
        max(_SMALLEST_BAR, room * value / largest) if value else 0.0 for value in values.tolist()
    ]


def drawn_bars(
    starts: FloatArray,
    ends: FloatArray,
    counts: IntArray,
    positives: IntArray,
    x_axis: Axis,
    *,
    density: bool,
    names: tuple[str, str] = ("low", "high"),
    where: Sequence[dict[str, str]] | None = None,
) -> tuple[Bar, ...]:
    """A bar for each range of scores or values, narrow where it is a single one. With `density`,
    its area shows the rows, else its height.

    Bars say where they are by their ends, or by `where`, unless these are too many to be read.
    """
    if where is None:
        where = [
            dict(zip(names, (nearest(start), nearest(end)), strict=True))
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
    elif len(where) > MOST_BARS:
        where = [{}] * len(where)
    places = [
        [x_axis(min(max(side, x_axis.low), x_axis.high)) for side in ends_]
        for ends_ in (starts, ends)
    ]
    widths = np.maximum(np.diff(places, axis=0)[0], _ATOM_WIDTH)
    heights = _heights(counts / widths if density else counts.astype(float))
    bars = []
    columns = (starts == ends, *places, heights, counts.tolist(), positives.tolist(), where)
    for is_single, x, stop, height, count, positive, here in zip(*columns, strict=True):
        width = _ATOM_WIDTH if is_single else max(stop - x, 0.3)
        left = x - _ATOM_WIDTH / 2 if is_single else x
        data = {**here, "count": f"{count:,}", "positives": f"{positive:,}"} if here else {}
        lower = height * positive / max(count, 1)
        bars.append(Bar(round(left, 2), round(width, 2), round(height, 2), round(lower, 2), data))
    return tuple(bars)
