"""Decisions by thresholds: as regions of the score, for arrays and data, and as a table, for
exports.
"""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.assess.threshold.proved_threshold import NEGATIVE, REFERRED, SELECTED, Threshold
from calibrant.calibrators.table import Table, check_segments, steps_everywhere, written_by
from calibrant.cells.bins import OTHER, Bins
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.segmented_partition import SegmentedPartition
from calibrant.sample.added_columns import LookUp
from calibrant.sample.batch import Columns


def decided_regions(ends: dict[Hashable, tuple[float, float]]) -> tuple[Bins, IntArray]:
    """The regions between thresholds, and the decision in each.

    Rows of an unknown segment are not selected, but referred to a person.
    """
    decided = {segment: _steps(*pair) for segment, pair in ends.items()}
    if None not in decided:
        decided[OTHER] = _steps(-np.inf, np.inf)
    parts = {segment: ScorePartition(cuts) for segment, (cuts, _) in decided.items()}
    decisions = np.concatenate([found for _, found in decided.values()])
    return parts[None] if None in parts else SegmentedPartition(parts), decisions


def decision_columns(found: Threshold, columns: Columns, prefix: str) -> LookUp:
    """Whether each row is selected; with precision and npv, also whether it is referred to a
    person.
    """
    partition, decisions = decided_regions(found.ends)
    table: dict[str, Any] = {f"{prefix}selected": decisions == SELECTED}
    if len({cut.target for cut in found.cuts}) > 1:
        table[f"{prefix}referred"] = decisions == REFERRED
    return LookUp(columns, partition, table)


def threshold_table(found: Threshold, coverage: float) -> Table:
    """Return a table whose value is 1 where a row is selected, and 0 where it is not.

    Rows referred to a person are in neither region, so their value is null.
    """
    ends: dict[Any, tuple[float, float]] = found.ends
    if None not in ends:
        check_segments(tuple(ends))
    steps = [
        replace(steps_everywhere(*_steps(*pair)), segment=segment) for segment, pair in ends.items()
    ]
    notes = (written_by("Threshold"), found.sentence)
    named = {"calibrated": "selected"}
    return Table(tuple(steps), np.array([0.0, 1.0]), coverage, notes, named=named)


def _steps(low: float, high: float) -> tuple[FloatArray, IntArray]:
    """One or two cuts of the score, and the decision on each side of them."""
    cuts = np.array([cut for cut in sorted({low, high}) if np.isfinite(cut)])
    firsts = np.append(-np.inf, cuts)  # the first score of each step
    decisions = np.where(firsts < low, NEGATIVE, REFERRED)
    return cuts, np.where(firsts >= high, SELECTED, decisions)
