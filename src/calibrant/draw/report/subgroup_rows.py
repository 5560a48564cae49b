"""Subgroups as a forest plot: those that are proved off first, with the part of the error that is
proved.
"""

from typing import NamedTuple

import numpy as np

from calibrant.assess.subgroups.findings import TOO_LOW, SubgroupFinding
from calibrant.assess.subgroups.result import SubgroupAudit
from calibrant.draw.report.scales import Axis, limits_of

_MOST_OTHERS = 40
_BAR = 180.0


class ForestRow(NamedTuple):
    """One subgroup: its numbers, and what is proved of it."""

    subgroup: str
    n_rows: int
    mean_score: float
    rate: float
    lower: float
    upper: float
    finding: SubgroupFinding | None

    @property
    def kind(self) -> str:
        """The glyph: scores proved too low, too high, or neither."""
        if self.finding is None:
            return "none"
        return "low" if self.finding.direction == TOO_LOW else "high"


class Forest(NamedTuple):
    """What is shown of subgroups."""

    found: SubgroupAudit
    rows: list[ForestRow]
    axis: Axis
    n_left_out: int


def forest(found: SubgroupAudit) -> Forest:
    """Collect the findings, all rows, and the subgroups whose rates are farthest from their scores."""
    table = found.table
    by_words = {finding.subgroup: finding for finding in found.findings}
    named = [number for number, words in enumerate(table.subgroup) if words in by_words]
    named.sort(key=lambda number: list(by_words).index(table.subgroup[number]))
    apart = np.nan_to_num(np.abs(table.rate - table.mean_score))
    apart[0] = np.inf  # all rows, for comparison
    others = [
        number for number in np.argsort(-apart, kind="stable").tolist() if number not in named
    ]
    rows = [_row(found, number, by_words) for number in [*named, *others[:_MOST_OTHERS]]]
    ends = [value for row in rows for value in (row.lower, row.upper, row.mean_score)]
    low, high = limits_of(ends)
    return Forest(found, rows, Axis(low, high, 4.0, _BAR - 4.0), max(0, len(others) - _MOST_OTHERS))


def _row(found: SubgroupAudit, number: int, by_words: dict[str, SubgroupFinding]) -> ForestRow:
    table = found.table
    words = table.subgroup[number]
    return ForestRow(
        subgroup=words,
        n_rows=int(table.n_rows[number]),
        mean_score=float(table.mean_score[number]),
        rate=float(table.rate[number]),
        lower=float(table.lower[number]),
        upper=float(table.upper[number]),
        finding=by_words.get(words),
    )
