"""Bets on individual draws, optionally weighted, such as sums over whole groups.

The bets, stakes and goal are those of `calibrant.limits.bet_walk`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibrant._typing import FloatArray
from calibrant.limits.bet_walk import STEPS, lower_limits
from calibrant.limits.block_bets import (
    GUESS_DRAWS,
    MOMENTS,
    Bets,
    block_sizes,
    late_sizes,
    moments_of,
)

_UNKNOWN_VARIANCE = 0.01  # over the squared range: the variance assumed without a guess
_UNKNOWN_DRAWS = 2.0  # draws that this assumption counts as
_PILOT_FROM = 1000  # with this many draws and no guess, the first only estimate the variance
_PILOT_PART = 50  # one draw in so many is used for that and not bet on
_MOST_PILOT_DRAWS = 32
_AT_ONCE = 64  # samples whose bets are placed together
_EXACT_DRAWS = 2048  # the last draws, whose capital is computed exactly


@dataclass(frozen=True, slots=True, eq=False)
class BetUnits:
    """Independent draws of one region, in an order that does not depend on them.

    Attributes
    ----------
    values : float array of shape (n,)
        Numbers with a common mean. With weights, the limits are for E[w z] / E[w].
    low, high : float
        The range of the numbers; fixed without looking at these draws.
    variance : float, optional
        A guess at the variance of z, or of w (z - mean), made without these draws. A good guess
        narrows the limits; a bad one never invalidates them. None if nothing is known.
    weights : float array of shape (n,), optional
        The weight of each draw, in (0, 1]; for example the number of rows of a group over the
        largest number that counts.
    typical_weight : float
        A guess at the mean weight.
    """

    values: FloatArray
    low: float
    high: float
    variance: float | None = None
    weights: FloatArray | None = None
    typical_weight: float = 1.0

    @property
    def mirrored(self) -> "BetUnits":
        """The draws with opposite sign, which turns upper limits into lower ones."""
        return replace(self, values=-self.values, low=-self.high, high=-self.low)

    @property
    def guessed(self) -> tuple["BetUnits", float]:
        """Draws with a guess at the variance, and how many draws the guess counts as.

        If there is no guess and there are 1,000 draws or more, the first draws provide one and are
        not bet on.
        """
        if self.variance is not None:
            return self, GUESS_DRAWS
        n_draws = self.values.size
        n_pilot = min(n_draws // _PILOT_PART, _MOST_PILOT_DRAWS) if n_draws >= _PILOT_FROM else 0
        weights = np.ones(n_draws) if self.weights is None else self.weights
        prior = _UNKNOWN_DRAWS * _UNKNOWN_VARIANCE * (self.high - self.low) ** 2
        if not n_pilot:
            return replace(self, variance=prior / _UNKNOWN_DRAWS), _UNKNOWN_DRAWS
        first = self.values[:n_pilot]
        weight = weights[:n_pilot]
        mean = float(np.average(first, weights=weight))
        spread = float(((weight * (first - mean)) ** 2).sum())
        prior *= float((weight**2).mean())
        rest = replace(
            self,
            values=self.values[n_pilot:],
            weights=None if self.weights is None else weights[n_pilot:],
            variance=(prior + spread) / (_UNKNOWN_DRAWS + n_pilot),
            typical_weight=float(weight.mean()),
        )
        return rest, _UNKNOWN_DRAWS + n_pilot

    def bets(self, guess_draws: float, sizes: tuple[int, ...]) -> Bets:
        """The draws in the form the walk needs: one sample, with late blocks of these sizes."""
        values = np.clip(self.values - self.low, 0.0, self.high - self.low)
        weights = np.ones(values.size) if self.weights is None else self.weights
        n_late = sum(sizes)
        early = np.array(block_sizes(values.size, n_late), dtype=np.intp)
        n_early = int(early.sum())
        starts = np.cumsum(early) - early
        moments = np.zeros((len(MOMENTS), early.size, 1))
        smallest = np.empty((early.size, 1))
        heaviest = np.empty((early.size, 1))
        if early.size:
            sums = moments_of(weights[:n_early], values[:n_early])
            moments[..., 0] = np.add.reduceat(sums, starts, axis=1)
            smallest[:, 0] = np.minimum.reduceat(values[:n_early], starts)
            heaviest[:, 0] = np.maximum.reduceat(weights[:n_early], starts)
        missing = n_late - (values.size - n_early)
        numbers = (self.low, self.high - self.low, self.variance, self.typical_weight, guess_draws)
        return Bets(
            moments,
            smallest,
            heaviest,
            np.concatenate([np.zeros(missing), values[n_early:]])[:, None],
            np.concatenate([np.zeros(missing), weights[n_early:]])[:, None],
            np.array(sizes, dtype=np.intp),
            *(np.array([number], dtype=np.float64) for number in numbers),
        )


def goal_limits(units: BetUnits, tail: float) -> tuple[float, float]:
    """Limits for the mean of independent bounded numbers; each limit misses with probability at
    most `tail`.

    Parameters
    ----------
    units : BetUnits
        The draws.
    tail : float in (0, 1)
        Probability with which each of the two limits may miss.

    Returns
    -------
    lower, upper : float
        The range itself if there are no draws.

    Notes
    -----
    See `calibrant.limits.bet_walk` for the bets. *The range* limits what can be known. If all n
    numbers are equal to z, then a share e of unseen numbers at the lower end is compatible with
    them unless (1 - e)^n < `tail`: no method has a lower limit above z - (z - low) (1 -
    tail^(1/n)). The limits here come within a factor of about 1.1 of that.

    Examples
    --------
    >>> import numpy as np
    >>> units = BetUnits(np.tile([0.2, 0.3, 0.7], 100), 0.0, 1.0, variance=0.05)
    >>> lower, upper = goal_limits(units, 0.05)
    >>> round(lower, 2), round(upper, 2)
    (0.38, 0.43)
    """
    lower, upper = unit_limits([units], np.array([tail]))
    return float(lower[0]), float(upper[0])


def unit_limits(
    samples: Sequence[BetUnits], tail: FloatArray, steps: int = STEPS
) -> tuple[FloatArray, FloatArray]:
    """Limits as in `goal_limits` for many samples, each with its own tail."""
    lower = np.empty(len(samples))
    upper = np.empty(len(samples))
    for start in range(0, len(samples), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        known = [units.guessed for units in samples[some]]
        most = max(units.values.size for units, _ in known)
        sizes = late_sizes(min(max(most, 1), _EXACT_DRAWS))
        both = [units.bets(draws, sizes) for units, draws in known]
        both += [units.mirrored.bets(draws, sizes) for units, draws in known]
        found = lower_limits(Bets.joined(both), np.tile(tail[some], 2), steps)
        lower[some] = found[: len(known)]
        upper[some] = -found[len(known) :]
    return lower, upper
