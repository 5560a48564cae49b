"""What is proved about subgroups, as numbers and in words; equivalent findings are merged."""

from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np

from calibrant._typing import BoolArray, FloatArray
from calibrant.assess.subgroups.how_much import ProvedSize
from calibrant.cells.subgroup_family import SubgroupFamily
from calibrant.guarantee.relative import RARE
from calibrant.text import numbers

TOO_LOW = "scores too low"
TOO_HIGH = "scores too high"
_Key: TypeAlias = tuple[int, bool]
"""The index of a subgroup, and whether its scores are too low."""
_LARGE_RATIO = 1000.0  # of true to predicted rate: larger ratios are not reported
_CLEAR = 3.0  # standard deviations from which on an error is a finding of its own


@dataclass(frozen=True, slots=True)
class SubgroupFinding:
    """A subgroup whose scores are proved wrong.

    Attributes
    ----------
    subgroup : str
        The subgroup in words, such as "sex = f, age 61 to 74".
    direction : str
        "scores too low" or "scores too high".
    n_rows : int
        The number of its rows.
    mean_score, rate : float
        Their mean score and their observed rate.
    error : float
        A lower bound on the error: the mean of rate minus score, or of score minus rate, over the
        rows that it was tested on. 0 if only the direction is proved, for some row of the subgroup.
    tested_rows : int
        The number of rows that `error` is about: a random half of the subgroup's rows; 0 if only
        the direction is proved.
    tested_score : float or None
        Their mean score.
    rate_limit : float or None
        A lower bound on their mean rate if scores are too low, an upper bound if they are too high.
        None for a population, whose mean score is not known exactly: only the error is proved.
    also : tuple of str
        Other subgroups proved wrong in the same direction that this one explains.
    target : {"rows", "population"}
        Whether `error` is about the tested rows or their population.
    """

    subgroup: str
    direction: str
    n_rows: int
    mean_score: float
    rate: float
    error: float
    tested_rows: int = 0
    tested_score: float | None = None
    rate_limit: float | None = None
    also: tuple[str, ...] = ()
    target: str = "rows"

    @property
    def ratio_limit(self) -> float | None:
        """A lower or upper bound on the ratio of true to predicted rate; None if none is proved."""
        if self.rate_limit is None or not self.tested_score:
            return None
        return self.rate_limit / self.tested_score

    @property
    def text(self) -> str:
        """The finding in words."""
        return f"In {self.clause}."

    @property
    def clause(self) -> str:
        """The finding in words, to follow the word "in" within a sentence."""
        score = numbers.nearest(self.mean_score)
        seen = f"predicted {score}, observed rate {numbers.nearest(self.rate)}"
        where = f"{self.subgroup} ({seen} in {numbers.rows(self.n_rows)})"
        return f"{where}, {self._proved()}{self._others()}"

    def _proved(self) -> str:
        too_low = self.direction == TOO_LOW
        if self.tested_score is None:
            side = "above" if too_low else "below"
            return f"some rows have a true rate {side} their score"
        limit = self.rate_limit
        if limit is None:
            side = "higher" if too_low else "lower"
            return f"the true rate is {side} by at least {numbers.lower(self.error)}"
        at_limit = (
            f"at least {numbers.lower(limit)}" if too_low else f"at most {numbers.upper(limit)}"
        )
        rows = numbers.rows(self.tested_rows)
        tested = f"the {rows} tested (predicted {numbers.nearest(self.tested_score)})"
        return f"{tested} have a true rate of {at_limit}{self._ratio()}"

    def _ratio(self) -> str:
        ratio = self.ratio_limit
        if ratio is None or self.tested_score is None or self.tested_score >= RARE:
            return ""
        if self.direction == TOO_LOW:
            return f", at least {numbers.lower(min(ratio, _LARGE_RATIO))} times as large"
        return f", at most {numbers.upper(ratio)} times as large"

    def _others(self) -> str:
        if not self.also:
            return ""
        verb = "is" if len(self.also) == 1 else "are"
        more = f"{numbers.counted(len(self.also), 'more subgroup')} {verb} proved to be off"
        such_as = "" if len(self.also) == 1 else "such as "
        return f"; {more} in the same direction ({such_as}{self.also[0]})"

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """The weighted mean score and rate of each subgroup.

    Attributes
    ----------
    mean_score, rate : float arrays of shape (n_subgroups,)
        Weighted means over rows; NaN if the total weight is 0.
    """

    mean_score: FloatArray
    rate: FloatArray

    @classmethod
    def of(
        cls, family: SubgroupFamily, scores: FloatArray, labels: FloatArray, weights: FloatArray
    ) -> Self:
        """Weighted means over the rows of each subgroup."""
        total = family.sums(weights)
        some = np.where(total > 0.0, total, np.nan)
        return cls(family.sums(weights * scores) / some, family.sums(weights * labels) / some)


@dataclass(frozen=True, slots=True, eq=False)
class Proofs:
    """Everything that was proved, before it is put into words.

    Attributes
    ----------
    which : bool array of shape (n_subgroups,)
        The subgroups that contain rows whose rate is off.
    sizes : list of ProvedSize
        The proved errors.
    strength : float array of shape (n_subgroups,)
        The strength of the evidence against each subgroup.
    surplus, variance : float arrays of shape (n,)
        Label minus score of each row, times its weight, and its expected variance.
    """

    which: BoolArray
    sizes: list[ProvedSize]
    strength: FloatArray
    surplus: FloatArray
    variance: FloatArray

    def largest(self) -> dict[_Key, ProvedSize]:
        """The largest proved error of each subgroup and side."""
        found: dict[_Key, ProvedSize] = {}
        for size in self.sizes:
            known = found.get((size.subgroup, size.too_low))
            if known is None or size.error > known.error:
                found[size.subgroup, size.too_low] = size
        return found


def folded(
    family: SubgroupFamily, observed: Observed, proofs: Proofs
) -> tuple[SubgroupFinding, ...]:
    """Everything that is proved, in as few findings as possible: the strongest first, with those
    that it explains.

    A finding explains others of the same direction if their rows outside of it, and outside of
    earlier findings, show no clear error: their label sum is within three standard deviations of
    what their scores predict. So parts of a subgroup, larger subgroups that contain it, and nearly
    the same rows defined by other attributes are reported as one. Everything that is merged is
    proved, too; this affects only the wording.
    """
    largest = proofs.largest()
    numbers_off = np.flatnonzero(proofs.which).tolist()
    sides = [
        (number, bool(observed.rate[number] > observed.mean_score[number]))
        for number in numbers_off
    ]
    keys = list(dict.fromkeys([*largest, *sides]))
    keys.sort(key=lambda key: (key not in largest, -proofs.strength[key[0]], key))
    outside = {True: np.ones(family.n_rows, dtype=bool), False: np.ones(family.n_rows, dtype=bool)}
    found = []
    while keys:
        leader = keys.pop(0)
        too_low = leader[1]
        outside[too_low] &= ~family.members(leader[0])
        left = family.sums(np.where(outside[too_low], proofs.surplus, 0.0)) * (
            1.0 if too_low else -1.0
        )
        spread = np.sqrt(family.sums(np.where(outside[too_low], proofs.variance, 0.0)))
        explained = left <= _CLEAR * spread
        together = [key for key in keys if key[1] == too_low and explained[key[0]]]
        keys = [key for key in keys if key not in together]
        found.append(_finding(family, observed, leader, largest.get(leader), together))
    return tuple(found)


def _finding(
    family: SubgroupFamily,
    observed: Observed,
    key: _Key,
    size: ProvedSize | None,
    together: list[_Key],
) -> SubgroupFinding:
    number, too_low = key
    return SubgroupFinding(
        subgroup=family.words(number),
        direction=TOO_LOW if too_low else TOO_HIGH,
        n_rows=int(family.counts[number]),
        mean_score=float(observed.mean_score[number]),
        rate=float(observed.rate[number]),
        error=0.0 if size is None else size.error,
        tested_rows=0 if size is None else size.n_rows,
        tested_score=None if size is None else size.mean_score,
        rate_limit=None if size is None else size.rate_limit,
        also=tuple(family.words(other) for other, _ in together),
    )
