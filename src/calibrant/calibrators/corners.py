"""Curves that are linear between corners, and constant beyond the first and the last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant._typing import FloatArray
from calibrant.calibrators.anchored.pieces import Pieces
from calibrant.calibrators.curve_calibrator import CurveCalibrator
from calibrant.calibrators.score_calibrator import FACTS
from calibrant.calibrators.tables.steps import steps_everywhere
from calibrant.calibrators.tables.table import Table
from calibrant.cells.lines import Lines
from calibrant.cells.score_partition import ScorePartition
from calibrant.errors import InvalidValueError
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.state_kinds import Numbers
from calibrant.text.sentences import shown


@dataclass(eq=False, repr=False, kw_only=True)
class CornerCalibrator(CurveCalibrator):
    """A calibrator that learns `thresholds_` and `values_`, the corners of a monotone curve.

    A subclass that may decrease sets `may_fall`.
    """

    _learned: ClassVar[EntryTable] = {
        "thresholds": Entry(Numbers(increasing=True), of="thresholds_"),
        "values": Entry(Numbers(size="thresholds", low=0.0, high=1.0), of="values_"),
        "facts": FACTS,
    }
    may_fall: ClassVar[bool] = False

    def _check_curve(self) -> None:
        if not self.thresholds_.size:
            raise InvalidValueError("thresholds", "be at least one", got="none")
        rises = np.diff(self.values_)
        if (rises < 0.0).any() and not (self.may_fall and (rises <= 0.0).all()):
            rule = "not both rise and fall" if self.may_fall else "not fall"
            raise InvalidValueError("values", rule, got=shown(self.values_.tolist()))
        whole = ScorePartition(np.empty(0))
        self.pieces_ = Pieces.through(whole, [self.thresholds_], [self.values_])

    def _curve(self, scores: FloatArray) -> FloatArray:
        """Evaluate by start, value and slope of the piece, as exports do: the same sum, so the same
        bits.
        """
        start, value, slope = self.pieces_.table[
            np.searchsorted(self.thresholds_, scores, side="right")
        ].T
        return np.asarray(value + slope * (scores - start))

    def _own_table(self, coverage: float) -> Table:
        start, value, slope = self.pieces_.table.T
        steps = steps_everywhere(self.thresholds_)
        return self._curve_table(value, Lines(start, slope), coverage, steps)
