"""The layout of a reliability diagram; the template draws it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from calibrant._typing import FloatArray, IndexArray
from calibrant.assess.audit.findings import (
    NO_EVIDENCE,
    OVERCONFIDENT,
    UNDERCONFIDENT,
    AuditTable,
)
from calibrant.assess.audit.result import Audit
from calibrant.assess.monotone.monotone_band import MonotoneBand
from calibrant.assess.subgroups.findings import TOO_HIGH, TOO_LOW
from calibrant.cells.tally import Tally
from calibrant.draw.report.histogram import Bar, drawn_bars, score_bars
from calibrant.draw.report.scales import (
    LARGE,
    SMALL,
    Axis,
    Frame,
    Limits,
    MarkLine,
    Tick,
    axes_in,
    common_limits,
    limits_of,
)
from calibrant.draw.style import logit_ends
from calibrant.guarantee.guarantee import Guarantee
from calibrant.text.numbers import counted, factor_limits, lower, nearest, rows, upper
from calibrant.text.sentences import name_of

_MOST_KNOTS = (
    150  # points of the limits at every score; between kept points, the wider limits are drawn
)
_AUDIT_TITLE = "{verdict}: mean score {mean}, observed rate {rate}, band {lower} to {upper}, {rows}"
_GUARANTEE_TITLE = (
    "region {region}: calibrated probability {value}, guaranteed interval {lower} to {upper},"
    " {rows}"
)
_LOGIT_NOTE = "Both axes are on the logit scale. Numbers beyond an axis are drawn at its end."
_TITLES = (
    250  # marks that get a title; more would make the file large, and the table has the numbers
)


FINDINGS = {
    TOO_HIGH: ("high", "too high"),
    TOO_LOW: ("low", "too low"),
    OVERCONFIDENT: ("high", OVERCONFIDENT),
    UNDERCONFIDENT: ("low", UNDERCONFIDENT),
    NO_EVIDENCE: ("none", NO_EVIDENCE),
}
"""Kind of mark, and words, for each finding and each verdict on a region."""

QUIET_STYLE = 6
"""The index of the grey style, for undecided results."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One region: a point, its limits, and its numbers as text."""

    x: float
    y: float
    top: float
    bottom: float
    kind: str
    data: dict[str, str]
    title: str


@dataclass(frozen=True, slots=True)
class Series:
    """A line, points with limits, or both, in the style with this index."""

    name: str
    number: int
    path: str = ""
    whiskers: str = ""
    points: tuple[tuple[float, float, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure, ready to be drawn."""

    identifier: str
    name: str
    description: str
    frame: Frame
    axes: tuple[Axis, Axis]
    x_label: str
    y_label: str
    has_diagonal: bool = True
    series: tuple[Series, ...] = ()
    marks: tuple[Mark, ...] = ()
    checks: tuple[Mark, ...] = ()
    band: str = ""
    rates: str = ""
    bars: tuple[Bar, ...] = ()
    notes: tuple[str, ...] = ()
    rules: tuple[MarkLine, ...] = ()
    level: float | None = None
    row_names: tuple[Tick, ...] = ()

    @property
    def ticks(self) -> tuple[tuple[Tick, ...], tuple[Tick, ...]]:
        """The tick labels of both axes; none on the vertical axis if it has no label."""
        x_ticks, y_ticks = (axis.ticks(self.frame.n_ticks) for axis in self.axes)
        return x_ticks, y_ticks if self.y_label else ()

    @property
    def diagonal(self) -> str:
        """The line where rate and score agree, if visible: horizontal for differences."""
        if self.level is not None:
            return f"M{self.axes[0].start} {self.axes[1](self.level)}H{self.axes[0].end}"
        ends = max(axis.low for axis in self.axes), min(axis.high for axis in self.axes)
        return path_of(ends, ends, self.axes) if self.has_diagonal else ""

    @property
    def is_small(self) -> bool:
        """Whether it is one of many small figures, without labels and a histogram."""
        return self.frame is SMALL

    @property
    def density(self) -> str:
        """How crowded the marks are, which determines their size."""
        marks = len(self.marks) + len(self.checks)
        crowd = marks * (1 if self.frame is LARGE else 2)
        return "few" if crowd <= 40 else "many" if crowd <= 130 else "crowd"

    @property
    def has_titles(self) -> bool:
        """Whether each mark gets a title."""
        return self.frame is LARGE and len(self.marks) <= _TITLES

    def with_notes(self, *notes: str) -> "Figure":
        """The same figure with more notes below it."""
        return replace(self, notes=(*self.notes, *notes))


def audit_figure(
    identifier: str,
    name: str,
    audit: Audit,
    chosen: IndexArray,
    *,
    frame: Frame = LARGE,
    histogram: Tally | None = None,
    bar_rows: IndexArray | None = None,
    limits: tuple[Limits, Limits] | None = None,
    x_label: str = "score",
    guaranteed: FloatArray | None = None,
    scale: str = "linear",
) -> Figure:
    """Draw the chosen regions of an audit: mean score on the horizontal axis, observed rate and
    band on the vertical axis.

    Without a `histogram`, the bars are the regions `bar_rows`, or the regions drawn. `guaranteed`
    holds the first and the last score of each region of a model, and its limits, drawn as a strip
    behind the marks.
    """
    table = audit.table
    if limits is None:
        limits = audit_limits(table, chosen, scale)
    axes = x_axis, y_axis = axes_in(frame, *limits, logit=scale == "logit")
    marks = _audit_marks(table, chosen, axes)
    bars: tuple[Bar, ...] = ()
    notes: list[str] = []
    if frame is LARGE:
        notes = [] if limits[0] == limits[1] else ["The two axes have different scales."]
        notes += [_LOGIT_NOTE] if x_axis.logit else []
        histogram = None if x_axis.logit else histogram
        bars, beyond = score_bars(
            table, chosen if bar_rows is None else bar_rows, histogram, x_axis
        )
        if beyond:
            notes.append(f"The histogram leaves out {rows(beyond)} with scores beyond the axis.")
    return Figure(
        identifier,
        name,
        _described(marks),
        frame,
        axes,
        x_label,
        "observed rate",
        marks=marks,
        bars=bars,
        notes=tuple(notes),
        band="" if guaranteed is None else steps(guaranteed, x_axis, y_axis),
        rates=_rates(audit.monotone, x_axis, y_axis) if frame is LARGE else "",
    )


def guarantee_figure(
    guarantee: Guarantee,
    chosen: IndexArray,
    checked: tuple[AuditTable, IndexArray] | None,
    scale: str,
    ends: FloatArray | None,
) -> Figure:
    """Draw the chosen regions of a guarantee: calibrated probability on the horizontal axis,
    interval on the vertical axis.

    An audit may be drawn over it. `ends` holds the smallest and the largest prediction of each
    region if a curve is predicted; the bars of the histogram then have that width.
    """
    value, low, high = (
        column[chosen] for column in (guarantee.value, guarantee.lower, guarantee.upper)
    )
    seen = [value, low, high]
    if checked is not None:
        table, at = checked
        seen += [table.mean_score[at], table.lower[at], table.upper[at]]
    logit = scale == "logit"
    both = logit_ends(value) if logit else limits_of(np.concatenate(seen).tolist())
    axes = x_axis, y_axis = axes_in(LARGE, both, both, logit=logit)
    texts = guarantee_texts(guarantee, chosen)
    marks = marks_at(axes, (value, value, high, low), texts, _GUARANTEE_TITLE)
    checks = () if checked is None else _audit_marks(*checked, axes)
    epsilon = guarantee.stated.epsilon
    description = (
        f"The guaranteed interval against the calibrated probability in"
        f" {counted(len(marks), 'region')}, around the diagonal. The strip reaches {upper(epsilon)}"
        " to either side."
    )
    labels = ("calibrated probability", "true rate, guaranteed interval")
    counts = guarantee.counts[chosen]
    positives = guarantee.positives[chosen]
    if ends is None:
        where = [{"region": data["region"]} for data in texts]
        bars = drawn_bars(value, value, counts, positives, x_axis, density=False, where=where)
    else:
        first, last = ends[chosen].T
        names = ("smallest", "largest")
        bars = drawn_bars(first, last, counts, positives, x_axis, density=True, names=names)
    return Figure(
        "after",
        "After calibration",
        description,
        LARGE,
        axes,
        *labels,
        marks=marks,
        checks=checks,
        band=_band(x_axis, y_axis, epsilon),
        bars=bars,
    )


def path_of(x: Sequence[float], y: Sequence[float], axes: tuple[Axis, Axis]) -> str:
    """A line through points."""
    return "M" + "L".join(
        f"{axes[0](one)} {axes[1](other)}" for one, other in zip(x, y, strict=True)
    )


def audit_limits(table: AuditTable, chosen: IndexArray, scale: str) -> tuple[Limits, Limits]:
    """Return the ends of both axes for the chosen regions of an audit."""
    if scale == "logit":
        both = logit_ends(np.concatenate([table.mean_score[chosen], table.rate[chosen]]))
        return both, both
    bands = np.concatenate([table.lower[chosen], table.upper[chosen]])
    return common_limits(table.mean_score[chosen].tolist(), bands.tolist())


def rows_at(table: AuditTable, at: IndexArray) -> AuditTable:
    """Some rows of a table."""
    return replace(
        table, **{column.name: getattr(table, column.name)[at] for column in fields(table)}
    )


def finest(table: AuditTable, block: slice, most: int | None = None) -> IndexArray:
    """The regions of the block's finest resolution.

    With `most`, the finest resolution with at most that many regions.
    """
    levels = table.resolution[block]
    sizes = np.bincount(levels)
    chosen = sizes.size - 1
    if most is not None and sizes[chosen] > most:
        chosen = int(np.flatnonzero(sizes <= most).max(initial=0))
    return int(block.start) + np.flatnonzero(levels == chosen)


def audit_texts(part: AuditTable) -> list[dict[str, str]]:
    """The numbers of each region as text, used in both figures and tables."""
    return [
        {
            "verdict": verdict,
            "low": nearest(part.low[row]),
            "high": nearest(part.high[row]),
            "count": f"{part.counts[row]:,}",
            "mean": nearest(part.mean_score[row]),
            "rate": nearest(part.rate[row]),
            "lower": lower(part.lower[row]),
            "upper": upper(part.upper[row]),
            "error": lower(part.error[row]),
            "factors": factor_limits(
                float(part.relative_lower[row]), float(part.relative_upper[row])
            ),
        }
        for row, verdict in enumerate(part.verdict)
    ]


def guarantee_texts(guarantee: Guarantee, at: IndexArray) -> list[dict[str, str]]:
    """The numbers of each region as text, used in both figures and tables."""
    radius = guarantee.radius
    relative = guarantee.relative
    return [
        {
            "region": name_of(guarantee.regions[row]),
            "count": f"{guarantee.counts[row]:,}",
            "positives": f"{guarantee.positives[row]:,}",
            "value": nearest(guarantee.value[row]),
            "lower": lower(guarantee.lower[row]),
            "upper": upper(guarantee.upper[row]),
            "radius": upper(radius[row]),
            "factors": factor_limits(float(relative.lower[row]), float(relative.upper[row])),
        }
        for row in at.tolist()
    ]


def marks_at(
    axes: tuple[Axis, Axis],
    columns: Iterable[FloatArray],
    texts: Iterable[dict[str, str]],
    title: str,
) -> tuple[Mark, ...]:
    """A mark for each region, from its x and y, its upper and its lower limit, and its numbers as
    text, with which the title is filled in.
    """
    x_axis, y_axis = axes
    points = zip(*(column.tolist() for column in columns), strict=True)
    return tuple(
        Mark(
            x_axis(x),
            y_axis(y),
            y_axis(top),
            y_axis(bottom),
            FINDINGS[data["verdict"]][0] if "verdict" in data else "guaranteed",
            data,
            title.format(**data, rows="1 row" if data["count"] == "1" else f"{data['count']} rows"),
        )
        for (x, y, top, bottom), data in zip(points, texts, strict=True)
    )


def _audit_marks(table: AuditTable, at: IndexArray, axes: tuple[Axis, Axis]) -> tuple[Mark, ...]:
    part = rows_at(table, at)
    columns = (part.mean_score, part.rate, part.upper, part.lower)
    marks = marks_at(axes, columns, audit_texts(part), _AUDIT_TITLE)
    return tuple(sorted(marks, key=lambda mark: mark.kind != "none"))  # draw findings on top


def _described(marks: Sequence[Mark]) -> str:
    kinds = [mark.kind for mark in marks]
    words = {"high": "shown too high", "low": "shown too low", "none": "without evidence"}
    parts = [f"{kinds.count(kind)} {said}" for kind, said in words.items() if kind in kinds]
    regions = counted(len(kinds), "region")
    return (
        f"{regions} of scores: {', '.join(parts)}. Observed rate against mean score, each with its"
        " band."
    )


def steps(guaranteed: FloatArray, x_axis: Axis, y_axis: Axis) -> str:
    """The corners of the strip between lower and upper limits, clipped to the axes."""
    begin, end = np.clip(guaranteed[:, :2], x_axis.low, x_axis.high).T
    seen = begin < end
    low, high = np.clip(guaranteed[:, 2:], y_axis.low, y_axis.high)[seen].T
    across = np.column_stack([begin[seen], end[seen]]).ravel()
    corners = [
        *zip(across, np.repeat(low, 2), strict=True),
        *zip(across[::-1], np.repeat(high, 2)[::-1], strict=True),
    ]
    return " ".join(f"{x_axis(float(x)):g},{y_axis(float(y)):g}" for x, y in corners)


def _rates(band: MonotoneBand | None, x_axis: Axis, y_axis: Axis) -> str:
    """The corners of the limits at every score, assuming that the rate does not decrease.

    Empty if that is refuted.
    """
    if band is None or band.is_refuted_:
        return ""
    knots = band.knots_[(band.knots_ > x_axis.low) & (band.knots_ < x_axis.high)]
    if knots.size > _MOST_KNOTS:
        knots = knots[np.linspace(0, knots.size - 1, _MOST_KNOTS).astype(np.intp)]
    at = np.unique([x_axis.low, *knots, x_axis.high])
    low = band.predict_interval(np.nextafter(at[:-1], np.inf))[
        :, 0
    ]  # neither limit decreases as the score increases
    high = band.predict_interval(np.nextafter(at[1:], -np.inf))[:, 1]
    return steps(np.column_stack([at[:-1], at[1:], low, high]), x_axis, y_axis)


def _band(x_axis: Axis, y_axis: Axis, epsilon: float) -> str:
    """The corners of the area within epsilon of the diagonal, clipped to the axes."""
    left = x_axis.low
    right = x_axis.high
    low = y_axis.low
    high = y_axis.high

    def edge(shift: float) -> list[tuple[float, float]]:
        turns = {left, right} | {end - shift for end in (low, high) if left < end - shift < right}
        if x_axis.logit:  # curved there
            turns |= {
                *np.linspace(left, right, 200).tolist(),
                *np.geomspace(left, right, 100).tolist(),
            }
        return [
            (x_axis(value), y_axis(min(max(value + shift, low), high))) for value in sorted(turns)
        ]

    corners = [*edge(-epsilon), *reversed(edge(epsilon))]
    return " ".join(f"{x:g},{y:g}" for x, y in corners)
