"""Segments, largest proved error first: one row each, and small figures of the first."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from calibrant._audit import Audit, Finding
from calibrant._numbers import lower, nearest, upper
from calibrant._typing import IndexArray
from calibrant.views.report.figures import Figure, audit_figure
from calibrant.views.report.scales import SMALL, Axis, Tick, limits_of, shared_limits
from calibrant.views.report.wording import FINDINGS, NO_FINDING, name_of

_BAR = 120.0
_SMALL_REGIONS = 48  # a small figure shows the finest resolution with at most so many regions


@dataclass(frozen=True, slots=True)
class Block:
    """Rows first to last of the audit's table, which belong to one segment; the first holds all of the segment."""

    segment: Hashable
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Segments:
    """The section on segments."""

    n_segments: int
    n_found: int
    rows: tuple[dict[str, str], ...]
    ticks: tuple[Tick, ...]
    figures: tuple[Figure, ...]

    @property
    def left_out(self) -> int:
        """Segments that are not in the table."""
        return self.n_segments - len(self.rows)


def blocks(audit: Audit) -> list[Block]:
    """The groups of the table: all rows first, then the segments."""
    starts = np.flatnonzero(audit.table.resolution == 0).tolist()
    ends = [*starts[1:], audit.table.resolution.size]
    return [Block(audit.table.segment[start], start, end) for start, end in zip(starts, ends, strict=True)]


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
    found = {finding.segment: finding for finding in audit.findings}
    order = {segment: place for place, segment in enumerate(found)}
    groups = [block for block in blocks(audit) if block.segment is not None]
    groups.sort(key=lambda block: (order.get(block.segment, len(order)), -int(table.counts[block.first])))
    shown = groups[:most_rows]
    first = np.array([block.first for block in shown])
    scale = limits_of(np.concatenate([table.lower[first], table.upper[first], table.mean_score[first]]).tolist())
    axis = Axis(*scale, 4.0, _BAR - 4.0)
    return Segments(
        n_segments=len(groups),
        n_found=sum(block.segment in found for block in groups),
        rows=tuple(_row(audit, block, found.get(block.segment), axis) for block in shown),
        ticks=(Tick(axis.start, f"{scale[0]:g}"), Tick(axis.end, f"{scale[1]:g}")),
        figures=_figures(audit, groups[:most_figures]),
    )


def _row(audit: Audit, block: Block, finding: Finding | None, axis: Axis) -> dict[str, str]:
    """A segment, as the table shows it: texts, and the paths of its bar and tick."""
    table, row = audit.table, block.first
    low, high, mean = float(table.lower[row]), float(table.upper[row]), float(table.mean_score[row])
    kind, verdict = NO_FINDING if finding is None else FINDINGS[finding.direction]
    return {
        "name": name_of(block.segment),
        "count": f"{table.counts[row]:,}",
        "kind": kind,
        "verdict": verdict,
        "error": "" if finding is None else lower(finding.error),
        "where": "" if finding is None else f"{nearest(finding.low)} to {nearest(finding.high)}",
        "bar": f"M{axis(low)} 7H{axis(high)}",
        "tick": f"M{axis(mean)} 1V13",
        "title": f"mean score {nearest(mean)}, rate between {lower(low)} and {upper(high)}",
    }


def _figures(audit: Audit, worst: list[Block]) -> tuple[Figure, ...]:
    table = audit.table
    drawn = [finest(audit, block, _SMALL_REGIONS) for block in worst]
    every = np.concatenate(drawn)
    both = np.concatenate([table.lower[every], table.upper[every]])
    limits = shared_limits(table.mean_score[every].tolist(), both.tolist())
    return tuple(
        audit_figure(f"segment-{number}", name_of(block.segment), audit, chosen, frame=SMALL, limits=limits)
        for number, (block, chosen) in enumerate(zip(worst, drawn, strict=True), start=1)
    )
