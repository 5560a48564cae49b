"""The curve without jumps that has about the smallest epsilon and costs little log loss.

In each region b there is a curve M_b = s + t g0 + u h, where g0 is the first curve and h the mean of
the curves of both halves. With A the rate minus the average of g0, C the average of h - g0, and G
that of g0,

    E[Y - M_b] = A - s - u C + (1 - t - u) G.

Limits on A, C and G hold simultaneously, so they give limits for all s, t and u at once, whatever
these depend on. If t + u = 1, as for the shape of h pulled towards that of g0, G has no effect, and
the part of the width that is due to C shrinks by the factor u.

Around an edge, the curves of both regions are blended: at a knot of region b the curve is

    v = (1 - l - r) M_b + l M_{b-1} + r M_{b+1},

where l falls from 1/2 at the region's first knot to 0, and r rises from 0 to 1/2 at its last knot.
So v does not jump. What the blend adds to M_b is a part of the rest, which limits on the shares of
rows at knots bound (`calibrant.calibrators.curve.curve_bounds`): about proportional to the
distance between M_b and its neighbour at the edge. The blend is as wide as epsilon allows.

Of all such curves that never decrease, the chosen one has about the smallest epsilon. The log loss,
computed as if h were right, has a price that rises steeply where its growth comes near to what is
allowed. Distances at edges have a small price, because they make waves, and so have changes of the
slope. v is linear in s, t and u, epsilon is the largest of convex functions of them, and the growth,
the divergence of v from h, is convex: so this is a convex programme
(`calibrant.calibrators.curve.programme`).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibrant._typing import BoolArray, FloatArray
from calibrant.calibrators.curve.programme import LEAST_SLOPE, MovedCurve, Programme
from calibrant.cells.knots import Knots
from calibrant.limits.interval import Interval

SMOOTHNESS = 0.01
"""What a distance of 1 between the curves of two regions at their edge counts as, in epsilon."""
_WIDTHS = (0.5, 0.25, 0.12, 0.06)  # of a blend, as shares of a region
_NO_BLEND = 0.0
_NEAREST = 1e-9  # to 0 and 1, where a divergence is computed
_WIDER = 1.05  # times the epsilon of a curve with jumps: what a blend may have


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """Limits on the labels of each region on one side.

    Attributes
    ----------
    limit : float array of shape (n_regions,)
        The limit on the rate minus `known` times the average of the first curve.
    known : float array of shape (n_regions,)
        1 for bets, and 0 for limits on the rate itself.
    """

    limit: FloatArray
    known: FloatArray

    def mirrored(self) -> "Side":
        """The limits of exchanged labels; they are on the other side."""
        return Side(1.0 - self.known - self.limit, self.known)


@dataclass(frozen=True, eq=False)
class CurveMoves:
    """The curves that can be made of h and g0, and what is known about their errors.

    Coefficients are an array of shape (3 n_regions,): s of all regions, then t, then u.

    Attributes
    ----------
    knots : Knots
        The knots.
    first, mean : float arrays of shape (n_knots,)
        The curves g0 and h. h never decreases within a segment.
    at_knots, gaps : float arrays of shape (n_knots,)
        The rows at each knot, and the largest distance between the share of rows at knots up to it
        and that of the population.
    rows : float array of shape (n_knots,)
        How much each knot counts in the log loss.
    below, above : Side
        Lower and upper limits on labels.
    apart, of_first : Interval
        Limits on the averages of h - g0 and of g0 in each region.
    ignored : bool array of shape (n_regions,)
        Regions whose errors do not matter.
    """

    knots: Knots
    first: FloatArray
    mean: FloatArray
    at_knots: FloatArray
    gaps: FloatArray
    rows: FloatArray
    below: Side
    above: Side
    apart: Interval
    of_first: Interval
    ignored: BoolArray

    def least(self, allowed: float, smoothness: float = SMOOTHNESS) -> "MovedCurve":
        """The curve with about the smallest epsilon, if the log loss may grow by about `allowed`.

        The widest blend whose epsilon is not much larger than that of the curve with jumps.
        """
        least = self._least_possible
        found = Programme(self, _WIDTHS[0], allowed, smoothness).solved()
        if found.epsilon > _WIDER * least:
            least = Programme(self, _NO_BLEND, allowed, smoothness).solved().epsilon
        for width in _WIDTHS[1:]:
            if found.epsilon <= _WIDER * least:
                break
            found = Programme(self, width, allowed, smoothness).solved()
        return found

    def divergence(self, values: FloatArray) -> float:
        """How much the log loss of all rows grows if h is right."""
        v = np.clip(values, _NEAREST, 1.0 - _NEAREST)
        p = self.mean
        grows = p * np.log(p / v) + (1.0 - p) * np.log((1.0 - p) / (1.0 - v))
        return float((self.rows * grows).sum())

    @cached_property
    def _least_possible(self) -> float:
        """A lower bound on the epsilon of curves of this kind."""
        known = self.above.known - self.below.known
        width = self.above.limit - self.below.limit
        width = width + np.maximum(known * self.of_first.lower, known * self.of_first.upper)
        width = width + LEAST_SLOPE * (self.apart.upper - self.apart.lower)
        return float(np.where(self.ignored, 0.0, width / 2.0).max())
