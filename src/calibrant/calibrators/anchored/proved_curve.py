"""What bets prove of a curve: limits on its average error and on the rate in every region, with
absorbed edges.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.calibrators.anchored.curve_bounds import CurveBounds
from calibrant.cells.partition import Partition
from calibrant.errors import InvalidValueError
from calibrant.guarantee.absorbed import absorbed_shares
from calibrant.limits.interval import Interval, PairOfLimits
from calibrant.params.declared_state import Saved
from calibrant.params.kind import EntryTable
from calibrant.params.state_kinds import Constant, Numbers

THEOREM = (
    "Ville's inequality for bets on labels less a first curve, and on what the curves of two halves"
    " add to it, by Sidak over regions"
)
THEOREM_OF_UNITS = (
    "Ville's inequality for bets on labels less a first curve, and on what the curves of two halves "
    "add to it, each bet on a whole group or a row with its weight, by Bonferroni over regions"
)
RULE = 2
"""Number of the rule by which the limits were found; files without it have those of an earlier one.
"""
_ROUNDING = 1e-9  # what limits may differ by on another machine
_LEAST = 0.5  # of the narrowest limits that counts allow in theory: what is accepted in a file


@dataclass(frozen=True, eq=False)
class ProvedCurve(Saved):
    """Limits that hold at once.

    Attributes
    ----------
    errors : Interval
        The rate less the average prediction, in each region.
    rates : Interval
        The rate of each region.
    margin : float array of shape (n_regions,)
        How far the average prediction can be from that over the counted rows.
    """

    _entries: ClassVar[EntryTable] = {
        "rule": Constant(RULE),
        "errors": PairOfLimits("proof.tally.n_regions", low=-1.0),
        "rates": PairOfLimits("proof.tally.n_regions"),
        "margin": Numbers("proof.tally.n_regions", 0.0, 1.0),
    }

    errors: Interval
    rates: Interval
    margin: FloatArray

    @classmethod
    def of(cls, bounds: CurveBounds, curve: FloatArray, partition: Partition, alpha: float) -> Self:
        """What follows for a curve at knots.

        The bounds are about the rows strictly between edges. Where a bin absorbs a tied edge v, at
        most the share q of it lies at v, at a cost that `alpha` includes. With limits [l1, u1]
        between and [l2, u2] at v, the bin's are [min(l1, (1 - q) l1 + q l2), max(u1, (1 - q) u1 + q
        u2)]. The rate at v may be anything.
        """
        errors = bounds.errors(curve)
        rates = bounds.rates(curve, errors)
        off = bounds.off(curve)
        low, high = bounds.evidence.ends(curve)
        margin = np.where(bounds.evidence.rows > 0, off, high - low)
        if partition.has_absorbed:
            share = absorbed_shares(partition, alpha)
            at_edge = curve[bounds.evidence.knots.starts[:-1]]
            errors = _mixed(errors, Interval(-at_edge, 1.0 - at_edge), share)
            rates = _mixed(rates, Interval(np.zeros(share.size), np.ones(share.size)), share)
            margin = margin + share * (high - low)
        return cls(errors, rates, np.minimum(margin, 1.0))

    def check(self, counts: IntArray, alpha: float) -> None:
        """Raise an error for limits that are narrower than any rows could make them.

        Notes
        -----
        With outcomes z_i in [a, b] of mean z, a bet against m < z that cannot lose more than it has
        multiplies the capital by 1 + lam (z_i - m), lam <= 1 / (m - a). Its mean factor is at most
        (z - a) / (m - a), and so the capital reaches 1 / d in n rows only if z - m >= (z - a) (1 -
        d^(1 / n)). Both sides together leave at least (b - a) (1 - d^(1 / n)), and labels less a
        curve have b - a >= 1. Exact limits of a rate leave as much. Half of that is asked for.
        """
        least = _LEAST * -np.expm1(np.log(alpha / 2.0) / np.maximum(counts, 1))
        for name, limits in (("errors", self.errors), ("rates", self.rates)):
            width = limits.upper - limits.lower
            short = np.flatnonzero(width < least * (1.0 - _ROUNDING) - _ROUNDING)
            if short.size:
                region = int(short[0])
                rule = (
                    f"leave at least {least[region]:.3g} in region {region}: its counts prove no"
                    " more"
                )
                raise InvalidValueError(f"{name} of the curve", rule, got=f"{width[region]:.3g}")


def _mixed(between: Interval, at_edge: Interval, share: FloatArray) -> Interval:
    """Limits of a mixture with an unknown share of the second, at most `share`."""
    lower = np.minimum(between.lower, (1.0 - share) * between.lower + share * at_edge.lower)
    upper = np.maximum(between.upper, (1.0 - share) * between.upper + share * at_edge.upper)
    return Interval(lower, upper)
