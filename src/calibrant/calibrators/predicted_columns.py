"""The columns that a calibrator adds: its table on every engine, or the output of `predict` for
each batch of rows.
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import pa
from calibrant._typing import FloatArray
from calibrant.calibrators.tables.added import added_from
from calibrant.errors import CalibrantError, InvalidValueError, NoTableError
from calibrant.sample.added_columns import AddColumns, LookUp
from calibrant.sample.batch import BatchRows, Coded, Columns


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
        if calibrator._takes_one_score:
            return Predict.of(calibrator, columns, coverage, prefix, error)
        if not calibrator._attribute_names:
            raise
        return PredictWithAttributes.of(calibrator, columns, prefix, error)
    added = added_from(table, columns, prefix)
    return Predict.of(calibrator, columns, coverage, prefix, added) if table.needs_exp else added


@dataclass(frozen=True, slots=True, eq=False)
class Predict(AddColumns):
    """The output of `predict` for each score, and the limits and sets, if the calibrator has them.

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
        calibrator = _without_warnings(calibrator)
        ends = _taken(calibrator.predict)
        return cls(columns.only(), calibrator, coverage, prefix, *ends, table)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns to add."""
        more = ("lower", "upper", "set") if hasattr(self.calibrator, "predict_interval") else ()
        return tuple(self.prefix + name for name in ("calibrated", *more))

    def as_look_up(self) -> LookUp:
        """The same columns as a table."""
        if isinstance(self.table, Exception):
            raise self.table
        return self.table

    def usable(self, scores: NDArray[Any], segments: Coded | None) -> NDArray[np.bool_]:
        """Scores in the range that the calibrator accepts."""
        return np.asarray((scores >= self.low) & (scores <= self.high))

    def values(self, scores: NDArray[Any], segments: Coded | None) -> Sequence[Any]:
        """The predictions of the calibrator."""
        wanted = self.names
        if not scores.size:
            return [
                np.empty(0) if not name.endswith("set") else pa.array([], pa.string())
                for name in wanted
            ]
        calibrated = self.calibrator.predict(scores)
        if len(wanted) == 1:
            return [calibrated]
        limits = self.calibrator.predict_interval(scores)
        held = self.calibrator.predict_set(scores, coverage=self.coverage)
        first, second = (str(label) for label in self.calibrator.classes_.tolist())
        kinds = pa.array(["{}", f"{{{first}}}", f"{{{second}}}", f"{{{first}, {second}}}"])
        return [
            calibrated,
            limits[:, 0],
            limits[:, 1],
            kinds.take(pa.array(held @ np.array([1, 2]))),
        ]


@dataclass(frozen=True, slots=True, eq=False)
class PredictWithAttributes(AddColumns):
    """The output of `predict` for each score and its attributes, which are columns of the data.

    Attributes
    ----------
    columns, calibrator, prefix
        As given to `predicted_columns`.
    low, high : float
        The range of scores that the calibrator accepts.
    no_table : NoTableError
        Why there is no table.
    """

    columns: Columns
    calibrator: Any
    prefix: str
    low: float
    high: float
    no_table: NoTableError

    @classmethod
    def of(
        cls, calibrator: Any, columns: Columns, prefix: str, error: NoTableError
    ) -> "PredictWithAttributes":
        """Determine which scores the calibrator accepts: all, or only probabilities."""
        calibrator = _without_warnings(calibrator)
        nothing = {name: [None] for name in calibrator._attribute_names}
        ends = _taken(lambda scores: calibrator.predict(scores, attributes=nothing))
        return cls(columns.only(), calibrator, prefix, *ends, error)

    @property
    def names(self) -> tuple[str, ...]:
        """One column, the probability."""
        return (f"{self.prefix}calibrated",)

    @property
    def to_read(self) -> list[str]:
        """The score and the attributes."""
        return list(dict.fromkeys([self.columns.score, *self.calibrator._attribute_names]))

    def schema(self, schema: Any) -> Any:
        """The schema of a batch with the column added; raise an error if an attribute is missing."""
        missing = [name for name in self.calibrator._attribute_names if name not in schema.names]
        if missing:
            needed = ", ".join(map(repr, self.calibrator._attribute_names))
            rule = f"have the columns of the attributes: {needed}"
            raise InvalidValueError("the data", rule, got=f"no {missing[0]!r}")
        return AddColumns.schema(self, schema)

    def as_look_up(self) -> LookUp:
        """Raise the error that there is no table."""
        raise self.no_table

    def usable(self, scores: NDArray[Any], segments: Coded | None) -> NDArray[np.bool_]:
        """Scores in the range that the calibrator accepts."""
        return np.asarray((scores >= self.low) & (scores <= self.high))

    def values(self, scores: NDArray[Any], segments: Coded | None) -> Sequence[Any]:
        """The values for no rows, which give the type of the column; see `values_of`."""
        return [np.empty(0)]

    def values_of(self, rows: BatchRows, batch: Any) -> Sequence[Any]:
        """The predictions of the calibrator."""
        if not len(rows):
            return [np.empty(0)]
        attributes = {name: batch.column(name) for name in self.calibrator._attribute_names}
        if rows.origin is not None:
            place = pa.array(rows.origin)
            attributes = {name: column.take(place) for name, column in attributes.items()}
        return [self.calibrator.predict(rows.scores, attributes=attributes)]


def _without_warnings(calibrator: Any) -> Any:
    """A copy without its score range: a warning for each batch, from each worker, helps no one."""
    calibrator = copy(calibrator)
    calibrator.score_range_seen_ = None
    return calibrator


def _taken(predict: Callable[[FloatArray], FloatArray]) -> tuple[float, float]:
    """The smallest and the largest accepted score: unbounded, or 0 and 1."""
    low = -np.inf if _takes(predict, -1.0) else 0.0
    high = np.inf if _takes(predict, 2.0) else 1.0
    return low, high


def _takes(predict: Callable[[FloatArray], FloatArray], score: float) -> bool:
    try:
        predict(np.array([score]))
    except CalibrantError:
        return False
    return True
