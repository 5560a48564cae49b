"""Where everything in a reliability diagram stands; the template draws it. Nothing is computed but places."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from calibrant._audit import Audit, AuditTable
from calibrant._typing import FloatArray, IndexArray
from calibrant.guarantee import Guarantee
from calibrant.tally import Tally
from calibrant.views.report import wording
from calibrant.views.report.histogram import Bar, region_bars, score_bars
from calibrant.views.report.scales import LARGE, Axis, Frame, Tick, limits_of, shared_limits

_MARGIN = 7.0  # between the frame and the ends of the axes, so that no mark is cut
_TITLES = 250  # marks that get a text of their own; more would make the file heavy, and the table has the numbers


@dataclass(frozen=True, slots=True)
class Mark:
    """One region: a point, and the limits around it, in places; and its exact numbers as text."""

    x: float
    y: float
    top: float
    bottom: float
    kind: str
    data: dict[str, str]
    title: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A reliability diagram, ready to be drawn."""

    identifier: str
    name: str
    description: str
    frame: Frame
    x_label: str
    y_label: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    diagonal: tuple[float, float, float, float]
    marks: tuple[Mark, ...]
    checks: tuple[Mark, ...] = ()
    band: str = ""
    bars: tuple[Bar, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def density(self) -> str:
        """How closely the marks stand, which decides how large they are."""
        marks = len(self.marks) + len(self.checks)
        crowd = marks * (1 if self.frame is LARGE else 2)
        return "few" if crowd <= 40 else "many" if crowd <= 130 else "crowd"


def audit_figure(
    identifier: str,
    name: str,
    audit: Audit,
    rows: IndexArray,
    *,
    frame: Frame = LARGE,
    histogram: Tally | None = None,
    bar_rows: IndexArray | None = None,
    limits: tuple[tuple[float, float], tuple[float, float]] | None = None,
    x_label: str = "score",
) -> Figure:
    """Draw the regions of an audit: mean score across, observed rate and its band upwards.

    Without a `histogram` its bars are the regions `bar_rows`, or those that are drawn.
    """
    table = audit.table
    x_axis, y_axis, same = _axes(frame, table.mean_score[rows], (table.lower[rows], table.upper[rows]), limits)
    marks = _audit_marks(table, rows, x_axis, y_axis, titles=frame is LARGE and rows.size <= _TITLES)
    bars: tuple[Bar, ...] = ()
    notes: list[str] = [] if same or limits else ["The two axes have different scales."]
    if frame is LARGE:
        bars, beyond = score_bars(table, rows if bar_rows is None else bar_rows, histogram, x_axis)
        if beyond:
            notes.append(f"{beyond:,} rows with scores beyond the axis are not in the histogram.")
    return Figure(
        identifier=identifier,
        name=name,
        description=_described(marks),
        frame=frame,
        x_label=x_label,
        y_label="observed rate",
        x_ticks=x_axis.ticks(5 if frame is LARGE else 2),
        y_ticks=y_axis.ticks(5 if frame is LARGE else 2),
        diagonal=_diagonal(x_axis, y_axis),
        marks=marks,
        bars=bars,
        notes=tuple(notes),
    )


def promise_figure(
    identifier: str,
    name: str,
    guarantee: Guarantee,
    rows: IndexArray,
    *,
    checked: Audit | None = None,
    checked_rows: IndexArray | None = None,
) -> Figure:
    """Draw the regions of a guarantee: calibrated value across, promised interval upwards; and what other rows show."""
    across: list[FloatArray] = [guarantee.value[rows]]
    upwards: list[FloatArray] = [guarantee.lower[rows], guarantee.upper[rows]]
    if checked is not None and checked_rows is not None:
        across.append(checked.table.mean_score[checked_rows])
        upwards += [checked.table.lower[checked_rows], checked.table.upper[checked_rows]]
    both = limits_of(np.concatenate([*across, *upwards]).tolist())
    x_axis, y_axis, _ = _axes(LARGE, guarantee.value, upwards, (both, both))
    marks = tuple(_promise_mark(guarantee, row, x_axis, y_axis, titles=rows.size <= _TITLES) for row in rows.tolist())
    checks: tuple[Mark, ...] = ()
    if checked is not None and checked_rows is not None:
        checks = _audit_marks(checked.table, checked_rows, x_axis, y_axis, titles=checked_rows.size <= _TITLES)
    bars = region_bars([mark.x for mark in marks], [mark.data for mark in marks])
    return Figure(
        identifier=identifier,
        name=name,
        description=(
            f"{len(marks)} regions, each with its calibrated probability across and its promised interval upwards, "
            f"around the diagonal. The strip reaches {wording.epsilon_text(guarantee.stated.epsilon)} to both sides."
        ),
        frame=LARGE,
        x_label="calibrated probability",
        y_label="true rate, promised interval",
        x_ticks=x_axis.ticks(),
        y_ticks=y_axis.ticks(),
        diagonal=_diagonal(x_axis, y_axis),
        marks=marks,
        checks=checks,
        band=_band(x_axis, y_axis, guarantee.stated.epsilon),
        bars=bars,
    )


def with_notes(figure: Figure, notes: Sequence[str]) -> Figure:
    """The same figure, with more said below it."""
    return replace(figure, notes=(*figure.notes, *notes))


def taken(table: AuditTable, rows: IndexArray) -> AuditTable:
    """Some rows of a table: those of one figure are few, and the table of many segments is long."""
    return replace(table, **{column.name: getattr(table, column.name)[rows] for column in fields(table)})


def region_rows(guarantee: Guarantee, most: int) -> IndexArray:
    """The regions to draw: those with rows, and of very many those that are promised least."""
    rows = np.flatnonzero(guarantee.counts > 0)
    if rows.size > most:
        rows = np.sort(rows[np.argsort(-guarantee.radius[rows], kind="stable")[:most]])
    return rows


def _axes(
    frame: Frame,
    across: FloatArray,
    upwards: Sequence[FloatArray],
    limits: tuple[tuple[float, float], tuple[float, float]] | None,
) -> tuple[Axis, Axis, bool]:
    if limits is None:
        x, y, same = shared_limits(across.tolist(), np.concatenate(upwards).tolist())
    else:
        (x, y), same = limits, limits[0] == limits[1]
    margin = _MARGIN if frame is LARGE else _MARGIN / 2
    return (
        Axis(*x, frame.left + margin, frame.right - margin),
        Axis(*y, frame.bottom - margin, frame.top + margin),
        same,
    )


def _audit_marks(table: AuditTable, rows: IndexArray, x_axis: Axis, y_axis: Axis, *, titles: bool) -> tuple[Mark, ...]:
    part = taken(table, rows)
    marks = (_audit_mark(part, row, verdict, x_axis, y_axis, titles=titles) for row, verdict in enumerate(part.verdict))
    return tuple(sorted(marks, key=lambda mark: mark.kind != "none"))  # findings are drawn over the others


def _audit_mark(table: AuditTable, row: int, verdict: str, x_axis: Axis, y_axis: Axis, *, titles: bool) -> Mark:
    mean, rate = float(table.mean_score[row]), float(table.rate[row])
    lower, upper = float(table.lower[row]), float(table.upper[row])
    data = {
        "verdict": verdict,
        "low": wording.exact(float(table.low[row])),
        "high": wording.exact(float(table.high[row])),
        "count": wording.exact(int(table.counts[row])),
        "mean": wording.exact(mean),
        "rate": wording.exact(rate),
        "lower": wording.exact(lower),
        "upper": wording.exact(upper),
        "error": wording.exact(float(table.error[row])),
    }
    title = (
        f"{verdict}: mean score {data['mean']}, observed rate {data['rate']}, band {data['lower']} to {data['upper']}, "
        f"{int(table.counts[row]):,} rows"
    )
    kind = wording.KINDS.get(verdict, "none")
    return Mark(
        x_axis(mean), y_axis(rate), y_axis(upper), y_axis(lower), kind, data, title if titles else ""
    )  # fmt: skip


def _promise_mark(guarantee: Guarantee, row: int, x_axis: Axis, y_axis: Axis, *, titles: bool) -> Mark:
    value, lower, upper = float(guarantee.value[row]), float(guarantee.lower[row]), float(guarantee.upper[row])
    data = {
        "region": wording.region_name(guarantee.regions[row]),
        "count": wording.exact(int(guarantee.counts[row])),
        "positives": wording.exact(int(guarantee.positives[row])),
        "value": wording.exact(value),
        "lower": wording.exact(lower),
        "upper": wording.exact(upper),
        "radius": wording.exact(float(guarantee.radius[row])),
    }
    title = (
        f"region {data['region']}: calibrated probability {data['value']}, promised interval {data['lower']} to "
        f"{data['upper']}, {int(guarantee.counts[row]):,} rows"
    )
    return Mark(
        x_axis(value), y_axis(value), y_axis(upper), y_axis(lower), "promise", data, title if titles else ""
    )  # fmt: skip


def _described(marks: Sequence[Mark]) -> str:
    kinds = [mark.kind for mark in marks]
    parts = [
        f"{kinds.count(kind)} {words}"
        for kind, words in (("high", "proved too high"), ("low", "proved too low"), ("none", "without evidence"))
        if kind in kinds
    ]
    regions = "1 region" if len(kinds) == 1 else f"{len(kinds)} regions"
    return f"{regions} of scores: {', '.join(parts)}. Mean score across, observed rate upwards, each with its band."


def _diagonal(x_axis: Axis, y_axis: Axis) -> tuple[float, float, float, float]:
    """Both ends of the line on which rate and score agree, where it is in sight."""
    low, high = max(x_axis.low, y_axis.low), min(x_axis.high, y_axis.high)
    return x_axis(low), y_axis(low), x_axis(high), y_axis(high)


def _band(x_axis: Axis, y_axis: Axis, epsilon: float) -> str:
    """The corners of all places within epsilon of the diagonal, cut off at the ends of the axes."""
    (left, right), (low, high) = x_axis.limits, y_axis.limits

    def edge(shift: float) -> list[tuple[float, float]]:
        turns = {left, right} | {end - shift for end in (low, high) if left < end - shift < right}
        return [(x_axis(value), y_axis(min(max(value + shift, low), high))) for value in sorted(turns)]

    corners = [*edge(-epsilon), *reversed(edge(epsilon))]
    return " ".join(f"{x:g},{y:g}" for x, y in corners)
