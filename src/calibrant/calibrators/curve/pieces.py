"""A piecewise linear curve of the score, and calibrators that predict with one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import logit

from calibrant._typing import ArrayLike, BoolArray, FloatArray, IndexArray
from calibrant.calibrators.regions.region_calibrator import RegionCalibrator
from calibrant.calibrators.table import Table, steps_of_bins
from calibrant.cells.bins import Bins
from calibrant.cells.knots import first_inside, straight_cells
from calibrant.cells.lines import Lines
from calibrant.cells.score_partition import ScorePartition
from calibrant.errors import InvalidValueError
from calibrant.limits.interval import Interval
from calibrant.params.declared_state import Saved
from calibrant.params.estimator import check_is_fitted
from calibrant.params.frames import framed
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.state_kinds import Lists, Numbers
from calibrant.text.sentences import shown

_ACCURACY = 0.002  # of the curve between the kept knots, on the logit scale
ROUNDING = 1e-12
"""Added to results computed from sums over rows."""
_JUMP = 0.002  # the smallest step that is named


@dataclass(frozen=True, eq=False)
class Pieces(Saved):
    """A curve that is linear in each of finitely many cells of the score, and may jump between
    them.

    Attributes
    ----------
    cells : Bins
        Half-open cells. In the first and the last of each segment the curve is constant.
    left, right : float arrays
        The value at the start of each cell, and the limit at its end.
    """

    _entries: ClassVar[EntryTable] = {
        "knots": Entry(Lists(Numbers(increasing=True)), of="_knots"),
        "left": Numbers(low=0.0, high=1.0),
        "right": Numbers(low=0.0, high=1.0),
    }

    cells: Bins
    left: FloatArray
    right: FloatArray

    def __post_init__(self) -> None:
        """Make the curve constant in cells so narrow or so wide that their slope is not finite."""
        object.__setattr__(self, "right", np.where(self.is_straight, self.right, self.left))

    @classmethod
    def through(cls, regions: Bins, knots: list[FloatArray], values: list[FloatArray]) -> Self:
        """The curve through the knots of each segment, cut where regions begin, and constant beyond
        the knots.
        """
        parts = []
        left = []
        right = []
        for part, x, y in zip(regions.parts, knots, values, strict=True):
            edges = np.unique(np.concatenate([part.cuts, x]))
            edges = edges[(edges > part.low) & (edges <= part.high)]
            at = interpolate(edges, x, y) if edges.size else y[:1]
            parts.append(ScorePartition(edges, (part.low, part.high)))
            left.append(np.concatenate([at[:1], at]) if edges.size else at)
            right.append(np.concatenate([at, at[-1:]]) if edges.size else at)
        return cls(regions.with_parts(parts), np.concatenate(left), np.concatenate(right))

    @cached_property
    def is_straight(self) -> BoolArray:
        """Whether the curve may vary within each cell.

        It is constant in a cell that is unbounded or has one value.
        """
        return straight_cells(*self.cells.layout.ends)

    @cached_property
    def table(self) -> FloatArray:
        """For each cell, where it begins, the value there, and the slope.

        The slope is slightly too small, so that rounding never carries the value beyond the limit
        at the end.
        """
        begin, end = self.cells.layout.ends
        with np.errstate(all="ignore"):
            slope = (self.right - self.left) / (end - begin) * (1.0 - 2.0**-50)
        straight = self.is_straight
        return np.column_stack(
            [np.where(straight, begin, 0.0), self.left, np.where(straight, slope, 0.0)]
        )

    @property
    def falling_segments(self) -> BoolArray:
        """For each segment, whether the curve ends lower than it begins."""
        change = np.bincount(
            self.cells.layout.cells.segment, self.right - self.left, len(self.cells.parts)
        )
        return np.asarray(change < 0.0)

    @property
    def falls(self) -> bool:
        """Whether the curve decreases in every segment."""
        return bool(self.falling_segments.all())

    @property
    def jumps(self) -> FloatArray:
        """The scores at which the curve jumps, in any segment."""
        segment = self.cells.layout.cells.segment
        steps = np.abs(self.left[1:] - self.right[:-1])
        found = np.flatnonzero((steps > _JUMP) & (np.diff(segment) == 0)) + 1
        return np.unique(self.cells.layout.ends[0][found])

    def regions(self, partition: Bins) -> IndexArray:
        """The region of each cell, for prediction."""
        begin, end = self.cells.layout.ends
        inside = first_inside(begin, end)
        within = self.cells.layout.cells.segment if partition.has_segments else None
        return np.asarray(partition.regions_of(partition.prepared(inside, within)))

    def variation(self, partition: Bins) -> FloatArray:
        """The total variation of the curve over each region, from its start to its end."""
        region = self.regions(partition)
        total = np.bincount(region, np.abs(self.right - self.left), minlength=partition.n_regions)
        same = region[1:] == region[:-1]
        jumps = np.abs(self.left[1:] - self.right[:-1])
        total += np.bincount(region[1:], np.where(same, jumps, 0.0), minlength=partition.n_regions)
        return np.where(total > 0.0, total + ROUNDING, 0.0)

    def range(self, partition: Bins) -> tuple[FloatArray, FloatArray]:
        """The smallest and the largest value in each region."""
        region = self.regions(partition)
        low = np.ones(partition.n_regions)
        high = np.zeros(partition.n_regions)
        np.minimum.at(low, region, np.minimum(self.left, self.right))
        np.maximum.at(high, region, np.maximum(self.left, self.right))
        return low, high

    @property
    def _knots(self) -> tuple[FloatArray, ...]:
        """Where pieces begin, in each segment."""
        return tuple(part.edges for part in self.cells.parts)

    @classmethod
    def _made(cls, values: dict[str, Any], known: Known) -> Self:
        """The pieces, cut for regions that were read before."""
        regions: Bins = known["proof"].partition.as_bins()
        knots = values["_knots"]
        if len(knots) != len(regions.parts):
            rule = f"be one list per segment, {len(regions.parts)}"
            raise InvalidValueError("knots", rule, got=f"{len(knots)}")
        parts = []
        for part, edges in zip(regions.parts, knots, strict=True):
            inside = (edges > part.low).all() and (edges <= part.high).all()
            if not inside or not np.isin(part.cuts, edges).all():
                rule = "increase and hold the cuts of all regions"
                raise InvalidValueError("knots", rule, got=shown(edges.tolist()))
            parts.append(ScorePartition(edges, (part.low, part.high)))
        cells = regions.with_parts(parts)
        size = cells.n_regions
        left = values["left"]
        right = values["right"]
        if not left.size == right.size == size:
            got = f"{left.size:,} and {right.size:,}"
            raise InvalidValueError("left and right", f"have {size:,} entries", got=got)
        return cls(cells, left, right)


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
        to [0, 1]; see the notes. With probability `confidence_level`, in every region
        simultaneously, some shift of the predictions of the whole region, within these limits
        before they are clipped, makes their average the true rate. It is not an interval for the
        rate at one score; `predict_rate_interval` gives the interval for the region's rate.
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


def interpolate(scores: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """Interpolate linearly, never outside the two nearest values, and finite even for knots as far
    apart as doubles can be.
    """
    right = np.clip(np.searchsorted(x, scores, side="left"), 0, x.size - 1)
    left = np.maximum(right - 1, 0)
    width = x[right] / 2 - x[left] / 2
    share = np.where(
        width > 0.0, (scores / 2 - x[left] / 2) / np.where(width > 0.0, width, 1.0), 1.0
    )
    share = np.clip(share, 0.0, 1.0)
    between = y[left] + share * (y[right] - y[left])
    low = np.minimum(y[left], y[right])
    high = np.maximum(y[left], y[right])
    return np.where(share == 1.0, y[right], np.clip(between, low, high))


def simplified(
    x: FloatArray, y: FloatArray, accuracy: float = _ACCURACY
) -> tuple[FloatArray, FloatArray]:
    """Fewer knots, between which the curve stays within a small distance on the logit scale."""
    if x.size <= 2:
        return x, y
    wanted = logit(y)
    kept = np.zeros(x.size, dtype=bool)
    kept[[0, -1]] = True
    while True:
        at = np.flatnonzero(kept)
        error = np.abs(logit(interpolate(x, x[at], y[at])) - wanted)
        worst = np.maximum.reduceat(error, at[:-1])
        short = np.repeat(worst, np.diff(at[:-1], append=x.size))
        new = (error >= short) & (error > accuracy) & ~kept
        if not new.any():
            return x[at], y[at]
        kept |= new
