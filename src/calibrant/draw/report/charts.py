"""Figures of the short reports: lines, points with limits, and thresholds, as positions on the
page.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import CodeArray, FloatArray, IntArray
from calibrant.assess.metrics.reliability import ReliabilityTable
from calibrant.assess.rates.goal import Goal
from calibrant.assess.threshold.proved_threshold import Threshold
from calibrant.draw.report.figures import QUIET_STYLE, Figure, Series, path_of, steps
from calibrant.draw.report.scales import (
    Axis,
    Frame,
    Limits,
    MarkLine,
    axes_in,
    limits_of,
    threshold_marks,
)
from calibrant.draw.style import STYLES, logit_ends
from calibrant.guarantee.guarantee import Guarantee
from calibrant.text.numbers import limits as limits_text
from calibrant.text.numbers import nearest

WIDE = Frame(480, 376, 50, 468, 34, 330, margin=6.0)
"""The frame of a stand-alone figure."""
_POINTS = 200  # per curve
_ACTIONS = {1: "act", 0: "do not act", QUIET_STYLE: "cannot tell"}


def _whiskers(x: FloatArray, low: FloatArray, high: FloatArray, axes: tuple[Axis, Axis]) -> str:
    lines = zip(x.tolist(), low.tolist(), high.tolist(), strict=True)
    return "".join(f"M{axes[0](at)} {axes[1](least)}V{axes[1](most)}" for at, least, most in lines)


def _score_limits(scores: FloatArray) -> Limits:
    low = float(scores.min())
    high = float(scores.max())
    if low >= 0.0 and high <= 1.0:
        return limits_of([low, high])
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def threshold_chart(
    identifier: str,
    name: str,
    found: Threshold,
    segment: object,
    scores: FloatArray,
    codes: CodeArray,
) -> Figure:
    """Precision, recall and the share selected at every threshold, with the proved thresholds."""
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    hits = np.cumsum(codes[order], dtype=np.int64)
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))
    if last.size > _POINTS:
        last = last[np.linspace(0, last.size - 1, _POINTS).astype(np.intp)]
    at = ranked[last]
    n = last + 1
    k = hits[last]
    axes = axes_in(WIDE, _score_limits(scores), (0.0, 1.0))
    curves = {
        "precision": k / n,
        "recall": k / max(int(hits[-1]), 1),
        "share selected": n / scores.size,
    }
    series = tuple(
        Series(curve, number, path_of(at.tolist(), values.tolist(), axes))
        for number, (curve, values) in enumerate(curves.items())
    )
    rules, spans = threshold_marks(found, axes, segment)
    text = "Observed precision, recall and share of rows selected, at each threshold."
    labels = "threshold", "share of rows"
    return Figure(
        identifier, name, text, WIDE, axes, *labels, False, series, rules=rules, spans=spans
    )


def decision_chart(
    guarantee: Guarantee, action: NDArray[np.str_], rows: IntArray, even: float
) -> Figure:
    """The proved interval of each region, styled by its action, and the break-even rate."""
    seen = np.flatnonzero((guarantee.counts > 0) | (rows > 0))
    value = guarantee.value[seen]
    low = guarantee.lower[seen]
    high = guarantee.upper[seen]
    both = limits_of([*low.tolist(), *high.tolist(), even])
    axes = axes_in(WIDE, limits_of([*value.tolist(), even]), both)
    series = []
    for number, name in _ACTIONS.items():
        here = np.flatnonzero(action[seen] == name)
        points = []
        for one in here.tolist():
            rate = limits_text(float(low[one]), float(high[one]))
            title = f"{guarantee.regions[seen[one]]}: rate {rate}, {int(rows[seen[one]]):,} rows"
            points.append((axes[0](float(value[one])), axes[1](float(value[one])), title))
        if points:
            series.append(
                Series(
                    name,
                    number,
                    "",
                    _whiskers(value[here], low[here], high[here], axes),
                    tuple(points),
                )
            )
    level = MarkLine(
        f"break-even rate {nearest(even)}", f"M{axes[0].start} {axes[1](even)}H{axes[0].end}", 0
    )
    text = "Each region's proved interval against its calibrated probability, styled by its action."
    labels = "calibrated probability", "true rate, proved interval"
    name = "Regions and the break-even rate"
    return Figure(
        "decisions", name, text, WIDE, axes, *labels, False, tuple(series), rules=(level,)
    )


def models_chart(tables: Mapping[str, ReliabilityTable], scale: str = "linear") -> Figure:
    """Observed rates of several models in one reliability diagram."""
    kept = {name: (table, table.counts > 0) for name, table in tables.items()}
    across = np.concatenate([table.mean_score[seen] for table, seen in kept.values()])
    upwards = np.concatenate(
        [part[seen] for table, seen in kept.values() for part in (table.lower, table.upper)]
    )
    both = limits_of([*across.tolist(), *upwards.tolist()])
    if scale == "logit":
        both = logit_ends(
            np.concatenate([across, *(table.rate[seen] for table, seen in kept.values())])
        )
    axes = axes_in(WIDE, both, both, logit=scale == "logit")
    series = []
    for number, (name, (table, seen)) in enumerate(kept.items()):
        order = np.argsort(table.mean_score[seen])
        x, y, low, high = (
            part[seen][order] for part in (table.mean_score, table.rate, table.lower, table.upper)
        )
        points = tuple(
            (
                axes[0](one),
                axes[1](other),
                f"{name}: mean score {nearest(one)}, rate {nearest(other)}",
            )
            for one, other in zip(x.tolist(), y.tolist(), strict=True)
        )
        path = path_of(x.tolist(), y.tolist(), axes)
        series.append(
            Series(name, number % len(STYLES), path, _whiskers(x, low, high, axes), points)
        )
    text = (
        "Observed rate against mean score, with limits that hold for all bins of all models"
        " simultaneously."
    )
    name = "Reliability of all models"
    labels = ("mean score", "observed rate")
    return Figure("models", name, text, WIDE, axes, *labels, series=tuple(series))


def differences_chart(
    rows: Sequence[tuple[str, float, float, float]], name: str, identifier: str
) -> Figure:
    """Differences between pairs of models with their limits, one per line, and the line of no
    difference.
    """
    ends = [
        end for _, value, low, high in rows for end in (value, low, high) if np.isfinite(end)
    ] + [0.0]
    span = max(ends) - min(ends) or 0.1
    height = 26 * (len(rows) + 1)
    frame = Frame(440, height + 48, 14, 428, 6, height + 6, margin=6.0, n_ticks=4)
    limits = min(ends) - 0.05 * span, max(ends) + 0.05 * span
    axes = axes_in(frame, limits, (0.0, len(rows) + 1.0))
    series = []
    for number, (pair, value, low, high) in enumerate(rows):
        y = axes[1](len(rows) - number)
        path = f"M{axes[0](low)} {y}H{axes[0](high)}" if np.isfinite(low) else ""
        series.append(
            Series(
                pair,
                number % len(STYLES),
                path,
                "",
                ((axes[0](value), y, f"{pair}: {nearest(value)}"),),
            )
        )
    zero = MarkLine("no difference", f"M{axes[0](0.0)} {axes[1].end}V{axes[1].start}", 0)
    text = "The difference between each pair of models, with its limits."
    return Figure(
        identifier, name, text, frame, axes, "difference", "", False, tuple(series), rules=(zero,)
    )


def curve_chart(curve: FloatArray, guaranteed: FloatArray) -> Figure:
    """Scores and predictions, as columns, over the limits of each region; `guaranteed` holds the
    region's ends and its lower and upper limit.
    """
    scores = curve[:, 0]
    ends = np.concatenate([curve[:, 1], guaranteed[:, 2], guaranteed[:, 3]])
    axes = axes_in(WIDE, _score_limits(scores), limits_of(ends.tolist()))
    line = Series("calibrated probability", 0, path_of(scores.tolist(), curve[:, 1].tolist(), axes))
    text = (
        "The calibrated probability of each score. Each strip is the guaranteed interval of"
        " a region: with the stated confidence, the true rate of every region lies in its strip."
    )
    is_probability = bool(scores[0] >= 0.0 and scores[-1] <= 1.0)
    labels = "score", "probability"
    band = steps(guaranteed, *axes)
    return Figure(
        "curve", "The curve", text, WIDE, axes, *labels, is_probability, (line,), band=band
    )


def epsilon_chart(epsilon: Sequence[float], first_day: str) -> Figure:
    """Epsilon after each day: the largest distance between calibrated values and the rates so far."""
    days = [float(number) for number in range(len(epsilon))]
    axes = axes_in(WIDE, (0.0, max(days[-1], 1.0)), (0.0, max(*epsilon, 0.01)))
    line = Series("epsilon", 0, path_of(days, list(epsilon), axes))
    text = "How far a calibrated value can be from its bin's rate at most, after each counted day."
    labels = f"days since {first_day}", "epsilon"
    return Figure("epsilon", "Epsilon over time", text, WIDE, axes, *labels, False, (line,))


def rates_chart(
    rows: Sequence[tuple[str, float, float, float]], goal: Goal | None = None
) -> Figure:
    """Estimates with their limits, one per line, and the required rate."""
    asked = [] if goal is None else [goal.rate]
    ends = [end for _, *values in rows for end in values]
    height = 26 * (len(rows) + 1)
    frame = Frame(440, height + 48, 14, 428, 6, height + 6, margin=6.0, n_ticks=4)
    axes = axes_in(frame, limits_of([*ends, *asked]), (0.0, len(rows) + 1.0))
    series = []
    for number, (name, value, low, high) in enumerate(rows):
        y = axes[1](len(rows) - number)
        title = f"{name}: {nearest(value)}, limits {limits_text(low, high)}"
        path = f"M{axes[0](low)} {y}H{axes[0](high)}"
        series.append(Series(name, number % len(STYLES), path, "", ((axes[0](value), y, title),)))
    side = "at most" if goal is not None and goal.at_most else "at least"
    rules = tuple(
        MarkLine(
            f"asked for: {side} {nearest(rate)}",
            f"M{axes[0](rate)} {axes[1].end}V{axes[1].start}",
            0,
        )
        for rate in asked
    )
    text = "Each estimate with its limits, which hold for all of them simultaneously."
    return Figure(
        "rates",
        "Rates and limits",
        text,
        frame,
        axes,
        "rate",
        "",
        False,
        tuple(series),
        rules=rules,
    )
