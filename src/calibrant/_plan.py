"""How many labels a promise needs, and what promise a number of labels buys."""

import math
from dataclasses import dataclass

import numpy as np

from calibrant._params import FRACTION_OR_COUNT, check_bins, check_choice, check_int, check_open_unit, error_budget
from calibrant._typing import FloatArray, IntArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.intervals import get_method
from calibrant.partition.scores import edge_ranks
from calibrant.tally import Tally

_LARGEST_PLAN = 10**12
_SECTIONS = 12  # counts of positives tried at once in the search for the worst


@dataclass(frozen=True, slots=True)
class Plan:
    """Labels and the promise they buy.

    Attributes
    ----------
    n : int
        Rows with labels, those that only cut edges included.
    epsilon : float
        The promise: the true rate lies within it of the predicted probability, in every bin at once.
    confidence_level, n_bins, interval :
        As asked for.
    rows_per_bin : int
        Rows in the emptiest bin that the plan counts on.
    base_rate : float or None
        The stated overall rate of positives; None for the worst case.
    split : float, int or None
        Rows that only cut edges.
    """

    n: int
    epsilon: float
    confidence_level: float
    n_bins: int
    interval: str
    rows_per_bin: int
    base_rate: float | None
    split: float | None

    def __str__(self) -> str:
        rates = "whatever the rates" if self.base_rate is None else f"if {100 * self.base_rate:g}% of rows are positive"
        bins = "1 bin" if self.n_bins == 1 else f"{self.n_bins} bins of at least {self.rows_per_bin:,}"
        confidence = f"{100 * self.confidence_level:g}% confidence"
        given = f"{rates}, if no scores are tied" if self.base_rate is None else f"{rates} and no scores are tied"
        return f"{self.n:,} labels, in {bins}, give epsilon {self.epsilon:.4g} at {confidence}, {given}."


def plan(
    *,
    epsilon: float | None = None,
    n: int | None = None,
    confidence_level: float = 0.9,
    n_bins: int = 10,
    base_rate: float | None = None,
    interval: str = "clopper-pearson",
    split: float | None = None,
) -> Plan:
    """Return the labels needed for a target epsilon, or the epsilon that a number of labels buys.

    Searched with the exact intervals, not with a formula. For quantile bins and `value="mean"`.

    Parameters
    ----------
    epsilon : float, optional
        Target: give this or `n`.
    n : int, optional
        Number of labels: give this or `epsilon`.
    confidence_level : float, default=0.9
        Confidence that the promise holds in all bins at once.
    n_bins : int, default=10
        Number of bins.
    base_rate : float, optional
        Overall rate of positives. None plans for the worst case: any rates, any counts of positives, so epsilon is
        sure. With a base rate p, bins of equal mass can have rates of at most n_bins * p, and the plan is for a bin
        of that rate, or 1/2 if that is less, with the number of positives to expect in it.
    interval : str, default="clopper-pearson"
        As in `BinningCalibrator`.
    split : float or int, optional
        Fraction or number of rows that only cut edges. The emptiest bin is then planned by `thm:data_dep_partition`:
        with probability 1 - alpha it holds at least m / 2B - sqrt(m ln(2B / alpha) / 2) of the m other rows, provided
        at least 5.18 B ln(2B / alpha) rows cut the edges, for continuous scores. Without a split the counts are known
        exactly for continuous scores.

    Examples
    --------
    >>> from calibrant import plan
    >>> print(plan(epsilon=0.05, n_bins=10))  # doctest: +NORMALIZE_WHITESPACE
    6,759 labels, in 10 bins of at least 675, give epsilon 0.04998 at 90% confidence, whatever the rates, if no
    scores are tied.
    >>> round(plan(n=10_000, n_bins=10).epsilon, 4)
    0.041
    """
    if (epsilon is None) == (n is None):
        raise InvalidTypeError("epsilon or n must be given, not both; got " + ("neither" if n is None else "both"))
    check_open_unit("confidence_level", confidence_level)
    n_bins = check_bins(n_bins)
    if base_rate is not None:
        base_rate = check_open_unit("base_rate", base_rate)
    get_method(interval)
    if interval == "umd":
        check_choice("interval", interval, ("clopper-pearson", "blaker", "hoeffding", "empirical-bernstein", "kl"))
    question = _Question(confidence_level, n_bins, interval, base_rate, split)
    if epsilon is not None:
        return question.answer(_smallest(question, check_open_unit("epsilon", epsilon)))
    n = check_int("n", n, minimum=1)
    if n > _LARGEST_PLAN:
        raise InvalidValueError(f"n must be at most {_LARGEST_PLAN:.0e}; got {n}")
    return question.answer(n)


@dataclass(frozen=True, slots=True)
class _Question:
    confidence_level: float
    n_bins: int
    interval: str
    base_rate: float | None
    split: float | None

    def answer(self, n: int) -> Plan:
        rows = self.rows_in_emptiest_bin(n)
        epsilon = self.epsilon_of(rows)
        return Plan(n, epsilon, self.confidence_level, self.n_bins, self.interval, rows, self.base_rate, self.split)

    def rows_in_emptiest_bin(self, n: int) -> int:
        if self.split is not None:
            return self._split_rows(n)
        if n < self.n_bins:
            raise InvalidValueError(f"n must be at least n_bins={self.n_bins}; got {n}")
        ranks = np.concatenate([[0], edge_ranks(n, self.n_bins), [n + 1]])
        return int(np.diff(ranks).min()) - 1

    def _split_rows(self, n: int) -> int:
        split = self.split
        part = FRACTION_OR_COUNT.check("split", split)
        cutting = part if isinstance(part, int) else round(part * n)
        counting = n - cutting
        log_term = math.log(2 * self.n_bins / error_budget(self.confidence_level))
        needed = math.ceil(self.n_bins * log_term / (math.log(2) - 0.5))
        if counting <= 0 or cutting < needed:
            return 0
        return max(0, math.floor(counting / (2 * self.n_bins) - math.sqrt(counting * log_term / 2)))

    def epsilon_of(self, rows: int) -> float:
        """Largest distance of a limit from the observed rate, for `rows` rows in a bin."""
        if rows == 0:
            return 0.5
        if self.base_rate is not None:
            rarer = min(self.base_rate, 1 - self.base_rate)
            expected = math.ceil(rows * min(0.5, self.n_bins * rarer))
            return float(self._radii(np.array([expected]), rows)[0])
        return self._worst_radius(rows)

    def _worst_radius(self, rows: int) -> float:
        """Largest radius over all counts of positives: symmetric about rows / 2, and rising towards it to one peak."""
        low, high = 0, rows // 2
        while True:
            positives = np.unique(np.linspace(low, high, _SECTIONS).astype(np.int64))
            radii = self._radii(positives, rows)
            best = int(radii.argmax())
            if high - low < _SECTIONS:
                return float(radii[best])
            low, high = int(positives[max(best - 1, 0)]), int(positives[min(best + 1, positives.size - 1)])

    def _radii(self, positives: IntArray, rows: int) -> FloatArray:
        """Radius for each number of positives, at the level that each of `n_bins` bins gets."""
        alpha = error_budget(self.confidence_level)
        function = get_method(self.interval).function
        radii = np.empty(positives.size)
        counts = np.full(self.n_bins, rows, dtype=np.int64)
        for start in range(0, positives.size, self.n_bins):
            batch = positives[start : start + self.n_bins]
            padded = np.resize(batch, self.n_bins)
            limits = function(Tally.from_counts(counts, padded), alpha)
            rates = padded / rows
            radius = np.maximum(limits.upper - rates, rates - limits.lower)
            radii[start : start + batch.size] = radius[: batch.size]
        return radii


def _smallest(question: _Question, epsilon: float) -> int:
    """Smallest n whose epsilon is at most the target, by doubling and bisection."""

    def enough(n: int) -> bool:
        return question.epsilon_of(question.rows_in_emptiest_bin(n)) <= epsilon

    low = max(1, question.n_bins)
    if enough(low):
        return low
    high = 2 * low
    while not enough(high):
        low, high = high, 2 * high
        if high > _LARGEST_PLAN:
            raise InvalidValueError(
                f"epsilon must be reachable with at most {_LARGEST_PLAN:.0e} labels; got {epsilon!r}"
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
