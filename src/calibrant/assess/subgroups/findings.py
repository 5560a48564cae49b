"""What was shown about subgroups, as numbers and in words; equivalent findings are merged."""

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from calibrant._typing import BoolArray, FloatArray
from calibrant.assess.subgroups.entries import SubgroupEntries
from calibrant.assess.subgroups.how_much import ProvedSize
from calibrant.text import numbers

TOO_LOW = "scores too low"
TOO_HIGH = "scores too high"
_Key: TypeAlias = tuple[int, bool]
"""The index of a subgroup, and whether its scores are too low."""
_CLEAR = 3.0  # standard deviations from which on an error is a finding of its own


@dataclass(frozen=True, slots=True)
class SubgroupFinding:
    """A subgroup whose scores are shown to be wrong.

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
        rows that it was tested on. 0 if only the direction is known, for some row of the subgroup.
    tested_rows : int
        The number of rows that `error` is about: a random half of the subgroup's rows; 0 if only
        the direction is known.
    tested_score : float or None
        Their mean score.
    rate_limit : float or None
        A lower bound on their mean rate if scores are too low, an upper bound if they are too high.
        None for a population, whose mean score is not known exactly: only the error is shown.
    also : tuple of str
        Other subgroups that are off in the same direction that this one explains.
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
    def short(self) -> str:
        """The finding in a few words, to follow "scores are"."""
        direction = self.direction.removeprefix("scores ")
        where = f"in {self.subgroup}"
        if self.tested_rows and self.target == "rows":
            where = f"in {self.tested_rows:,} tested rows of {self.subgroup}"
        if not self.error:
            return f"{direction} for some {where}"
        least = numbers.points(numbers.lower(self.error))
        return f"{direction} by at least {least} on average {where}"

    @property
    def text(self) -> str:
        """The finding in words, with what was seen."""
        predicted = numbers.per_cent(numbers.nearest(self.mean_score))
        observed = numbers.per_cent(numbers.nearest(self.rate))
        seen = f"model says {predicted}, happened {observed} in {numbers.rows(self.n_rows)}"
        return f"Scores are {self.short}{self._in_tested()} ({seen}){self._others()}."

    def _in_tested(self) -> str:
        """What the model says in the tested rows, beside the limit on their true rate."""
        if self.rate_limit is None or self.tested_score is None:
            return ""
        predicted = numbers.per_cent(numbers.nearest(self.tested_score))
        limit = f"at most {numbers.per_cent(numbers.upper(self.rate_limit))}"
        if self.direction == TOO_LOW:
            limit = f"at least {numbers.per_cent(numbers.lower(self.rate_limit))}"
        return f", where the model says {predicted} and the true rate is {limit}"

    def _others(self) -> str:
        if not self.also:
            return ""
        others = numbers.counted(len(self.also), "more subgroup is", "more subgroups are")
        such = "" if len(self.also) == 1 else "such as "
        return f"; {others} off in the same direction ({such}{self.also[0]})"

    def __str__(self) -> str:
        return self.text


def folded(
    entries: SubgroupEntries,
    which: BoolArray,
    sizes: list[ProvedSize],
    strength: FloatArray,
    variance: FloatArray,
    target: str,
) -> tuple[SubgroupFinding, ...]:
    """Everything that is shown, in as few findings as possible: the strongest first, with those
    that it explains.

    A finding explains others of the same direction if their rows outside of it, and outside of
    earlier findings, show no clear error: their label sum is within three standard deviations of
    what their scores predict. So parts of a subgroup, larger subgroups that contain it, and nearly
    the same rows defined by other attributes are reported as one. Everything that is merged is
    shown, too; this affects only the wording.

    Parameters
    ----------
    entries : SubgroupEntries
        The rows.
    which : bool array of shape (n_subgroups,)
        The subgroups that contain rows whose rate is off.
    sizes : list of ProvedSize
        The errors shown.
    strength : float array of shape (n_subgroups,)
        The strength of the evidence against each subgroup.
    variance : float array
        The expected variance of each entry's label minus score.
    target : {"rows", "population"}
        Whether the errors shown are about the tested rows or their population.
    """
    family = entries.family
    surplus = entries.surplus
    averages = entries.averages()
    largest: dict[_Key, ProvedSize] = {}
    for one in sorted(sizes, key=lambda one: one.error):
        largest[one.subgroup, one.too_low] = one
    found_off = np.flatnonzero(which).tolist()
    sides = [(number, bool(averages[1][number] > averages[0][number])) for number in found_off]
    keys = list(dict.fromkeys([*largest, *sides]))
    keys.sort(key=lambda key: (key not in largest, -strength[key[0]], key))
    outside = {side: np.ones(family.n_rows, dtype=bool) for side in (True, False)}
    found = []
    while keys:
        leader = number, too_low = keys.pop(0)
        outside[too_low] &= ~family.members(number)
        left = family.sums(np.where(outside[too_low], surplus, 0.0)) * (1.0 if too_low else -1.0)
        spread = np.sqrt(family.sums(np.where(outside[too_low], variance, 0.0)))
        explained = left <= _CLEAR * spread
        together = [key for key in keys if key[1] == too_low and explained[key[0]]]
        keys = [key for key in keys if key not in together]
        size = largest.get(leader)
        finding = SubgroupFinding(
            subgroup=family.words(number),
            direction=TOO_LOW if too_low else TOO_HIGH,
            n_rows=int(family.counts[number]),
            mean_score=float(averages[0][number]),
            rate=float(averages[1][number]),
            error=0.0,
            also=tuple(family.words(other) for other, _ in together),
            target=target,
        )
        if size is not None:
            finding = replace(
                finding,
                error=size.error,
                tested_rows=size.n_rows,
                tested_score=size.mean_score,
                rate_limit=size.rate_limit if target == "rows" else None,
            )
        found.append(finding)
    return tuple(found)
