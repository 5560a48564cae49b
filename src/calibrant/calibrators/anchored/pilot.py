"""What rows that are not counted decide: a first curve, and which regions need most of the error budget."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import ndtr

from calibrant._typing import FloatArray
from calibrant.calibrators.anchored.curve_choice import first_curve
from calibrant.calibrators.anchored.fine_cells import Grid
from calibrant.calibrators.anchored.pieces import Pieces
from calibrant.calibrators.curves.distinct_scores import DistinctScores
from calibrant.cells.bins import Bins
from calibrant.cells.tally import Tally
from calibrant.errors import InvalidValueError
from calibrant.guarantee.absorbed import ABSORBED_SHARE
from calibrant.limits.bounded_mean import fixed_bets
from calibrant.limits.interval import Interval
from calibrant.params.rules import check_state
from calibrant.params.saved_state import read_numbers

_FEWEST_ROWS = 20  # with fewer rows there is no first curve
_MOST_KNOTS = 64  # of the first curve in a segment
_WIDE = 0.25  # a region in which the first curve rises by more has bets on it
_EVEN = 0.25  # of the budget: what is shared evenly, for any guess
_GUESSED = 20.0  # rows that the first curve counts for beside those of a region
_BISECTIONS = 40
_MIXES = (0.25, 0.5, 0.75, 1.0)  # weights of the bets beside the limits of the rate


def look_knots(scores: FloatArray) -> FloatArray:
    """Scores at which the first curve bends: rows at even ranks, and the ends of [0, 1]."""
    ordered = np.sort(scores.astype(np.float64) + 0.0)
    if ordered.size > _MOST_KNOTS:
        ordered = ordered[np.linspace(0, ordered.size - 1, _MOST_KNOTS).round().astype(np.intp)]
    ends = (0.0, 1.0) if ordered.size and ordered[0] >= 0.0 and ordered[-1] <= 1.0 else ()
    return np.unique(np.append(ordered, ends))


@dataclass(frozen=True, eq=False)
class Beforehand:
    """A guess that no counted row has a part in, and the parts of the error budget that follow from it.

    Attributes
    ----------
    curve : Pieces or None
        The first curve, if there is one.
    rates, bets : float arrays
        Parts of the budget of rates: for the limits on the rate of each region, and for bets on labels less the first
        curve, which are made where that is steep. They add up to 1.
    distance : float array
        Parts of the budget of distances, which add up to 1.
    variance : float array
        What the variance of labels less the first curve is in each region, by the guess.
    """

    curve: Pieces | None
    rates: FloatArray
    bets: FloatArray
    distance: FloatArray
    variance: FloatArray

    @classmethod
    def guessed(cls, regions: Bins, knots: list[FloatArray], drawn: list[FloatArray], look: Grid, tally: Tally,
                alpha: float) -> Self:  # fmt: skip
        """The guess of rows that were drawn; none where they are too few."""
        if look.rows.sum() < _FEWEST_ROWS:
            return cls.even(regions.n_regions)
        values = first_curve(_drawn_rows(knots, drawn, look))
        curve = Pieces.through(
            regions,
            [x if x.size else np.zeros(1) for x in knots],
            [np.maximum.accumulate(values(x)) if x.size else np.full(1, 0.5) for x in knots],
        )
        found, size = curve.averages(look, regions), regions.n_regions
        rows, positives = found.sums(look.rows), found.sums(look.positives)
        average, _ = found.of(curve)
        rate = (positives + _GUESSED * average) / (rows + _GUESSED)
        seen = np.maximum(tally.counts, 1)
        shares = even_widths(np.sqrt(rate * (1.0 - rate) / seen + 1.0 / seen**2), alpha)
        rise = curve.variation(regions)
        wide = (rise > _WIDE) & (tally.counts > 1) & (not regions.has_absorbed)
        at = (curve.left + (curve.right - curve.left) * 0.5)[found.piece]
        variance = (found.sums(look.rows * at * (1.0 - at)) + rate * (1.0 - rate)) / (rows + 1.0)
        square = rise**2 + 1e-9
        distance = (1.0 - _EVEN) * square / square.sum() + _EVEN / size
        return cls(curve, np.where(wide, shares / 2, shares), np.where(wide, shares / 2, 0.0), distance, variance)

    @classmethod
    def even(cls, n_regions: int) -> Self:
        """No guess: every region has the same part, and there are no bets."""
        shares, none = np.full(n_regions, 1.0 / n_regions), np.zeros(n_regions)
        return cls(None, shares, none, shares, none)

    @property
    def shares(self) -> FloatArray | None:
        """Parts of the budget of rates, or None without a guess."""
        return None if self.curve is None else self.rates

    def parts(self, moved: Pieces, grid: Grid, averages: tuple[FloatArray, FloatArray], regions: Bins, alpha: float,
              near: FloatArray, limits: Interval) -> "Parts":  # fmt: skip
        """Limits on the rate less the average of the curve, from bets on labels less the first curve.

        -1 and 1 in regions without bets. With the first curve h0, the final curve h, and any c between 0 and 1,
        the mean of y - h is 1 - c times the rate, plus c times the mean of y - h0, less the mean of h - c h0. The
        `limits` bound the first, the bets the second. The third is known up to the sum of its steps times `near`,
        a limit on the difference between the shares of rows below each cell in the sample and in the population.
        """
        on_curve, size = moved.averages(grid, regions), regions.n_regions
        final, region = on_curve.ends(moved), on_curve.region

        def off(begin: FloatArray, end: FloatArray) -> FloatArray:
            far = on_curve.sums(on_curve.steps(begin, end) * near)
            return np.where(far > 0.0, far + 1e-12, 0.0)

        margin, wide = off(*final), self.bets > 0.0
        lower, upper = np.full((2, size), [[-1.0], [1.0]])
        if self.curve is not None and wide.any():
            found = self.curve.averages(grid, regions)
            first = found.ends(self.curve)
            used = np.flatnonzero((region >= 0) & (grid.rows > 0) & wide[region])
            low, high = np.minimum(*first)[used], np.maximum(*first)[used]
            positives = grid.positives[used]
            least, most = self.curve.range(regions)
            kept = np.log1p(-alpha * (1.0 - ABSORBED_SHARE))
            ends = fixed_bets(
                np.concatenate([1.0 - high, -high]),
                np.concatenate([1.0 - low, -low]),
                np.concatenate([positives, grid.rows[used] - positives]),
                np.concatenate([region[used], region[used]]),
                (-most, 1.0 - least),
                self.variance,
                np.where(wide, np.exp(kept * self.rates) * -np.expm1(kept * self.bets), 1.0),
            )
            average, unknown = found.of(self.curve)
            for share in _MIXES:
                apart = averages[0] - share * average
                steps = off(final[0] - share * first[0], final[1] - share * first[1])
                slack = steps + averages[1] + share * unknown
                low = (1.0 - share) * limits.lower + share * ends[0] - apart - slack
                high = (1.0 - share) * limits.upper + share * ends[1] - apart + slack
                lower[wide] = np.maximum(lower, low)[wide]
                upper[wide] = np.minimum(upper, high)[wide]
        return Parts(self.shares, np.minimum(margin + averages[1], 1.0), lower, upper)


@dataclass(frozen=True, eq=False)
class Parts:
    """How the budget of rates was shared among regions, and what else a model keeps of its proof.

    Attributes
    ----------
    shares : float array, or None
        Parts of the budget of rates; None if they are equal.
    margin : float array
        How far the average prediction of each region can be from that over its rows.
    lower, upper : float arrays
        Limits on the rate less the average prediction, found by bets.
    """

    shares: FloatArray | None
    margin: FloatArray
    lower: FloatArray
    upper: FloatArray

    def state(self) -> dict[str, Any]:
        """As plain JSON values."""
        limits = {name: getattr(self, name).tolist() for name in ("margin", "lower", "upper")}
        return {**limits, "shares": None if self.shares is None else self.shares.tolist()}

    @classmethod
    def read(cls, state: Any, n_regions: int) -> Self | None:
        """Read back what `state` gave; None of a model without it."""
        if state is None:
            return None
        check_state(state, ("shares", "margin", "lower", "upper"))

        def read(name: str, low: float) -> FloatArray:
            return read_numbers(state[name], name, size=n_regions, low=low, high=1.0)

        shares = None if state["shares"] is None else read("shares", 0.0)
        if shares is not None and shares.sum() > 1.0 + 1e-9:
            raise InvalidValueError("shares", "add up to at most 1", got=f"{shares.sum():g}")
        return cls(shares, read("margin", 0.0), read("lower", -1.0), read("upper", -1.0))


def _drawn_rows(knots: list[FloatArray], drawn: list[FloatArray], look: Grid) -> DistinctScores:
    """Drawn rows between neighbouring knots as one score, their mean; their labels are those of the grid's cells."""
    scores, rows, positives = [], [], []
    for number, (x, values) in enumerate(zip(knots, drawn, strict=True)):
        if not x.size:
            continue
        here = (look.segment == number) & (look.rows > 0)
        place = np.maximum(np.searchsorted(x, look.begin[here], side="right") - 1, 0)
        rows.append(np.bincount(place, look.rows[here], x.size))
        positives.append(np.bincount(place, look.positives[here], x.size))
        within = np.searchsorted(x, values, side="right") - 1
        beyond = np.bincount(within, values - x[within], x.size)
        scores.append(x + beyond / np.maximum(np.bincount(within, minlength=x.size), 1))
    found, place = np.unique(np.concatenate(scores), return_inverse=True)
    counts, hits = (np.bincount(place, np.concatenate(values)) for values in (rows, positives))
    return DistinctScores(found[counts > 0], counts[counts > 0], hits[counts > 0])


def even_widths(errors: FloatArray, alpha: float) -> FloatArray:
    """Parts of a budget with which intervals of these standard errors are equally wide; some of it is shared evenly."""
    low, high = 0.0, 40.0 * float(errors.max())
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if 2.0 * ndtr(-middle / errors).sum() > alpha else (low, middle)
    wanted = ndtr(-high / errors) + 1e-300
    shares: FloatArray = (1.0 - _EVEN) * wanted / wanted.sum() + _EVEN / errors.size
    return shares
