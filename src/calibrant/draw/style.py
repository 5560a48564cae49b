"""Colours, dashes and markers of every figure: one style per model, distinct in colour and in
greyscale.
"""

import math
from collections.abc import Iterable

from calibrant._typing import FloatArray
from calibrant.assess.threshold.cut import Cut
from calibrant.assess.threshold.proved_threshold import Threshold
from calibrant.errors import InvalidValueError

QUIET = "0.55"
SCALES = ("linear", "logit")
_LOGIT_TICKS = (
    0.5,
    0.1,
    0.9,
    0.01,
    0.99,
    0.001,
    0.999,
    1e-4,
    1e-5,
    0.25,
    0.75,
    0.03,
    0.97,
    0.003,
    0.997,
)


GUARANTEED, OBSERVED, BAND = range(3)
"""Indices of the styles of what a calibrator guarantees, of observed rates, and of other bands."""


def logit_ends(values: FloatArray) -> tuple[float, float]:
    """Return the ends of both axes on the logit scale: slightly beyond every value other than 0 and
    1.
    """
    inside = values[(values > 0.0) & (values < 1.0)]
    if not inside.size:
        raise InvalidValueError(
            "scale", "be 'linear' where every score and rate is 0 or 1", got="'logit'"
        )
    low = float(inside.min())
    high = float(inside.max())
    return low / (low + 2.5 * (1.0 - low)), 2.5 * high / (2.5 * high + 1.0 - high)


def logit_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Return round numbers for the logit scale, the roundest first, at most about `most`, so that
    they do not touch.

    >>> logit_ticks(0.02, 0.6), logit_ticks(0.0003, 0.9997)
    ([0.03, 0.1, 0.25, 0.5], [0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999])
    """
    gap = (logit(high) - logit(low)) / most
    chosen: list[float] = []
    for tick in _LOGIT_TICKS:
        if low <= tick <= high and all(abs(logit(tick) - logit(other)) >= gap for other in chosen):
            chosen.append(tick)
    return sorted(chosen)


def logit(value: float) -> float:
    """The log odds."""
    return math.log(value) - math.log1p(-value)


def named_cuts(cuts: Iterable[Cut]) -> dict[str, float]:
    """Return the guaranteed thresholds, by target."""
    return {
        f"{cut.target} {cut.level:g}"
        + ("" if cut.segment is None else f", {cut.segment}"): cut.threshold
        for cut in cuts
        if cut.threshold is not None
    }


def decided(found: Threshold, low: float, high: float) -> dict[str, tuple[float, float]]:
    """Return the score ranges in which rows are selected and referred, within an axis.

    Empty for several segments.
    """
    if len(found.ends) != 1:
        return {}
    ((refer, select),) = found.ends.values()
    refer, select = (min(max(end, low), high) for end in (refer, select))
    spans = {"selected": (select, high), "referred to a person": (refer, select)}
    return {name: (start, end) for name, (start, end) in spans.items() if start < end}
