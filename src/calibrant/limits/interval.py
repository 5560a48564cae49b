"""What every interval method returns, what the registry records about each method, and how narrow
limits can be, given the counts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.cells.tally import Tally
from calibrant.errors import InvalidValueError
from calibrant.params.declared_state import Saved
from calibrant.params.kind import EntryTable, Kind, Known
from calibrant.params.state_kinds import Numbers, Size, a_list


@dataclass(frozen=True, slots=True, eq=False)
class Interval(Saved):
    """Confidence limits on the mean of each region, valid for all regions simultaneously.

    Parameters
    ----------
    lower, upper : ndarray of float64, one entry per region
        0 <= lower <= upper <= 1.

    Examples
    --------
    >>> import numpy as np
    >>> interval = Interval(np.array([0.25]), np.array([0.75]))
    >>> interval.midpoint, interval.radius
    (array([0.5]), array([0.25]))
    """

    _entries: ClassVar[EntryTable] = {
        "lower": Numbers(size="n_regions", low=0.0, high=1.0),
        "upper": Numbers(size="n_regions", low=0.0, high=1.0),
    }

    lower: FloatArray
    upper: FloatArray

    def _check_state(self, known: Known) -> None:
        wrong = np.flatnonzero(self.lower > self.upper)
        if wrong.size:
            region = int(wrong[0])
            got = f"{self.lower[region]:g} and {self.upper[region]:g}"
            raise InvalidValueError("lower", "be at most upper", got=got)

    @property
    def midpoint(self) -> FloatArray:
        """The centre of each interval."""
        return self.lower + (self.upper - self.lower) / 2

    @property
    def radius(self) -> FloatArray:
        """Half of each interval's width."""
        return (self.upper - self.lower) / 2

    @classmethod
    def joined(cls, parts: Sequence[Interval]) -> Interval:
        """The limits of several sets of regions, one after another."""
        return cls(
            np.concatenate([part.lower for part in parts]),
            np.concatenate([part.upper for part in parts]),
        )

    def halves(self) -> tuple[Interval, Interval]:
        """The limits of the first half of the regions, and those of the second."""
        middle = self.lower.size // 2
        return (
            Interval(self.lower[:middle], self.upper[:middle]),
            Interval(self.lower[middle:], self.upper[middle:]),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Interval):
            return NotImplemented
        return np.array_equal(self.lower, other.lower) and np.array_equal(self.upper, other.upper)


@dataclass(frozen=True)
class PairOfLimits(Kind):
    """Limits stored as two lists, with values from `low` to 1."""

    size: Size = "n_regions"
    low: float = 0.0

    def written(self, value: Interval) -> list[list[float]]:
        """Return the lower and the upper limits as lists."""
        return [value.lower.tolist(), value.upper.tolist()]

    def read(self, value: Any, name: str, known: Known) -> Interval:
        """Return the limits; raise if a lower limit exceeds its upper limit."""
        sides = a_list(value, name, size=2)
        numbers = Numbers(self.size, self.low, 1.0)
        lower, upper = (numbers.read(side, name, known) for side in sides)
        if (lower > upper).any():
            raise InvalidValueError(name, "have lower limits that are at most the upper ones")
        return Interval(lower, upper)


@dataclass(frozen=True, slots=True)
class Method:
    """One method for turning a tally into simultaneous intervals, and the theorem behind it.

    Parameters
    ----------
    name : str
        The name of the method, as in the parameter ``interval``.
    function : callable
        ``function(tally, alpha)`` returns the `Interval` of all regions, which holds with
        probability at least 1 - alpha.
    theorem : str
        One line: the result behind the method.
    largest_radius : callable
        ``largest_radius(rows, most, alpha, n_regions)`` bounds the distance between a limit and the
        values "mean" and "jeffreys" of its region, if the region has at least `rows` rows and at
        most `most` positives; `plan` uses it.
    exact : bool
        Whether the limits invert the binomial distribution itself, rather than a bound on it.

    Examples
    --------
    >>> from calibrant.intervals import get_method
    >>> from calibrant import Tally
    >>> get_method("hoeffding")(Tally.from_counts([100], [50]), alpha=0.1).radius.round(4)
    array([0.1224])
    """

    name: str
    function: Callable[[Tally, float], Interval]
    theorem: str
    largest_radius: Callable[[int, int, float, int], float]
    exact: bool = False

    def __call__(self, tally: Tally, alpha: float) -> Interval:
        """Return the interval of every region, valid for all simultaneously with probability at
        least 1 - alpha.
        """
        return self.function(tally, alpha)


def around(center: FloatArray, radius: FloatArray) -> Interval:
    """Return [center - radius, center + radius] clipped to [0, 1]; [0, 1] where either is NaN, for
    regions without rows.
    """
    unknown = np.isnan(center) | np.isnan(radius)
    center = np.where(unknown, 0.5, center)
    radius = np.where(unknown, 1.0, radius)
    return outwards(center - radius, center + radius)


def outwards(lower: FloatArray, upper: FloatArray) -> Interval:
    """Round limits outwards, so that rounding cannot make an interval narrower than its formula."""
    with np.errstate(under="ignore"):  # numpy reports an underflow next to 0
        lower = np.nextafter(lower, -np.inf)
        upper = np.nextafter(upper, np.inf)
    return Interval(np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0))


_ROUNDING = 1e-9  # how much limits may differ on another machine
_SHARE = 0.5  # of the narrowest theoretically possible limits: accepted in a file


def check_widths(limits: Mapping[str, Interval], counts: IntArray, alpha: float, of: str) -> None:
    """Raise an error for limits that are narrower than any rows could make them.

    Notes
    -----
    With outcomes z_i in [a, b] of mean z, a bet against m < z that cannot lose more than it has
    multiplies the capital by 1 + lam (z_i - m), lam <= 1 / (m - a). Its mean factor is at most (z -
    a) / (m - a), and so the capital reaches 1 / d in n rows only if z - m >= (z - a) (1 - d^(1 /
    n)). Both sides together leave at least (b - a) (1 - d^(1 / n)), and labels minus a prediction
    have b - a >= 1. Exact limits on a rate leave as much. Fewer bets, on whole groups or with
    weights up to 1, leave more. Half of that is required.
    """
    # the largest share of a population of which n rows have nothing, with probability alpha / 2
    unseen = -np.expm1(np.log(alpha / 2.0) / np.maximum(counts, 1))
    for name, interval in limits.items():
        check_width(f"{name} of {of}", interval.upper - interval.lower, _SHARE * unseen)


def check_width(name: str, width: FloatArray, least: FloatArray) -> None:
    """Raise an error if the width of a region is less than the smallest possible one."""
    short = np.flatnonzero(width < least * (1.0 - _ROUNDING) - _ROUNDING)
    if short.size:
        region = int(short[0])
        rule = f"leave at least {least[region]:.3g} in region {region}: its counts show no more"
        raise InvalidValueError(name, rule, got=f"{width[region]:.3g}")
