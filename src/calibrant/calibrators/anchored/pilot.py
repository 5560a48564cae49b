"""How an error budget is shared among regions by a guess, and what a model without pilot rows keeps
of its proof.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import ndtr

from calibrant._typing import FloatArray
from calibrant.errors import InvalidValueError
from calibrant.params.declared_state import Saved
from calibrant.params.kind import EntryTable, Known
from calibrant.params.state_kinds import Maybe, Numbers

_EVEN = 0.25  # of the budget: what is shared evenly, for any guess
_BISECTIONS = 40


@dataclass(frozen=True, eq=False)
class Parts(Saved):
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

    _entries: ClassVar[EntryTable] = {
        "margin": Numbers("proof.tally.n_regions", 0.0, 1.0),
        "lower": Numbers("proof.tally.n_regions", -1.0, 1.0),
        "upper": Numbers("proof.tally.n_regions", -1.0, 1.0),
        "shares": Maybe(Numbers("proof.tally.n_regions", 0.0, 1.0)),
    }

    shares: FloatArray | None
    margin: FloatArray
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def without_guess(cls, margin: FloatArray) -> Self:
        """No guess and no bets: the budget is shared evenly."""
        return cls(None, margin, np.full(margin.size, -1.0), np.full(margin.size, 1.0))

    def _check_state(self, known: Known) -> None:
        if self.shares is not None and self.shares.sum() > 1.0 + 1e-9:
            raise InvalidValueError("shares", "add up to at most 1", got=f"{self.shares.sum():g}")


def even_widths(errors: FloatArray, alpha: float) -> FloatArray:
    """Parts of a budget with which intervals of these standard errors are equally wide.

    Some of it is shared evenly.
    """
    low = 0.0
    high = 40.0 * float(errors.max())
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if 2.0 * ndtr(-middle / errors).sum() > alpha else (low, middle)
    wanted = ndtr(-high / errors) + 1e-300
    shares: FloatArray = (1.0 - _EVEN) * wanted / wanted.sum() + _EVEN / errors.size
    return shares
