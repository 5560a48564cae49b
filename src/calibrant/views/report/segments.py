"""Segments, largest proved error first: one row each, and small figures of the first."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._audit import Audit, AuditTable, Finding
from calibrant._numbers import lower, nearest, span, upper
from calibrant._typing import FloatArray, IndexArray
from calibrant.views.report.figures import Figure, audit_figure, audit_limits
from calibrant.views.report.scales import SMALL, Axis, Thresholds, Tick, limits_of
from calibrant.views.report.wording import FINDINGS, NO_FINDING, name_of

_BAR = 120.0
_OPEN_ROWS = 40  # a longer table is folded
_SMALL_REGIONS = 48  # a small figure shows the finest resolution with at most this many regions


@dataclass(frozen=True, slots=True)
class Shown:
    """Rows of a table as text, and how many rows there are in all."""

    rows: tuple[dict[str, str], ...]
    total: int

    @property
    def left_out(self) -> int:
        """How many rows are not shown."""
        return self.total - len(self.rows)

    @property
    def folded(self) -> bool:
        """Whether the table is long enough to be folded away."""
        return len(self.rows) > _OPEN_ROWS


@dataclass(frozen=True, slots=True)
class Segments(Shown):
    """The section on segments."""

    n_found: int
    ticks: tuple[Tick, ...]
    figures: tuple[Figure, ...]
    period: str | None  # what a segment is, where segments are periods of time
    has_promise: bool  # whether what a model promised is drawn behind the marks
    first_figure: int  # the row of the first segment that is drawn

    @property
    def noun(self) -> str:
        """What a segment is called."""
        return self.period or "segment"


def finest(table: AuditTable, block: slice, most: int | None = None) -> IndexArray:
    """The regions of the block's finest resolution; with `most`, of the finest that has no more regions."""
    levels = table.resolution[block]
    sizes = np.bincount(levels)
    chosen = sizes.size - 1
    if most is not None and sizes[chosen] > most:
        chosen = int(np.flatnonzero(sizes <= most).max(initial=0))
    return int(block.start) + np.flatnonzero(levels == chosen)


def segments_section(
    audit: Audit,
    *,
    most_rows: int,
    most_figures: int,
    period: str | None = None,
    promised: FloatArray | None = None,
    scale: str = "linear",
    thresholds: Thresholds = None,
) -> Segments | None:
    """Collect what is shown of the segments; None without segments.

    Periods of time stay in their order, and the last ones are drawn, over what a model `promised`.
    """
    if not audit.by_segment:
        return None
    table = audit.table
    found = {finding.segment: finding for finding in audit.findings}
    order = {segment: place for place, segment in enumerate(found)}
    groups = [(table.segment[block.start], block) for block in table.blocks[1:]]
    if period is None:
        groups.sort(key=lambda group: (order.get(group[0], len(order)), -int(table.counts[group[1].start])))
    shown = groups[:most_rows] if period is None else groups[-most_rows:]
    start = 0 if period is None else max(len(shown) - most_figures, 0)
    first = np.array([block.start for _, block in shown])
    ends = limits_of(np.concatenate([table.lower[first], table.upper[first], table.mean_score[first]]).tolist())
    axis = Axis(*ends, 4.0, _BAR - 4.0)
    return Segments(
        rows=tuple(_row(table, block.start, found.get(segment), axis) for segment, block in shown),
        total=len(groups),
        n_found=sum(segment in found for segment, _ in groups),
        ticks=(Tick(axis.start, f"{ends[0]:g}"), Tick(axis.end, f"{ends[1]:g}")),
        figures=_figures(
            audit,
            [block for _, block in shown[start : start + most_figures]],
            promised=promised,
            scale=scale,
            thresholds=thresholds,
        ),
        period=period,
        has_promise=promised is not None,
        first_figure=start,
    )


def _row(table: AuditTable, row: int, finding: Finding | None, axis: Axis) -> dict[str, str]:
    """A segment, as the table shows it: texts, and the paths of its bar and tick."""
    low, high, mean = float(table.lower[row]), float(table.upper[row]), float(table.mean_score[row])
    kind, verdict = NO_FINDING if finding is None else FINDINGS[finding.direction]
    return {
        "name": name_of(table.segment[row]),
        "count": f"{table.counts[row]:,}",
        "kind": kind,
        "verdict": verdict,
        "error": "" if finding is None else lower(finding.error),
        "where": "" if finding is None else span(finding.low, finding.high),
        "bar": f"M{axis(low)} 7H{axis(high)}",
        "tick": f"M{axis(mean)} 1V13",
        "title": f"mean score {nearest(mean)}, rate between {lower(low)} and {upper(high)}",
    }


def _figures(audit: Audit, worst: list[slice], *, scale: str, **how: Any) -> tuple[Figure, ...]:
    table = audit.table
    drawn = [finest(table, block, _SMALL_REGIONS) for block in worst]
    how |= {"frame": SMALL, "scale": scale, "limits": audit_limits(table, np.concatenate(drawn), scale)}
    return tuple(
        audit_figure(f"segment-{number}", name_of(table.segment[chosen[0]]), audit, chosen, **how)
        for number, chosen in enumerate(drawn, start=1)
    )
