"""The frequency of the positive class: limits from counts, and from unlabelled scores."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, logit

from calibrant._typing import CodeArray, FloatArray
from calibrant.cells.tally import Tally
from calibrant.errors import InvalidValueError
from calibrant.limits.clopper_pearson import clopper_pearson
from calibrant.params.declared_state import Saved
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.rules import Number
from calibrant.params.state_kinds import Listed, Maybe

_ADVICE = "use ShiftCalibrator, or label rows of the target population"

_SHARE = Number("a number from 0 to 1", 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Prior(Saved):
    """The frequency of the positive class: the value used, and its limits.

    All three are equal if it is known.
    """

    _entries: ClassVar[EntryTable] = {"value": _SHARE, "lower": _SHARE, "upper": _SHARE}

    value: float
    lower: float
    upper: float

    @classmethod
    def known(cls, value: float | tuple[float, float]) -> "Prior":
        """A known prior, or one known to lie between two limits; then the value is midway between
        their logits.
        """
        if isinstance(value, float | int):
            return cls(value, value, value)
        low, high = value
        return cls(float(expit((logit(low) + logit(high)) / 2)), low, high)

    @classmethod
    def from_labels(cls, codes: CodeArray, alpha: float) -> "Prior":
        """Exact binomial limits from labels coded as 0 and 1."""
        limits = clopper_pearson(Tally.from_counts([codes.size], [int(codes.sum())]), alpha)
        return cls(float(codes.mean()), float(limits.lower[0]), float(limits.upper[0]))

    def _check_state(self, known: Known) -> None:
        if not self.lower <= self.value <= self.upper:
            rule = f"be between its limits, {self.lower:g} and {self.upper:g}"
            raise InvalidValueError("prior", rule, got=f"{self.value:g}")

    def check_given(self, given: float | tuple[float, float] | None) -> None:
        """Raise an error unless it equals the parameter, if that was set."""
        if given is None:
            return
        wanted = type(self).known(given)
        if (self.lower, self.upper) != (wanted.lower, wanted.upper):
            got = f"limits {self.lower:g} and {self.upper:g}"
            raise InvalidValueError("prior", f"be the parameter, {given}", got=got)


@dataclass(frozen=True, slots=True)
class Priors(Saved):
    """The frequency of the positive class in the source and in the target, and where it moves.

    Attributes
    ----------
    source, target : Prior
    moved : Prior or None
        The frequency in the target if it were 1/2 in the source: its odds are the factor by which odds
        change. None if the factor follows from the two others.
    """

    _entries: ClassVar[EntryTable] = {
        "s": Entry(Listed(Prior), of="source"),
        "t": Entry(Listed(Prior), of="target"),
        "m": Entry(Maybe(Listed(Prior)), of="moved"),
    }

    source: Prior
    target: Prior
    moved: Prior | None = None

    @property
    def factors(self) -> dict[str, float]:
        """The factors by which the odds of values and limits are multiplied."""
        moved = self.moved
        if moved is not None:
            return {name: odds_ratio(getattr(moved, name), 0.5) for name in Prior._entries}
        return {
            "value": odds_ratio(self.target.value, self.source.value),
            "lower": odds_ratio(self.target.lower, self.source.upper),
            "upper": odds_ratio(self.target.upper, self.source.lower),
        }


def mixture_prior(
    scores: FloatArray, codes: CodeArray, target_scores: FloatArray, alpha: float
) -> Prior:
    """Return the value and limits of the share p for which target scores can be a mixture p F1 + (1
    - p) F0.

    The limits contain the true share with probability at least 1 - alpha. They are [0, 1] if a
    class was not seen.
    """
    ones = np.sort(scores[codes == 1])
    zeros = np.sort(scores[codes == 0])
    moved = np.sort(target_scores)
    if not moved.size:
        raise InvalidValueError("target_scores", "have at least one row", got="none")
    if not ones.size or not zeros.size:
        return Prior(0.5, 0.0, 1.0)
    at = np.unique(np.concatenate([ones, zeros, moved]))
    f1, f0, f = (
        np.searchsorted(part, at, side="right") / part.size for part in (ones, zeros, moved)
    )
    e1, e0, e = (np.sqrt(np.log(6.0 / alpha) / (2.0 * part.size)) for part in (ones, zeros, moved))
    # |f - f0 - p (f1 - f0)| <= e + e0 + p (e1 - e0): two inequalities, both linear in p
    lower = 0.0
    upper = 1.0
    for sign in (1.0, -1.0):
        # p slope >= rest
        slope = sign * (f1 - f0) + (e1 - e0)
        rest = sign * (f - f0) - (e + e0)
        rising = slope > 0.0
        falling = slope < 0.0
        lower = max(lower, float(np.max(rest[rising] / slope[rising], initial=0.0)))
        upper = min(upper, float(np.min(rest[falling] / slope[falling], initial=1.0)))
        if (rest[slope == 0.0] > 0.0).any():
            lower = 1.0
            upper = 0.0
    if lower > upper:
        rule = "be distributed like a mixture of the scores of both classes"
        got = "scores that are not, for any share: this is not label shift"
        raise InvalidValueError("target_scores", rule, got=got, advice=_ADVICE)
    gap = f1 - f0
    nearest = float(gap @ (f - f0)) / max(float(gap @ gap), np.finfo(np.float64).tiny)
    return Prior(min(max(nearest, lower), upper), lower, upper)


def odds_ratio(target: float, source: float) -> float:
    """The odds of one share over those of another; infinite if nothing bounds them."""
    above = target * (1.0 - source)
    below = source * (1.0 - target)
    return above / below if below > 0.0 else np.inf


def share_of(odds: float) -> float:
    """The share that has these odds."""
    return 1.0 if odds == np.inf else odds / (1.0 + odds)


def moved_odds(rates: FloatArray, factor: float) -> FloatArray:
    """Rates with odds multiplied by `factor`; 0 and 1 stay unchanged."""
    if factor == np.inf:
        return np.where(rates > 0.0, 1.0, 0.0)
    moved = np.where(rates < 1.0, 0.0, 1.0)
    np.divide(
        factor * rates,
        factor * rates + (1.0 - rates),
        out=moved,
        where=(rates < 1.0) & (rates > 0.0),
    )
    return moved
