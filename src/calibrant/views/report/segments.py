"""Segments, worst first: one row each, and small figures of the worst."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._audit import Audit, Finding
from calibrant._audit.report import rounded_down
from calibrant._typing import IndexArray
from calibrant.views.report import wording
from calibrant.views.report.figures import Figure, audit_figure
from calibrant.views.report.scales import SMALL, Axis, Tick, limits_of, shared_limits

_BAR = 120.0
_SMALL_REGIONS = 48  # a small figure shows the finest resolution with at most so many regions


@dataclass(frozen=True, slots=True)
class Block:
    """Where a segment stands in the audit's table: rows first to last, of which the first holds all of the segment."""

    segment: Any
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """A segment, as the table shows it."""

    name: str
    count: str
    kind: str
    verdict: str
    error: str
    where: str
    bar: tuple[float, float, float]
    data: dict[str, str]
    title: str


@dataclass(frozen=True, slots=True)
class Segments:
    """The section on segments."""

    n_segments: int
    n_found: int
    rows: tuple[SegmentRow, ...]
    ticks: tuple[Tick, ...]
    figures: tuple[Figure, ...]

    @property
    def left_out(self) -> int:
        """Segments that are not in the table."""
        return self.n_segments - len(self.rows)


def blocks(audit: Audit) -> list[Block]:
    """The groups of the table: all rows first, then the segments."""
    starts = np.flatnonzero(audit.table.resolution == 0)
    ends = np.append(starts[1:], audit.table.resolution.size)
    return [
        Block(audit.table.segment[start], start, end) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]


def finest(audit: Audit, block: Block, most: int | None = None) -> IndexArray:
    """The regions of the block's finest resolution; with `most`, of the finest that has no more regions."""
    levels = audit.table.resolution[block.first : block.last]
    sizes = np.bincount(levels)
    chosen = sizes.size - 1
    if most is not None and sizes[chosen] > most:
        chosen = int(np.flatnonzero(sizes <= most).max(initial=0))
    return block.first + np.flatnonzero(levels == chosen)


def segments_section(audit: Audit, *, most_rows: int, most_figures: int) -> Segments | None:
    """Collect what is shown of the segments; None where there are none."""
    if not audit.by_segment:
        return None
    table = audit.table
    found = {finding.segment: (place, finding) for place, finding in enumerate(audit.findings)}
    groups = [block for block in blocks(audit) if block.segment is not None]

    def badness(block: Block) -> tuple[int, int]:
        place, _ = found.get(block.segment, (len(found) + 1, None))
        return place, -int(table.counts[block.first])

    groups.sort(key=badness)
    shown = groups[:most_rows]
    first = np.array([block.first for block in shown])
    scale = limits_of(np.concatenate([table.lower[first], table.upper[first], table.mean_score[first]]).tolist())
    axis = Axis(*scale, 4.0, _BAR - 4.0)
    ends = np.concatenate([table.low[first], table.high[first]])
    decimals = wording.decimals_for(ends.tolist())
    return Segments(
        n_segments=len(groups),
        n_found=sum(block.segment in found for block in groups),
        rows=tuple(_row(audit, block, found.get(block.segment, (0, None))[1], axis, decimals) for block in shown),
        ticks=(Tick(axis.start, f"{scale[0]:g}"), Tick(axis.end, f"{scale[1]:g}")),
        figures=_figures(audit, groups[:most_figures]),
    )


def _row(audit: Audit, block: Block, finding: Finding | None, axis: Axis, decimals: int) -> SegmentRow:
    table, row = audit.table, block.first
    lower, upper, mean = float(table.lower[row]), float(table.upper[row]), float(table.mean_score[row])
    data = {"mean": wording.exact(mean), "lower": wording.exact(lower), "upper": wording.exact(upper)}
    verdict, error, where, kind = "no evidence", "", "", "none"
    if finding is not None:
        kind = wording.KINDS[finding.direction]
        verdict = finding.direction.removeprefix("scores ")
        error = rounded_down(finding.error)
        where = f"{wording.near(finding.low, decimals)} to {wording.near(finding.high, decimals)}"
    return SegmentRow(
        name=wording.name_of(block.segment),
        count=f"{int(table.counts[row]):,}",
        kind=kind,
        verdict=verdict,
        error=error,
        where=where,
        bar=(axis(lower), axis(upper), axis(mean)),
        data=data,
        title=f"mean score {wording.near(mean, 4)}, rate between {wording.down(lower, 4)} and {wording.up(upper, 4)}",
    )


def _figures(audit: Audit, worst: list[Block]) -> tuple[Figure, ...]:
    table = audit.table
    drawn = [finest(audit, block, _SMALL_REGIONS) for block in worst]
    every = np.concatenate(drawn) if drawn else np.zeros(0, dtype=np.intp)
    x, y, _ = shared_limits(
        table.mean_score[every].tolist(), np.concatenate([table.lower[every], table.upper[every]]).tolist()
    )
    return tuple(
        audit_figure(
            f"segment-{number}", wording.name_of(block.segment), audit, rows, frame=SMALL, limits=(x, y)
        )
        for number, (block, rows) in enumerate(zip(worst, drawn, strict=True), start=1)
    )  # fmt: skip
