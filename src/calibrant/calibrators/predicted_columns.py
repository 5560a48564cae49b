"""The columns that a calibrator adds: its table on every engine, or what `predict` says of each
batch of rows.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import pa
from calibrant.calibrators.tables.added import added_from
from calibrant.errors import CalibrantError, NoTableError
from calibrant.sample.added_columns import AddColumns, LookUp
from calibrant.sample.batch import Coded, Columns


def predicted_columns(
    calibrator: Any, columns: Columns, coverage: float, prefix: str
) -> AddColumns:
    """The columns that a fitted calibrator adds, or the error that it has no table.

    A curve with exp is computed by `predict`, batch by batch, so that all bits are those of
    `predict`; engines that run SQL compute it themselves. A calibrator without a table is applied
    likewise, where batches can be had, if it predicts from one score.
    """
    try:
        table = calibrator._table(coverage)
    except NoTableError as error:
        if not calibrator._takes_one_score:
            raise
        return Predict.of(calibrator, columns, coverage, prefix, error)
    added = added_from(table, columns, prefix)
    return Predict.of(calibrator, columns, coverage, prefix, added) if table.needs_exp else added


@dataclass(frozen=True, slots=True, eq=False)
class Predict(AddColumns):
    """What `predict` says of each score; and the limits and sets, where the calibrator has them.

    Attributes
    ----------
    columns, calibrator, coverage, prefix
        As given to `predicted_columns`.
    low, high : float
        The scores that the calibrator takes.
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
        """Find out which scores the calibrator takes: all, or probabilities only."""
        calibrator = copy(calibrator)
        calibrator.score_range_seen_ = (
            None  # a warning for each batch, from each worker, helps no one
        )
        low = -np.inf if _takes(calibrator, -1.0) else 0.0
        high = np.inf if _takes(calibrator, 2.0) else 1.0
        return cls(columns.only(), calibrator, coverage, prefix, low, high, table)

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
        """Scores in the range that the calibrator takes."""
        return np.asarray((scores >= self.low) & (scores <= self.high))

    def values(self, scores: NDArray[Any], segments: Coded | None) -> Sequence[Any]:
        """What the calibrator predicts."""
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


def _takes(calibrator: Any, score: float) -> bool:
    try:
        calibrator.predict(np.array([score]))
    except CalibrantError:
        return False
    return True
