"""What limits on a curve follow from: one small protocol for plain, grouped and weighted rows.

Plain rows are counts (`curve_bounds.KnotEvidence`), rows of groups and rows with weights are sums
over units (`unit_evidence.UnitEvidence`).
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibrant._typing import BoolArray, FloatArray
from calibrant.calibrators.anchored.pieces import Pieces
from calibrant.cells.knots import Knots
from calibrant.limits.interval import Interval

MOVED_SHARE = 0.02
"""Of the error budget: for (D), the distribution of rows over knots."""
CURVE_SHARE = 0.1
"""Of the rest: for (C), the averages of the curves of both halves less the first one."""


@dataclass(frozen=True, eq=False)
class CurveEvidence:
    """Rows at knots, and the curves that limits are about.

    Attributes
    ----------
    knots : Knots
        The knots.
    first : float array of shape (n_knots,)
        The first curve, g0.
    halves : float array of shape (2, n_knots)
        The curves g_1 and g_2; g_k was fitted without half k.
    """

    knots: Knots
    first: FloatArray
    halves: FloatArray

    @property
    @abstractmethod
    def at_knots(self) -> FloatArray:
        """How much of the rows is at each knot: rows, or their weight."""

    @property
    @abstractmethod
    def positives(self) -> FloatArray:
        """The same of the positive rows of each region."""

    @property
    @abstractmethod
    def has_negatives(self) -> BoolArray:
        """Whether a row of each region is negative."""

    @property
    def is_exact(self) -> BoolArray:
        """Where exact limits of the rate take the place of bets."""
        return np.zeros(self.knots.regions.n_regions, dtype=bool)

    @abstractmethod
    def limits(self, alpha: float, shares: FloatArray) -> tuple[Interval, FloatArray]:
        """Limits on the rate less the average of h, and on the shares of rows up to each knot.

        All hold with probability at least 1 - alpha. In exact regions the first are limits of the
        rate. The second say how far the share of rows at knots up to each one can be from that of
        the population; 0 at the last knot of a region.
        """

    @property
    def mean_curve(self) -> FloatArray:
        """The curve h, the mean of both."""
        return np.asarray(self.halves.mean(axis=0))

    @cached_property
    def rows(self) -> FloatArray:
        """How much of the rows is in each region."""
        return np.add.reduceat(self.at_knots, self.knots.starts[:-1])

    @property
    def labelled(self) -> FloatArray:
        """The same of rows with labels."""
        return self.rows

    def averages(self, curve: FloatArray) -> FloatArray:
        """The average of a curve over the rows of each region; over its knots where there are
        none.
        """
        starts = self.knots.starts[:-1]
        sums = np.add.reduceat(self.at_knots * curve, starts)
        plain = np.add.reduceat(curve, starts) / np.diff(self.knots.starts)
        seen = self.rows > 0
        return np.where(seen, sums / np.where(seen, self.rows, 1.0), plain)

    def pieces(self, curve: FloatArray) -> Pieces:
        """A curve as the table on which rows were counted."""
        return Pieces(self.knots.cells, curve[self.knots.first], curve[self.knots.last])

    def ends(self, curve: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The smallest and the largest value of a curve in each region."""
        starts = self.knots.starts[:-1]
        return np.minimum.reduceat(curve, starts), np.maximum.reduceat(curve, starts)
