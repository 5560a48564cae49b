"""Limits and appearance of the axes of a reliability diagram."""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._typing import FloatArray
from calibrant.assess.metrics.reliability import ReliabilityTable
from calibrant.draw.style import logit_ends, logit_ticks
from calibrant.guarantee.guarantee import Guarantee
from calibrant.text.sentences import is_true, name_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STRIP = 0.18
"""Height of the histogram strip, as a share of the range of rates."""
_MARGIN = 0.02


def logit_limits(
    tables: Sequence[ReliabilityTable], guarantee: Guarantee | None
) -> tuple[float, float]:
    """Return the ends of both axes on the logit scale: slightly beyond every score and rate other
    than 0 and 1.
    """
    seen = [part[table.counts > 0] for table in tables for part in (table.mean_score, table.rate)]
    return logit_ends(np.concatenate(seen if guarantee is None else [*seen, guarantee.value]))


def score_limits(
    tables: Sequence[ReliabilityTable], bounds: FloatArray | None
) -> tuple[float, float]:
    """Return the limits of the score axis."""
    seen = [table.histogram_edges for table in tables]
    values = np.concatenate(seen if bounds is None else [*seen, bounds[np.isfinite(bounds)]])
    if not values.size or (values.min() >= 0.0 and values.max() <= 1.0):
        return 0.0, 1.0
    return float(values.min()), float(values.max())


def highest_rate(tables: Sequence[ReliabilityTable | Guarantee]) -> float:
    """Return the upper end of the rate axis: 1, or lower if every limit is small."""
    highest = max(float(table.upper[table.counts > 0].max(initial=0.0)) for table in tables)
    return 1.0 if highest == 0.0 or highest > 0.5 else 1.1 * highest


def has_marks_at_upper_left(tables: Sequence[ReliabilityTable], left: float, right: float) -> bool:
    """Whether a limit above 0.75 is drawn where a legend would cover it."""
    covered = left + 0.75 * (right - left)
    return any(
        bool(((table.upper > 0.75) & (table.mean_score < covered)).any()) for table in tables
    )


def set_limits(
    ax: "Axes", left: float, right: float, top: float, *, strip: bool, logit: bool
) -> None:
    """Set the limits of both axes, with room below for the histogram if there is a strip."""
    if logit:
        ax.set_xscale("logit")
        ax.set_yscale("logit", nonpositive="clip")  # whiskers reach the limits 0 and 1
        ax.set_xlim(left, right)
        ax.set_ylim(left, right)
        ticks = logit_ticks(left, right)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_ticks(ticks, [f"{100 * tick:g}%" for tick in ticks])
            axis.set_ticks([], minor=True)
    else:
        margin = _MARGIN * (right - left)
        ax.set_xlim(left - margin, right + margin)
        ax.set_ylim(-top * (STRIP + _MARGIN if strip else _MARGIN), top * (1 + _MARGIN))
        ax.set_yticks([tick for tick in ax.get_yticks() if 0.0 <= tick <= top * (1 + _MARGIN)])
        in_per_cent(ax.yaxis)
        if left >= 0.0 and right <= 1.0:
            in_per_cent(ax.xaxis)


def in_per_cent(axis: Any) -> None:
    """Write the ticks of an axis in per cent."""
    axis.set_major_formatter(import_module("matplotlib.ticker").PercentFormatter(1.0))


def rate_label(positive: object) -> str:
    """The name of a rate: that of the label, unless the label only means yes.

    >>> rate_label("default"), rate_label(1)
    ('default rate', 'rate')
    """
    return "rate" if is_true(positive) else f"{name_of(positive)} rate"
