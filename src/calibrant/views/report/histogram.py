"""The histogram under a diagram: where its bars stand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant._audit import AuditTable
from calibrant._typing import FloatArray, IndexArray
from calibrant.tally import Tally
from calibrant.views.report import wording
from calibrant.views.report.scales import LARGE, Axis

MOST_BARS = 100  # more can not be told apart
_SMALLEST_BAR = 0.75
_ATOM_WIDTH = 3.0
_FEWEST_BARS = 4  # a histogram with fewer bars in sight says less than the regions do


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of the histogram; the lower part of it stands for the positive rows."""

    x: float
    width: float
    height: float
    positive: float
    data: dict[str, str]


def score_bars(
    table: AuditTable, rows: IndexArray, histogram: Tally | None, x_axis: Axis
) -> tuple[tuple[Bar, ...], int]:
    """The histogram's bars, and how many rows lie beyond the axis."""
    low, high = x_axis.limits
    if histogram is not None:
        # neighbours are drawn as one bar where there would be more bars than the eye can tell apart
        first = np.arange(0, histogram.n_regions, -(-histogram.n_regions // MOST_BARS))
        counts, positives = (np.add.reduceat(sums, first) for sums in (histogram.counts, histogram.positives))
        starts, ends = first / histogram.n_regions, np.append(first[1:], histogram.n_regions) / histogram.n_regions
        seen = (counts > 0) & (ends > low) & (starts < high)
        if np.count_nonzero(seen) >= min(_FEWEST_BARS, rows.size):
            bars = _drawn(starts[seen], ends[seen], counts[seen], positives[seen], x_axis, density=False)
            return bars, int(counts[~seen].sum())
    left, right, counts = table.low[rows], table.high[rows], table.counts[rows]
    positives = np.rint(table.rate[rows] * counts).astype(np.int64)
    if (left == right).all():
        return _drawn(left, right, counts, positives, x_axis, density=False), 0
    middles = (right[:-1] + left[1:]) / 2
    starts, ends = np.append(left[:1], middles), np.append(middles, right[-1:])
    return _drawn(starts, ends, counts, positives, x_axis, density=True), 0


def region_bars(places: Sequence[float], regions: Sequence[Mapping[str, str]]) -> tuple[Bar, ...]:
    """The rows of regions that stand at single places."""
    counts = [int(region["count"]) for region in regions]
    names = ("region", "count", "positives") if len(regions) <= MOST_BARS else ()
    return tuple(
        Bar(
            round(place - _ATOM_WIDTH / 2, 2),
            _ATOM_WIDTH,
            round(height, 2),
            round(height * int(region["positives"]) / max(count, 1), 2),
            {name: region[name] for name in names},
        )
        for place, region, count, height in zip(
            places, regions, counts, _heights(np.array(counts, dtype=float)), strict=True
        )
    )


def _heights(values: FloatArray) -> list[float]:
    room = LARGE.histogram_bottom - LARGE.histogram_top
    largest = float(values.max(initial=0.0))
    if largest == 0.0:
        return [0.0] * values.size
    return [0.0 if value == 0.0 else max(_SMALLEST_BAR, room * value / largest) for value in values.tolist()]


def _drawn(
    starts: FloatArray, ends: FloatArray, counts: IndexArray, positives: IndexArray, x_axis: Axis, *, density: bool
) -> tuple[Bar, ...]:
    widths = ends - starts
    smallest = (x_axis.high - x_axis.low) * _ATOM_WIDTH / abs(x_axis.end - x_axis.start)
    heights = _heights(counts / np.maximum(widths, smallest) if density else counts.astype(float))
    bars = []
    for place, height in enumerate(heights):
        start, end = (min(max(float(side[place]), x_axis.low), x_axis.high) for side in (starts, ends))
        x, width = x_axis(start), x_axis(end) - x_axis(start)
        if width < _ATOM_WIDTH and starts[place] == ends[place]:
            x, width = x - _ATOM_WIDTH / 2, _ATOM_WIDTH
        count, positive = int(counts[place]), int(positives[place])
        data = {
            "low": wording.exact(float(starts[place])),
            "high": wording.exact(float(ends[place])),
            "count": wording.exact(count),
            "positives": wording.exact(positive),
        }
        bars.append(
            Bar(round(x, 2), round(max(width, 0.3), 2), round(height, 2), round(height * positive / max(count, 1), 2),
                data)
        )  # fmt: skip
    return tuple(bars)
