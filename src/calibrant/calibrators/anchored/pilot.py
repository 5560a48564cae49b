"""How an error budget is shared among regions by a guess, and what a model without pilot rows keeps
of its proof.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import ndtr

from calibrant._typing import FloatArray
from calibrant.errors import InvalidValueError
from calibrant.params.rules import check_state
from calibrant.params.saved_state import read_numbers

_EVEN = 0.25  # of the budget: what is shared evenly, for any guess
_BISECTIONS = 40


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

    @classmethod
    def without_guess(cls, margin: FloatArray) -> Self:
        """No guess and no bets: the budget is shared evenly."""
        return cls(None, margin, np.full(margin.size, -1.0), np.full(margin.size, 1.0))

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
