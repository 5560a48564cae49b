"""What is kept and saved of a fitted curve: its pieces, and limits by bets."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant._typing import FloatArray, IntArray
from calibrant.calibrators.curve.pieces import ROUNDING, Pieces
from calibrant.errors import InvalidValueError
from calibrant.limits.interval import Interval, PairOfLimits, check_widths
from calibrant.params.declared_state import Inline, Saved
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.rules import TEXT, Integer
from calibrant.params.state_kinds import Numbers

THEOREM = (
    "Ville's inequality for bets on labels minus a first curve, and on what the curves of two halves"
    " add to it, by Sidak over regions"
)
THEOREM_OF_UNITS = (
    "Ville's inequality for bets on labels minus a first curve, and on what the curves of two halves "
    "add to it, each bet on a whole group or a row with its weight, by Bonferroni over regions"
)


@dataclass(frozen=True, eq=False)
class FittedCurve(Saved):
    """A fitted curve, shifted where the data refute it, and limits by bets, which hold
    simultaneously; see `CurveBounds.limits_of`.

    Attributes
    ----------
    name : str
        The name of the curve.
    curve : Pieces
        The curve.
    average : float array of shape (n_regions,)
        Its average over the counted rows of each region.
    n_shifted : int
        The number of regions where it was shifted into the limits on the rate.
    errors : Interval
        The rate minus the average prediction, in each region.
    rates : Interval
        The rate of each region.
    margin : float array of shape (n_regions,)
        The largest distance between the average prediction and that over the counted rows.
    """

    _entries: ClassVar[EntryTable] = {
        "name": TEXT,
        "shifted": Entry(Integer(0), of="n_shifted"),
        "curve": Inline(Pieces),
        "average": Numbers("proof.tally.n_regions", 0.0, 1.0),
        "errors": PairOfLimits("proof.tally.n_regions", low=-1.0),
        "rates": PairOfLimits("proof.tally.n_regions"),
        "margin": Numbers("proof.tally.n_regions", 0.0, 1.0),
    }

    name: str
    curve: Pieces
    average: FloatArray
    n_shifted: int
    errors: Interval
    rates: Interval
    margin: FloatArray

    def _check_state(self, known: Known) -> None:
        low, high = self.curve.range(known["proof"].partition.as_bins())
        outside = (self.average < low - ROUNDING) | (self.average > high + ROUNDING)
        if outside.any():
            rule = "lie between the smallest and the largest value of the curve"
            raise InvalidValueError("average", rule)

    def check(self, counts: IntArray, alpha: float) -> None:
        """Raise an error for limits that are narrower than any rows could make them."""
        check_widths({"errors": self.errors, "rates": self.rates}, counts, alpha, "the curve")
