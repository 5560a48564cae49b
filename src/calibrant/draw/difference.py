"""The second panel of a reliability diagram: observed minus predicted, spaced by rows.

If scores crowd in a corner, rates and scores overlap each other and the diagonal. Their differences
do not, and with bins side by side, each as wide as its share of the rows, none is hidden.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.assess.metrics.reliability import ReliabilityTable
from calibrant.draw.style import GUARANTEED, OBSERVED
from calibrant.guarantee.guarantee import Guarantee
from calibrant.text.numbers import nearest, per_cent
from calibrant.text.picture import Drawn, Picture, ReferenceLine

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FIFTH = 0.2
_TICKS = 5


def scores_crowd(middles: FloatArray, counts: IntArray, low: float, high: float) -> bool:
    """Whether more than half of the rows have scores within one fifth of the axis.

    The rule uses scores only, not labels: a panel that appears when rates look wrong would select
    what is shown by what was found.

    >>> scores_crowd(np.array([0.05, 0.5, 0.9]), np.array([80, 10, 10]), 0.0, 1.0)
    True
    >>> scores_crowd(np.array([0.05, 0.5, 0.9]), np.array([40, 20, 40]), 0.0, 1.0)
    False
    """
    total = int(counts.sum())
    if not total or not low < high:
        return False
    place = (middles - low) / (high - low)
    order = np.argsort(place)
    before = np.concatenate([[0], np.cumsum(counts[order])])
    ends = np.searchsorted(place[order], place[order] + _FIFTH, side="right")
    return bool((before[ends] - before[:-1]).max() > total / 2)


def table_crowds(table: ReliabilityTable, low: float, high: float) -> bool:
    """Whether the scores of a table crowd in a small part of the axis."""
    edges = table.histogram_edges
    return scores_crowd((edges[:-1] + edges[1:]) / 2, table.histogram, low, high)


@dataclass(frozen=True, slots=True)
class BinDifferences:
    """Rate minus prediction for each bin with rows, from the lowest score to the highest.

    Attributes
    ----------
    begin, end : float arrays
        The rows of the bin, as a share of all rows in the order of their scores.
    score : float array
        Mean score, or prediction, of the bin.
    value, lower, upper : float arrays
        Observed rate minus prediction, and limits on the true rate minus the prediction. They hold
        for all bins simultaneously if the limits on the rates do, because the prediction is a fixed
        number.
    """

    begin: FloatArray
    end: FloatArray
    score: FloatArray
    value: FloatArray
    lower: FloatArray
    upper: FloatArray

    @property
    def middle(self) -> FloatArray:
        """The position of the bin."""
        return (self.begin + self.end) / 2


def differences_from(
    counts: IntArray,
    predicted: FloatArray,
    rate: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> BinDifferences:
    """BinDifferences for bins in any order, without empty bins."""
    seen = np.flatnonzero(counts > 0)
    order = seen[np.argsort(predicted[seen], kind="stable")]
    share = np.cumsum(counts[order]) / max(int(counts[order].sum()), 1)
    score = predicted[order]
    return BinDifferences(
        begin=np.concatenate([[0.0], share[:-1]]),
        end=share,
        score=score,
        value=rate[order] - score,
        lower=lower[order] - score,
        upper=upper[order] - score,
    )


def table_differences(
    table: ReliabilityTable, guarantee: Guarantee | None = None
) -> BinDifferences:
    """Observed rate minus mean score, or minus the values of a guarantee for the same bins.

    With a guarantee, bins are placed by its row counts, next to its own.
    """
    predicted = (table.counts, table.mean_score)
    if guarantee is not None:
        predicted = (guarantee.counts, guarantee.value)
    return differences_from(*predicted, table.rate, table.lower, table.upper)


def guarantee_differences(guarantee: Guarantee) -> BinDifferences:
    """Limits on the true rate minus the prediction, around 0."""
    value = guarantee.value
    return differences_from(guarantee.counts, value, value, guarantee.lower, guarantee.upper)


def draw_differences(
    ax: Axes, observed: BinDifferences | None, guaranteed: BinDifferences | None
) -> None:
    """Draw the panel: bands of what is guaranteed, and observed differences with their limits."""
    drawn = []
    if guaranteed is not None:
        ends = np.column_stack([guaranteed.begin, guaranteed.end]).ravel().tolist()
        limits = (guaranteed.lower, guaranteed.upper)
        low, high = (np.repeat(limit, 2).tolist() for limit in limits)
        drawn.append(Drawn("guaranteed", ends, low, low, high, kind="band", style=GUARANTEED))
    if observed is not None:
        middle, value, low, high = (
            column.tolist()
            for column in (observed.middle, observed.value, observed.lower, observed.upper)
        )
        drawn.append(Drawn("observed", middle, value, low, high, style=OBSERVED))
    level = (ReferenceLine("rate = prediction", 0.0),)
    labels = ("score, spaced by rows", "rate minus prediction, points")
    Picture("", "", *labels, tuple(drawn), level, y_unit="points").plot(ax).get_legend().remove()
    _label(ax, guaranteed if observed is None else observed)


def _label(ax: Axes, shown: BinDifferences | None) -> None:
    """Show each score below the rows that have it."""
    ax.set_xlim(-0.01, 1.01)
    if shown is None or not shown.score.size:
        return
    last = shown.score.size - 1
    places = np.unique(np.linspace(0, last, min(_TICKS, last + 1)).round().astype(int))
    scores = [nearest(float(shown.score[place])) for place in places]
    if shown.score.min() >= 0.0 and shown.score.max() <= 1.0:
        scores = list(map(per_cent, scores))
    ax.set_xticks(shown.middle[places], scores)
