"""The columns that a calibrator adds: its table on every engine, or the output of `predict` for
each batch of rows.
"""

from collections.abc import Hashable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._optional import pa
from calibrant._typing import BoolArray, IntArray
from calibrant.calibrators.table import Steps, Table
from calibrant.cells.bins import Bins
from calibrant.cells.lines import LARGEST
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.segmented_partition import SegmentedPartition
from calibrant.errors import CalibrantError, InvalidTypeError, InvalidValueError, NoTableError
from calibrant.sample.added_columns import AddColumns, CurveColumn, LookUp
from calibrant.sample.batch import BatchRows, Columns


def predicted_columns(
    calibrator: Any, columns: Columns, coverage: float, prefix: str
) -> AddColumns:
    """The columns that a fitted calibrator adds, or the error that it has no table.

    A curve with exp is evaluated by `predict`, batch by batch, so that all bits are those of
    `predict`; engines that run SQL evaluate it themselves. A calibrator without a table is applied
    in the same way, on sources that provide batches, if it predicts from one score, or from one
    score and attributes that are columns of the data.
    """
    try:
        table = calibrator._table(coverage)
    except NoTableError as error:
        if not (calibrator._takes_one_score or calibrator._attribute_names):
            raise
        return Predict.of(calibrator, columns, coverage, prefix, error)
    added = added_from(table, columns, prefix)
    return Predict.of(calibrator, columns, coverage, prefix, added) if table.needs_exp else added


@dataclass(frozen=True, slots=True, eq=False)
class Predict(AddColumns):
    """The output of `predict` for each score, and the limits and sets, if the calibrator has them.

    If `predict` takes attributes, these are columns of the data.

    Attributes
    ----------
    columns, calibrator, coverage, prefix
        As given to `predicted_columns`.
    low, high : float
        The range of scores that the calibrator accepts.
    table : LookUp or NoTableError
        The same columns as a table, or why there is none.
    """

    columns: Columns
    calibrator: Any
    coverage: float
    prefix: str
    low: float
    high: float
    table: LookUp | NoTableError

    @classmethod
    def of(
        cls,
        calibrator: Any,
        columns: Columns,
        coverage: float,
        prefix: str,
        table: LookUp | NoTableError,
    ) -> "Predict":
        """Determine which scores the calibrator accepts: all, or only probabilities."""
        calibrator = copy(calibrator)
        # a warning for each batch, from each worker, helps no one
        calibrator.score_range_seen_ = None
        attributes = {}
        if calibrator._attribute_names:
            attributes = {"attributes": {name: [None] for name in calibrator._attribute_names}}
        low = -np.inf if _takes(calibrator, -1.0, **attributes) else 0.0
        high = np.inf if _takes(calibrator, 2.0, **attributes) else 1.0
        return cls(columns.only(), calibrator, coverage, prefix, low, high, table)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns to add."""
        more = ("lower", "upper", "set") if hasattr(self.calibrator, "predict_interval") else ()
        return tuple(self.prefix + name for name in ("calibrated", *more))

    @property
    def to_read(self) -> list[str]:
        """The score and the attributes."""
        return list(dict.fromkeys([self.columns.score, *self.calibrator._attribute_names]))

    def schema(self, schema: Any) -> Any:
        """The schema of a batch with the columns added; raise an error if an attribute is missing."""
        missing = [name for name in self.calibrator._attribute_names if name not in schema.names]
        if missing:
            needed = ", ".join(map(repr, self.calibrator._attribute_names))
            rule = f"have the columns of the attributes: {needed}"
            raise InvalidValueError("the data", rule, got=f"no {missing[0]!r}")
        return AddColumns.schema(self, schema)

    def as_look_up(self) -> LookUp:
        """The same columns as a table."""
        if isinstance(self.table, Exception):
            raise self.table
        return self.table

    def usable(self, rows: BatchRows) -> BoolArray:
        """Scores in the range that the calibrator accepts."""
        return np.asarray((rows.scores >= self.low) & (rows.scores <= self.high))

    def values(self, rows: BatchRows, batch: Any) -> Sequence[Any]:
        """The predictions of the calibrator, from the scores and the attributes of the rows."""
        if not len(rows):
            return [
                np.empty(0) if not name.endswith("set") else pa.array([], pa.string())
                for name in self.names
            ]
        attributes = {name: batch.column(name) for name in self.calibrator._attribute_names}
        if attributes:
            if rows.origin is not None:
                place = pa.array(rows.origin)
                attributes = {name: column.take(place) for name, column in attributes.items()}
            return [self.calibrator.predict(rows.scores, attributes=attributes)]
        calibrated = self.calibrator.predict(rows.scores)
        if len(self.names) == 1:
            return [calibrated]
        limits = self.calibrator.predict_interval(rows.scores)
        held = self.calibrator.predict_set(rows.scores, coverage=self.coverage)
        first, second = (str(label) for label in self.calibrator.classes_.tolist())
        kinds = pa.array(["{}", f"{{{first}}}", f"{{{second}}}", f"{{{first}, {second}}}"])
        return [
            calibrated,
            limits[:, 0],
            limits[:, 1],
            kinds.take(pa.array(held @ np.array([1, 2]))),
        ]


def _takes(calibrator: Any, score: float, **attributes: Any) -> bool:
    """Whether the calibrator accepts a score."""
    try:
        calibrator.predict(np.array([score]), **attributes)
    except CalibrantError:
        return False
    return True


def added_from(table: Table, columns: Columns, prefix: str) -> LookUp:
    """The default outputs of a table, as columns, with each step of the table as a bin."""
    if table.is_segmented and columns.segment is None:
        raise InvalidTypeError(
            "segment", "name the column of segments", "None", "use scored(..., segment=...)"
        )
    regions = np.concatenate([steps.regions for steps in table.steps])
    is_accepted = regions >= 0
    place = np.where(is_accepted, regions, 0)
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
    return LookUp(needed, _bins(table), values, curves, None if is_accepted.all() else is_accepted)


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
