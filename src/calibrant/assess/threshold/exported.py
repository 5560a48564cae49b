"""Thresholds as a table, for exports."""

from dataclasses import replace
from typing import cast

import numpy as np

from calibrant.assess.threshold.proved_threshold import Threshold
from calibrant.calibrators.tables.steps import check_segments, steps_everywhere
from calibrant.calibrators.tables.table import Segment, Steps, Table, written_by


def threshold_table(found: Threshold, coverage: float) -> Table:
    """Return a table whose value is 1 where a row is selected, and 0 where it is not."""
    ends = cast("dict[Segment | None, tuple[float, float]]", found.ends)
    if None not in ends:
        check_segments(tuple(ends))
    steps = [_steps(segment, low, high) for segment, (low, high) in ends.items()]
    notes = (written_by("Threshold"), found.sentence)
    named = {"calibrated": "selected"}
    return Table(tuple(steps), np.array([0.0, 1.0]), coverage, notes, named=named)


def _steps(segment: Segment | None, low: float, high: float) -> Steps:
    """One or two cuts of the score: not selected, possibly referred to a person, selected."""
    cuts = np.array([cut for cut in sorted({low, high}) if np.isfinite(cut)])
    firsts = [-np.inf, *cuts.tolist()]  # the first score of each step
    regions = np.array([1 if first >= high else 0 if first < low else -1 for first in firsts])
    return replace(steps_everywhere(cuts, regions), segment=segment)
