"""Observed rate minus score in the report: regions side by side, each as wide as its share of rows."""

from calibrant._typing import IndexArray
from calibrant.assess.audit.findings import AuditTable
from calibrant.draw.difference import BinDifferences, differences_from
from calibrant.draw.report.figures import Figure, Mark, audit_texts, rows_at
from calibrant.draw.report.names import FINDINGS
from calibrant.draw.report.scales import Axis, Frame, axes_in

_WIDE = Frame(480, 300, 56, 468, 34, 254, margin=6.0)


def difference_figure(identifier: str, table: AuditTable, chosen: IndexArray) -> Figure:
    """The observed rate minus the mean score of each region, with its limits."""
    part = rows_at(table, chosen[table.counts[chosen] > 0])
    found = differences_from(part.counts, part.mean_score, part.rate, part.lower, part.upper)
    ends = [*found.lower.tolist(), *found.upper.tolist(), 0.0]
    axes = axes_in(_WIDE, (0.0, 1.0), (min(ends), max(ends)))
    text = (
        "Observed rate minus mean score in each region, with limits for the true rate minus the"
        " mean score, for all regions simultaneously. The regions are side by side, from the lowest"
        " scores to the highest, each as wide as its share of the rows."
    )
    name = "Observed minus predicted"
    labels = ("share of rows, from the lowest score", "rate minus score")
    marks = _marks(part, found, axes)
    return Figure(identifier, name, text, _WIDE, axes, *labels, False, marks=marks, level=0.0)


def _marks(part: AuditTable, found: BinDifferences, axes: tuple[Axis, Axis]) -> tuple[Mark, ...]:
    """One mark for each region, in the order of the differences, which is the order of the scores."""
    order = part.mean_score.argsort(kind="stable")
    marks = []
    for place, data in enumerate(audit_texts(rows_at(part, order))):
        kind, _ = FINDINGS[data["verdict"]]
        title = f"{data['verdict']}: mean score {data['mean']}, observed rate {data['rate']}"
        marks.append(
            Mark(
                axes[0](float(found.middle[place])),
                axes[1](float(found.value[place])),
                axes[1](float(found.upper[place])),
                axes[1](float(found.lower[place])),
                kind,
                data,
                title,
            )
        )
    return tuple(marks)
