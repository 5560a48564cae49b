"""Segments, largest proved error first: one row each, and small figures for the first few."""

from typing import Any, NamedTuple

import numpy as np

from calibrant._typing import FloatArray, IndexArray
from calibrant.assess.audit.findings import AuditTable, Finding
from calibrant.assess.audit.result import Audit
from calibrant.draw.report.figures import Figure, audit_figure, audit_limits
from calibrant.draw.report.names import name_of
from calibrant.draw.report.scales import SMALL, Axis, Thresholds, limits_of

_BAR = 120.0
_SMALL_REGIONS = 48  # a small figure shows the finest resolution with at most this many regions


class SegmentsShown(NamedTuple):
    """The content of the segments section."""

    rows: list[
        tuple[int, Finding | None]
    ]  # the index in the table of each whole segment, and its largest proved error
    total: int
    n_found: int
    axis: Axis
    figures: tuple[Figure, ...]
    first_figure: int  # the row of the first segment drawn
    has_guarantee: bool  # whether a model's guarantee is drawn behind the marks


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


def segments_section(
    audit: Audit,
    *,
    most_rows: int,
    most_figures: int,
    period: str | None = None,
    guaranteed: FloatArray | None = None,
    scale: str = "linear",
    thresholds: Thresholds = None,
) -> SegmentsShown | None:
    """Collect the content of the segments section; None without segments.

    Time periods stay in order, and the last ones are drawn, over what a model `guaranteed`.
    """
    if not audit.by_segment:
        return None
    table = audit.table
    found = {finding.segment: finding for finding in audit.findings}
    order = {segment: place for place, segment in enumerate(found)}
    groups = [(table.segment[block.start], block) for block in table.blocks[1:]]
    if period is None:
        groups.sort(
            key=lambda group: (
                order.get(group[0], len(order)),
                -int(table.counts[group[1].start]),
            )
        )
    shown = groups[:most_rows] if period is None else groups[-most_rows:]
    start = 0 if period is None else max(len(shown) - most_figures, 0)
    first = np.array([block.start for _, block in shown])
    ends = limits_of(
        np.concatenate([table.lower[first], table.upper[first], table.mean_score[first]]).tolist()
    )
    how: dict[str, Any] = {
        "guaranteed": guaranteed,
        "scale": scale,
        "thresholds": thresholds,
    }
    return SegmentsShown(
        rows=[(block.start, found.get(segment)) for segment, block in shown],
        total=len(groups),
        n_found=sum(segment in found for segment, _ in groups),
        axis=Axis(*ends, 4.0, _BAR - 4.0),
        figures=_figures(audit, [block for _, block in shown[start : start + most_figures]], **how),
        first_figure=start,
        has_guarantee=guaranteed is not None,
    )


def _figures(audit: Audit, worst: list[slice], *, scale: str, **how: Any) -> tuple[Figure, ...]:
    table = audit.table
    drawn = [finest(table, block, _SMALL_REGIONS) for block in worst]
    how |= {
        "frame": SMALL,
        "scale": scale,
        "limits": audit_limits(table, np.concatenate(drawn), scale),
    }
    return tuple(
        audit_figure(f"segment-{number}", name_of(table.segment[chosen[0]]), audit, chosen, **how)
        for number, chosen in enumerate(drawn, start=1)
    )
