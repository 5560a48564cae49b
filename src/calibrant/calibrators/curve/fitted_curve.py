"""What is kept and saved of a fitted curve, and the limits on its averages that counts give without
bets.

Bets on rows at knots are in `calibrant.calibrators.curve.curve_bounds`.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.calibrators.curve.fine_cells import Averages, Grid
from calibrant.calibrators.curve.pieces import Pieces
from calibrant.calibrators.regions.proof import Proof
from calibrant.errors import InvalidValueError
from calibrant.limits.binomial import upper_limit
from calibrant.limits.interval import Interval, PairOfLimits, check_width, check_widths
from calibrant.limits.kolmogorov import kolmogorov_distance, rank_distance
from calibrant.limits.region_limits import absorbed_shares, rows_between
from calibrant.params.declared_state import Inline, Saved
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.rules import TEXT, Integer
from calibrant.params.state_kinds import Maybe, Nested, Numbers

THEOREM = (
    "Ville's inequality for bets on labels minus a first curve, and on what the curves of two halves"
    " add to it, by Sidak over regions"
)
THEOREM_OF_UNITS = (
    "Ville's inequality for bets on labels minus a first curve, and on what the curves of two halves "
    "add to it, each bet on a whole group or a row with its weight, by Bonferroni over regions"
)
USUAL_LEVEL = 0.9
"""Curves are moved as at this level, so that they do not depend on `confidence_level`."""
CURVE_SHARE = 0.1
"""Share of the rates' error budget for the limits on how rows are distributed within regions."""

_SMALL = (
    0.2  # of the half-width of a rate: error in a curve's average accepted without a closer look
)


@dataclass(frozen=True, eq=False)
class ProvedCurve(Saved):
    """Limits on a curve by bets, which hold simultaneously; see `CurveBounds.proved_for`.

    Attributes
    ----------
    errors : Interval
        The rate minus the average prediction, in each region.
    rates : Interval
        The rate of each region.
    margin : float array of shape (n_regions,)
        The largest distance between the average prediction and that over the counted rows.
    """

    _entries: ClassVar[EntryTable] = {
        "errors": PairOfLimits("proof.tally.n_regions", low=-1.0),
        "rates": PairOfLimits("proof.tally.n_regions"),
        "margin": Numbers("proof.tally.n_regions", 0.0, 1.0),
    }

    errors: Interval
    rates: Interval
    margin: FloatArray

    def check(self, counts: IntArray, alpha: float) -> None:
        """Raise an error for limits that are narrower than any rows could make them."""
        check_widths({"errors": self.errors, "rates": self.rates}, counts, alpha, "the curve")


@dataclass(frozen=True, eq=False)
class Parts(Saved):
    """What a model stores if its limits come without bets: the margin. The other entries say that
    nothing else is known, and that the rates' error budget is shared evenly.

    Attributes
    ----------
    margin : float array
        The largest distance between the average prediction of each region and that over its rows.
    lower, upper : float arrays
        -1 and 1.
    shares : None
        Nothing.
    """

    _entries: ClassVar[EntryTable] = {
        "margin": Numbers("proof.tally.n_regions", 0.0, 1.0),
        "lower": Numbers("proof.tally.n_regions", -1.0, 1.0),
        "upper": Numbers("proof.tally.n_regions", -1.0, 1.0),
        "shares": Maybe(Numbers("proof.tally.n_regions", 0.0, 1.0)),
    }

    margin: FloatArray
    lower: FloatArray
    upper: FloatArray
    shares: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class FittedCurve(Saved):
    """A fitted curve, shifted where the data refute it.

    Attributes
    ----------
    name : str
        The name of the curve.
    curve : Pieces
        The curve.
    average, unknown : float arrays
        Its average over the counted rows of each region, and the error of that, because rows are
        known only up to a cell.
    n_shifted : int
        The number of regions where it was shifted into the limits on the rate.
    parts : Parts or None
        How far averages can be off, by Koksma's inequality; only for rows without weights and groups.
    proved : ProvedCurve or None
        Limits by bets on rows that were counted at knots; they replace all others.
    """

    _entries: ClassVar[EntryTable] = {
        "name": TEXT,
        "shifted": Entry(Integer(0), of="n_shifted"),
        "curve": Inline(Pieces),
        "average": Numbers("proof.tally.n_regions", 0.0, 1.0),
        "unknown": Numbers("proof.tally.n_regions", 0.0, 1.0),
        "parts": Entry(Maybe(Nested(Parts)), absent=None),
        "proved": Entry(Maybe(Nested(ProvedCurve)), absent=None),
    }

    name: str
    curve: Pieces
    average: FloatArray
    unknown: FloatArray
    n_shifted: int
    parts: Parts | None
    proved: ProvedCurve | None = None

    def _check_state(self, known: Known) -> None:
        low, high = self.curve.range(known["proof"].partition.as_bins())
        below = self.average < low - self.unknown
        above = self.average > high + self.unknown
        if (below | above).any():
            rule = "lie between the smallest and the largest value of the curve"
            raise InvalidValueError("average", rule)


@dataclass(frozen=True, eq=False)
class CurveProof(Proof):
    """What the counted rows show about the rate of each region, and, without bets, about the
    average of any curve in it.
    """

    @property
    def for_rates(self) -> float:
        """The error budget of the limits on rates."""
        return self.for_limits * (1.0 - CURVE_SHARE)

    @property
    def for_curve(self) -> float:
        """The error budget of the limits on how rows are distributed within regions."""
        return self.for_limits * CURVE_SHARE

    def distances(self, shares: FloatArray | None = None) -> FloatArray:
        """Limits on the Kolmogorov distance between plain rows of each region and the population."""
        between = rows_between(self.partition, self.tally).counts
        distance = kolmogorov_distance(between, self.for_curve, shares)
        # an absorbed edge has at most this share of its region, and of its rows
        absorbed = absorbed_shares(self.partition, self.for_rates)
        absorbed = np.maximum(absorbed, 1.0 - between / np.maximum(self.tally.counts, 1))
        return np.where(between < self.tally.counts, distance + absorbed, distance)

    def margin(
        self, curve: Pieces, grid: Grid, averages: tuple[FloatArray, FloatArray], limits: Interval
    ) -> FloatArray:
        """The largest distance between the averages of a curve over plain rows and over the
        population, in each region.

        It is the sum of the curve's steps times limits on the difference between the shares of rows
        below each cell in the sample and in the population. `averages` are those over the rows, and
        their possible errors.
        """
        regions = self.partition.as_bins()
        on_curve = Averages.over(curve, grid, regions)
        near = self._cell_distances(grid, curve.variation(regions), limits)
        far = on_curve.sums(on_curve.steps(*on_curve.ends(curve)) * near)
        margin = np.where(far > 0.0, far + 1e-12, 0.0) + averages[1]
        return np.asarray(np.minimum(margin, 1.0))

    def _cell_distances(self, grid: Grid, variation: FloatArray, limits: Interval) -> FloatArray:
        """Limits on the distance between the shares of a region's plain rows below each cell and
        those of the population.
        """
        shares = np.full(variation.size, 1.0 / variation.size)
        distance = self.distances(shares / 2)
        kept = np.log1p(-self.for_curve)
        level = np.exp(kept * shares / 2) - np.exp(kept * shares)
        region = grid.regions(self.partition.as_bins())
        fine = rows_between(self.partition, self.tally).counts == self.tally.counts
        fine &= (
            variation * distance > _SMALL * limits.radius
        )  # elsewhere finer limits would change little
        fine = fine[region] & (region >= 0)
        near = np.where(region >= 0, distance[region], 0.0)
        return np.where(
            fine, rank_distance(grid.rows, np.where(fine, region, -1), distance, level), near
        )

    def errors(self, fitted: FittedCurve, limits: Interval) -> tuple[FloatArray, Interval]:
        """The distance between averages over rows and population, and limits on the rate minus the
        average prediction, for a curve that no bets at knots were made on.
        """
        parts = fitted.parts
        margin = np.ones(limits.lower.size) if parts is None else parts.margin
        lower = np.maximum(limits.lower - fitted.average - margin, -1.0)
        upper = np.minimum(limits.upper - fitted.average + margin, 1.0)
        return margin, Interval(lower, upper)

    def check_parts(self, fitted: FittedCurve) -> None:
        """Raise an error for a margin that the counts of a curve cannot give, whatever the rows were,
        and for limits beside it.

        The average of a curve is known up to its variation times the largest distance between the
        share of rows below any score and that share in the population. With k of N rows below,
        exact limits at level d are at least as far apart as the binomial limits of k in N at d / 2;
        the distance is smallest for k = 0 or k = N / 2.
        """
        parts = fitted.parts
        if parts is None:
            raise InvalidValueError("parts", "be given without limits by bets", got="none")
        if parts.shares is not None or (parts.lower != -1.0).any() or (parts.upper != 1.0).any():
            rule = "be -1 and 1, and shares null, where no bets were made"
            raise InvalidValueError("lower and upper", rule, got="other values")
        counts = np.maximum(self.tally.counts, 1)
        middle = counts // 2
        tail = self.for_curve / 2.0
        none, *halves = (
            upper_limit(below, counts, tail) - below / counts
            for below in (0 * counts, middle, counts - middle)
        )
        distance = np.minimum(none, np.maximum(*halves))
        variation = fitted.curve.variation(self.partition.as_bins())
        least = np.minimum(variation * distance + fitted.unknown, 1.0)
        check_width("margin of the curve", parts.margin, least)
