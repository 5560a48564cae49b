"""A table as columns that are added to data on any engine."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from calibrant._typing import IntArray
from calibrant.calibrators.tables.table import Steps, Table
from calibrant.cells.bins import Bins
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.segmented_partition import SegmentedPartition
from calibrant.errors import InvalidTypeError
from calibrant.sample.added_columns import CurveColumn, LookUp
from calibrant.sample.batch import Columns
from calibrant.sample.sql.search import LARGEST


def added_from(table: Table, columns: Columns, prefix: str) -> LookUp:
    """The default outputs of a table, as columns, with each step of the table as a bin."""
    if table.is_segmented and columns.segment is None:
        raise InvalidTypeError(
            "segment", "name the column of segments", "None", "use scored(..., segment=...)"
        )
    regions = np.concatenate([steps.regions for steps in table.steps])
    taken = regions >= 0
    place = np.where(taken, regions, 0)
    named = {output: prefix + name for output, name in table.choose(None).items()}
    curves = {}
    values: dict[str, Any] = {}
    for output, name in named.items():
        if output == "set":
            sets = table.set_names
            values[name] = tuple(sets[region] for region in place.tolist())
        elif table.lines is None:
            values[name] = table.values(output)[place]
        else:
            curves[name] = _curve(table, output, place)
    needed = columns.only("segment") if table.is_segmented else columns.only()
    return LookUp(needed, _bins(table), values, curves, None if taken.all() else taken)


def _curve(table: Table, output: str, place: IntArray) -> CurveColumn:
    """The value of a curve, or a limit around it."""
    lines = table.lines_at(place)
    offset = None if output == "calibrated" else table.values(output)[place]
    return CurveColumn(lines, table.calibrated[place], offset)


def _bins(table: Table) -> Bins:
    """Each step as a bin of its own."""
    parts: dict[Hashable, ScorePartition] = {
        steps.segment: ScorePartition(steps.cuts, _ends(steps)) for steps in table.steps
    }
    return SegmentedPartition(parts) if table.is_segmented else parts[None]


def _ends(steps: Steps) -> tuple[float, float]:
    """The range of scores, unbounded if every finite score is accepted."""
    low = steps.low if steps.low > -LARGEST else -np.inf
    high = steps.high if steps.high < LARGEST else np.inf
    return low, high
