"""Subgroups as a forest plot of rate minus score: errors that were shown come first."""

from typing import Any, NamedTuple

import numpy as np

from calibrant.assess.audit.findings import NO_EVIDENCE
from calibrant.assess.subgroups.findings import TOO_LOW, SubgroupFinding
from calibrant.assess.subgroups.result import SubgroupAudit
from calibrant.draw.report.page import MostShown, Section
from calibrant.draw.report.scales import Axis
from calibrant.draw.report.table_file import table_file

_MOST_FOLDED = 40
_MOST_OTHERS = 40
_BAR = 180.0
_MARGIN = 18.0  # leaves room for the numbers at the ends of the axis
_COLUMNS = ("subgroup", "n_rows", "mean_score", "rate", "lower", "upper", "largest_error")
_REACHES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


class ForestRow(NamedTuple):
    """One subgroup: its numbers, and what was shown about it.

    `finding` is its own finding, `told_with` the finding of another subgroup that covers it.
    """

    subgroup: str
    n_rows: int
    mean_score: float
    rate: float
    lower: float
    upper: float
    largest_error: float
    finding: SubgroupFinding | None
    told_with: SubgroupFinding | None

    @property
    def kind(self) -> str:
        """The glyph: scores shown to be too low, too high, or neither."""
        proved = self.finding or self.told_with
        if proved is None:
            return "none"
        return "low" if proved.direction == TOO_LOW else "high"

    @property
    def verdict(self) -> str:
        """What is shown, in words."""
        proved = self.finding or self.told_with
        return NO_EVIDENCE if proved is None else proved.direction

    @property
    def proved_error(self) -> float:
        """The part of rate minus score that is shown; 0 if no size is."""
        if self.finding is None:
            return 0.0
        return self.finding.error if self.kind == "low" else -self.finding.error


class Forest(NamedTuple):
    """The content of the forest plot."""

    found: SubgroupAudit
    rows: list[ForestRow]
    axis: Axis
    n_folded_left_out: int
    n_left_out: int


def subgroups_section(found: SubgroupAudit, sizes: MostShown) -> Section:
    """Subgroups as a forest plot."""
    every = next(table for table in found.tables() if table.name == "subgroups")
    content = {"forest": forest(found), "file": table_file(every, sizes.table_rows)}
    return Section("subgroups-title", "Subgroups", "subgroups", content)


def forest(found: SubgroupAudit) -> Forest:
    """Collect the findings, subgroups covered by them, all rows, and the subgroups whose rates are
    farthest from their scores.
    """
    words = found.table.subgroup
    number_of = {one: number for number, one in enumerate(words)}
    findings: dict[int, SubgroupFinding] = {}
    told_with: dict[int, SubgroupFinding] = {}
    for finding in found.findings:
        findings.setdefault(number_of[finding.subgroup], finding)
        for other in finding.also:
            told_with.setdefault(number_of[other], finding)
    folded = [number for number in told_with if number not in findings]
    others = [
        number
        for number in _farthest_first(found)
        if number not in findings and number not in told_with
    ]
    chosen = [*findings, *folded[:_MOST_FOLDED], *others[:_MOST_OTHERS]]
    columns = [getattr(found.table, name) for name in _COLUMNS]
    rows = []
    for number in chosen:
        cells: list[Any] = [column[number] for column in columns]
        cells += [findings.get(number), told_with.get(number)]
        rows.append(ForestRow(*cells))
    reach = _reach(rows)
    return Forest(
        found=found,
        rows=rows,
        axis=Axis(-reach, reach, _MARGIN, _BAR - _MARGIN),
        n_folded_left_out=max(0, len(folded) - _MOST_FOLDED),
        n_left_out=max(0, len(others) - _MOST_OTHERS),
    )


def _farthest_first(found: SubgroupAudit) -> list[int]:
    """All rows, for comparison; then subgroups by the distance between rate and score, largest
    first.
    """
    apart = np.nan_to_num(np.abs(found.table.rate - found.table.mean_score))
    apart[0] = np.inf
    return [int(number) for number in np.argsort(-apart, kind="stable")]


def _reach(rows: list[ForestRow]) -> float:
    """A round number that no error limit exceeds."""
    ends = [max(row.upper - row.mean_score, row.mean_score - row.lower) for row in rows]
    largest = max((end for end in ends if not np.isnan(end)), default=1.0)
    return next((reach for reach in _REACHES if largest <= reach), 1.0)
