"""The columns that a calibrator adds if it is not a table of regions of the score."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import pa
from calibrant._typing import FloatArray, IndexArray
from calibrant.errors import CalibrantError
from calibrant.sample.added_columns import AddColumns, AddFromCells
from calibrant.sample.batch import Coded, Columns


@dataclass(frozen=True, slots=True, eq=False)
class Predict(AddColumns):
    """What `predict` says of each score; and the limits and sets, where the calibrator has them."""

    columns: Columns
    calibrator: Any
    coverage: float
    prefix: str
    low: float
    high: float

    @classmethod
    def of(cls, calibrator: Any, columns: Columns, coverage: float, prefix: str) -> "Predict":
        """Find out which scores the calibrator takes: all, or probabilities only."""
        calibrator = copy(calibrator)
        calibrator.score_range_seen_ = None  # a warning for each batch, from each worker, helps no one
        low = -np.inf if _takes(calibrator, -1.0) else 0.0
        high = np.inf if _takes(calibrator, 2.0) else 1.0
        return cls(columns.only(), calibrator, coverage, prefix, low, high)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns to add."""
        more = ("lower", "upper", "set") if hasattr(self.calibrator, "predict_interval") else ()
        return tuple(self.prefix + name for name in ("calibrated", *more))

    def usable(self, scores: NDArray[Any], segments: Coded | None) -> NDArray[np.bool_]:
        """Scores in the range that the calibrator takes."""
        return np.asarray((scores >= self.low) & (scores <= self.high))

    def values(self, scores: NDArray[Any], segments: Coded | None) -> Sequence[Any]:
        """What the calibrator predicts."""
        wanted = self.names
        if not scores.size:
            return [np.empty(0) if not name.endswith("set") else pa.array([], pa.string()) for name in wanted]
        calibrated = self.calibrator.predict(scores)
        if len(wanted) == 1:
            return [calibrated]
        limits = self.calibrator.predict_interval(scores)
        held = self.calibrator.predict_set(scores, coverage=self.coverage)
        first, second = (str(label) for label in self.calibrator.classes_.tolist())
        kinds = pa.array(["{}", f"{{{first}}}", f"{{{second}}}", f"{{{first}, {second}}}"])
        return [calibrated, limits[:, 0], limits[:, 1], kinds.take(pa.array(held @ np.array([1, 2])))]


@dataclass(frozen=True, slots=True, eq=False)
class FollowCurve(AddFromCells):
    """The value of a curve at each score, its limits, and the set of its region.

    Attributes
    ----------
    columns, partition
        As in `AddFromCells`; the regions are the pieces of the curve.
    pieces : float array of shape (n_pieces, 5)
        Of each piece where it begins, the value there, the slope, and what is added to the value for the limits.
    sets : tuple of str
        The set of each piece.
    prefix : str
        Prefix of the names of the columns.
    """

    pieces: FloatArray
    sets: tuple[str, ...]
    prefix: str

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns to add."""
        return tuple(self.prefix + name for name in ("calibrated", "lower", "upper", "set"))

    def of_cells(self, scores: NDArray[Any], cells: IndexArray) -> Sequence[Any]:
        """What `predict`, `predict_interval` and `predict_set` give."""
        start, value, slope, lower, upper = self.pieces[cells].T
        curve = value + slope * (scores.astype(np.float64) - start)
        limits = [np.clip(curve + offset, 0.0, 1.0) for offset in (lower, upper)]
        return [curve, *limits, pa.array(self.sets, pa.string()).take(pa.array(cells))]


def _takes(calibrator: Any, score: float) -> bool:
    try:
        calibrator.predict(np.array([score]))
    except CalibrantError:
        return False
    return True
