"""A curve that was fitted, and what is proved of its averages in every region."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant._typing import FloatArray
from calibrant.calibrators.anchored.fine_cells import Grid
from calibrant.calibrators.anchored.pieces import Pieces
from calibrant.calibrators.anchored.pilot import Parts
from calibrant.calibrators.anchored.proved_curve import ProvedCurve
from calibrant.calibrators.regions.proof import Proof
from calibrant.errors import InvalidValueError
from calibrant.guarantee.absorbed import absorbed_budget, absorbed_shares, rows_between
from calibrant.limits.group_limits import group_distance
from calibrant.limits.interval import Interval
from calibrant.limits.kolmogorov import kolmogorov_distance, rank_distance
from calibrant.params.declared_state import Inline, Saved
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.rules import TEXT, Integer
from calibrant.params.state_kinds import Maybe, Nested, Numbers

CURVE_SHARE = 0.1
"""Of the error budget of rates: what the limits on how rows are distributed within regions may
miss.
"""

_SMALL = (
    0.2  # of the half-width of a rate: what the average of a curve may be off without a closer look
)


@dataclass(frozen=True, eq=False)
class FittedCurve(Saved):
    """A curve that was fitted and anchored.

    Attributes
    ----------
    name : str
        Which curve it is.
    curve : Pieces
        The curve.
    average, unknown : float arrays
        Its average over the counted rows of each region, and how far off that can be, as rows are
        known up to a cell.
    n_anchored : int
        In how many regions it was shifted into the limits of the rate.
    parts : Parts or None
        How the budget was shared among regions, and what bets prove; only of rows without weights
        and groups.
    proved : ProvedCurve or None
        Limits by bets on rows that were counted at knots; they take the place of all others.
    """

    _entries: ClassVar[EntryTable] = {
        "name": TEXT,
        "anchored": Entry(Integer(0), of="n_anchored"),
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
    n_anchored: int
    parts: Parts | None
    proved: ProvedCurve | None = None

    @property
    def falls(self) -> bool:
        """Whether the curve falls as the score rises."""
        return self.curve.falls

    def _check_state(self, known: Known) -> None:
        low, high = self.curve.range(known["proof"].partition.as_bins())
        below = self.average < low - self.unknown
        above = self.average > high + self.unknown
        if (below | above).any():
            rule = "lie between the smallest and the largest value of the curve"
            raise InvalidValueError("average", rule)


@dataclass(frozen=True, eq=False)
class CurveProof(Proof):
    """What the counted rows prove of the rate of each region, and of the average of any curve in
    it.
    """

    @property
    def for_rates(self) -> float:
        """What the limits of rates may miss."""
        return super().for_rates * (1.0 - CURVE_SHARE)

    @property
    def for_curve(self) -> float:
        """What the limits on how rows are distributed within regions may miss."""
        return super().for_rates * CURVE_SHARE

    @property
    def for_limits(self) -> float:
        """What all limits on rates, errors and averages may miss together."""
        return super().for_rates

    @property
    def for_bets(self) -> float:
        """The same without the limits on the shares of absorbed edges."""
        return self.for_limits - absorbed_budget(self.partition, self.for_limits)

    def distances(self, shares: FloatArray | None = None) -> FloatArray:
        """Limits on the Kolmogorov distance between the rows of each region and the population."""
        if self.design is not None:
            return group_distance(self.tally, self.design, self.for_curve)
        if self.weighted is not None and self.weighted.distance is not None:
            return self.weighted.distance
        if self.weighted is not None and self.weighted.kept is not None:
            return kolmogorov_distance(self.weighted.kept, self.for_curve)
        between = rows_between(self.partition, self.tally).counts
        distance = kolmogorov_distance(between, self.for_curve, shares)
        # an edge that a region absorbs has at most this share of it, and as many rows
        absorbed = absorbed_shares(self.partition, self.for_rates)
        absorbed = np.maximum(absorbed, 1.0 - between / np.maximum(self.tally.counts, 1))
        return np.where(between < self.tally.counts, distance + absorbed, distance)

    def margin(
        self, curve: Pieces, grid: Grid, averages: tuple[FloatArray, FloatArray], limits: Interval
    ) -> FloatArray:
        """How far the averages of a curve over plain rows and over the population can be apart, in
        each region.

        The sum of its steps times limits on the difference between the shares of rows below each
        cell in the sample and in the population. `averages` are those over the rows, and how far
        off they can be.
        """
        regions = self.partition.as_bins()
        on_curve = curve.averages(grid, regions)
        near = self._cell_distances(grid, curve.variation(regions), limits)
        far = on_curve.sums(on_curve.steps(*on_curve.ends(curve)) * near)
        margin = np.where(far > 0.0, far + 1e-12, 0.0) + averages[1]
        return np.asarray(np.minimum(margin, 1.0))

    def _cell_distances(self, grid: Grid, variation: FloatArray, limits: Interval) -> FloatArray:
        """How near the shares of plain rows of a region below each cell are to those of the
        population, at most.
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
        """How far averages over rows and population are apart, and limits on the rate less the
        average prediction.
        """
        if fitted.proved is not None:
            return fitted.proved.margin, fitted.proved.errors
        parts = fitted.parts
        variation = fitted.curve.variation(self.partition.as_bins())
        margin = variation * self.distances() + fitted.unknown if parts is None else parts.margin
        lower = limits.lower - fitted.average - margin
        upper = limits.upper - fitted.average + margin
        if parts is not None:
            both = np.maximum(lower, parts.lower) <= np.minimum(
                upper, parts.upper
            )  # or one of them has missed
            lower = np.where(both, np.maximum(lower, parts.lower), lower)
            upper = np.where(both, np.minimum(upper, parts.upper), upper)
        return margin, Interval(lower, upper)
