"""A calibrator whose values follow a piecewise linear curve, with limits on its average error in
every region.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant._typing import ArrayLike, FloatArray
from calibrant.calibrators.anchored.pieces import Pieces
from calibrant.calibrators.regions.region_calibrator import RegionCalibrator
from calibrant.calibrators.tables.steps import steps_of_bins
from calibrant.calibrators.tables.table import Table
from calibrant.cells.lines import Lines
from calibrant.limits.interval import Interval
from calibrant.params.frames import framed


class PiecewiseCalibrator(RegionCalibrator):
    """A calibrator that follows a curve; limits and sets are those of the region."""

    pieces_: Pieces
    """The curve."""
    table_: FloatArray
    """For each piece: where it begins, the value there, the slope, and what is added to the value
    for the limits.
    """
    _lines: FloatArray

    def _set_pieces(self, pieces: Pieces, errors: Interval) -> None:
        """Store the curve, and limits on the rate minus its average in each region."""
        offsets = np.column_stack([errors.lower, errors.upper])
        self.pieces_ = pieces
        self._lines = pieces.table
        self.table_ = np.column_stack(
            [self._lines, offsets[pieces.regions(self.partition_.as_bins())]]
        )

    def _follow(
        self, scores: ArrayLike, lines: FloatArray, segments: ArrayLike | None
    ) -> FloatArray:
        """The value of the curve at each score, or limits around it."""
        return self._entries(self.pieces_.cells, scores, lines, segments, on_curve=True)

    @framed
    def predict(self, scores: ArrayLike, *, segments: ArrayLike | None = None) -> FloatArray:
        """Return the calibrated probability of the positive label, shape (n,)."""
        check_is_fitted(self)
        return self._follow(scores, self._lines, segments)

    @framed
    def predict_proba(self, scores: ArrayLike, *, segments: ArrayLike | None = None) -> FloatArray:
        """Return the calibrated probabilities of both labels, shape (n, 2).

        The columns follow `classes_`.
        """
        return self._both_columns(self.predict(scores, segments=segments))

    @framed
    def predict_interval(
        self, scores: ArrayLike, *, segments: ArrayLike | None = None
    ) -> FloatArray:
        """Return the predicted probability, shifted by the average errors that its region does not
        rule out, (n, 2).

        This is h(score) plus the region's limits on the rate minus the average prediction, clipped
        to [0, 1]; see the notes. With probability `confidence_level`, in every region at once, some
        shift of the predictions of the whole region, within these limits before they are clipped,
        makes their average the true rate. It is not an interval for the rate at one score;
        `predict_rate_interval` gives the interval for the region's rate.
        """
        check_is_fitted(self)
        return self._follow(scores, self.table_, segments)

    def value_ranges(self) -> tuple[FloatArray, FloatArray]:
        """The smallest and largest values of the curve in each region."""
        return self.pieces_.range(self.partition_.as_bins())

    def _own_table(self, coverage: float) -> Table:
        """The pieces of the curve, each with the limits and the set of its region."""
        start, value, slope, lower, upper = self.table_.T
        numbers = self.pieces_.regions(self.partition_.as_bins())
        return replace(
            self._region_table(steps_of_bins(self.pieces_.cells), coverage),
            calibrated=value,
            lower=lower,
            upper=upper,
            sets=self._sets(coverage)[numbers],
            lines=Lines(start, slope),
            numbers=numbers,
        )
