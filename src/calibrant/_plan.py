"""How many labels a target epsilon needs, and which epsilon a number of labels gives."""

import math
from dataclasses import dataclass

import numpy as np

from calibrant._input import shown
from calibrant._numbers import percent, upper
from calibrant._params import FRACTION_OR_COUNT, check_bins, check_choice, check_int, check_open_unit, error_budget
from calibrant._text import Setting
from calibrant._typing import FloatArray, IntArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.intervals import METHODS, get_method
from calibrant.partition.scores import edge_ranks
from calibrant.tally import Tally

_LARGEST_PLAN = 10**12
_INTERVALS = tuple(name for name in METHODS if name != "umd")  # its limits need the sizes of all bins
_SECTIONS = 12  # counts of positives that one step of the search for the worst case tries


@dataclass(frozen=True, slots=True)
class Plan:
    """A number of labels, and the epsilon that it gives.

    Attributes
    ----------
    n : int
        Rows with labels, including those that are only used to cut bins.
    epsilon : float
        In every bin at once, the true rate is within epsilon of the predicted probability.
    confidence_level, n_bins, interval :
        As given.
    rows_per_bin : int
        Rows in the smallest bin.
    base_rate : float or None
        Overall rate of positives, as given; None for the worst case.
    split : float, int or None
        Fraction or number of rows that are only used to cut bins.
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
        bins = "1 bin" if self.n_bins == 1 else f"{self.n_bins:,} bins of at least {self.rows_per_bin:,}"
        claim = f"epsilon {upper(self.epsilon)} at {percent(self.confidence_level)} confidence"
        rates = "for any rates," if self.base_rate is None else f"if {percent(self.base_rate)} of rows are positive and"
        ties = "if no scores are tied" if self.base_rate is None else "no scores are tied"
        return f"{self.n:,} labels, in {bins}, give {claim}, {rates} {ties}."


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
    """Return the number of labels needed for a target epsilon, or the epsilon that a number of labels gives.

    The answer comes from the intervals themselves, not from a formula. It is for quantile bins and `value="mean"`.

    Parameters
    ----------
    epsilon : float, optional
        The target. Give either this or `n`.
    n : int, optional
        Number of labels. Give either this or `epsilon`.
    confidence_level : float, default=0.9
        Confidence that epsilon holds in all bins at once.
    n_bins : int, default=10
        Number of bins.
    base_rate : float, optional
        Overall rate of positives. None plans for the worst case over all rates and counts of positives, so a fit is
        sure to give this epsilon. With a base rate p, the rate of a bin of equal mass is at most n_bins * p. The plan
        is then for a bin with that rate, or 1/2 if that is less, and with the expected number of positives in it.
    interval : str, default="clopper-pearson"
        As in `BinningCalibrator`.
    split : float or int, optional
        Fraction or number of rows that are only used to cut bins. The size of the smallest bin then follows from
        `thm:data_dep_partition`: for continuous scores, if at least 5.18 B ln(2B / alpha) rows cut the bins, then with
        probability 1 - alpha it holds at least m / 2B - sqrt(m ln(2B / alpha) / 2) of the m other rows. Without a split
        the counts are known exactly for continuous scores.

    Examples
    --------
    >>> from calibrant import plan
    >>> print(plan(epsilon=0.05, n_bins=10))  # doctest: +NORMALIZE_WHITESPACE
    6,759 labels, in 10 bins of at least 675, give epsilon 0.05 at 90% confidence, for any rates, if no scores are
    tied.
    >>> round(plan(n=10_000, n_bins=10).epsilon, 4)
    0.041
    """
    if (epsilon is None) == (n is None):
        raise InvalidTypeError("epsilon", "be given if n is not, and only then", got="neither" if n is None else "both")
    check_open_unit("confidence_level", confidence_level)
    n_bins = check_bins(n_bins)
    if base_rate is not None:
        base_rate = check_open_unit("base_rate", base_rate)
    check_choice("interval", interval, _INTERVALS)
    question = _Question(confidence_level, n_bins, interval, base_rate, split)
    if epsilon is not None:
        return question.answer(_smallest(question, check_open_unit("epsilon", epsilon)))
    n = check_int("n", n, minimum=1)
    if n > _LARGEST_PLAN:
        raise InvalidValueError("n", f"be at most {_LARGEST_PLAN:,}", got=str(n))
    return question.answer(n)


@dataclass(frozen=True, slots=True)
class _Question:
    confidence_level: float
    n_bins: int
    interval: str
    base_rate: float | None
    split: float | None

    def answer(self, n: int) -> Plan:
        rows = self.rows_in_smallest_bin(n)
        epsilon = self.epsilon_of(rows)
        return Plan(n, epsilon, self.confidence_level, self.n_bins, self.interval, rows, self.base_rate, self.split)

    def rows_in_smallest_bin(self, n: int) -> int:
        if self.split is not None:
            return self._split_rows(n)
        if n < self.n_bins:
            raise InvalidValueError("n", ("be at least ", Setting("n_bins", self.n_bins)), got=str(n))
        ranks = np.concatenate([[0], edge_ranks(n, self.n_bins), [n + 1]])
        return int(np.diff(ranks).min()) - 1

    def _split_rows(self, n: int) -> int:
        part = FRACTION_OR_COUNT.check("split", self.split)
        cutting = part if isinstance(part, int) else round(part * n)
        counting = n - cutting
        log_term = math.log(2 * self.n_bins / error_budget(self.confidence_level))
        needed = math.ceil(self.n_bins * log_term / (math.log(2) - 0.5))
        if counting <= 0 or cutting < needed:
            return 0
        return max(0, math.floor(counting / (2 * self.n_bins) - math.sqrt(counting * log_term / 2)))

    def epsilon_of(self, rows: int) -> float:
        """Largest distance between a limit and the observed rate, for a bin of `rows` rows."""
        if rows == 0:
            return 0.5
        if self.base_rate is not None:
            rarer = min(self.base_rate, 1 - self.base_rate)
            expected = math.ceil(rows * min(0.5, self.n_bins * rarer))
            return float(self._radii(np.array([expected]), rows)[0])
        return self._worst_radius(rows)

    def _worst_radius(self, rows: int) -> float:
        """Largest radius over all counts of positives. It is symmetric about rows / 2 and has one peak on each side."""
        low, high = 0, rows // 2
        while True:
            positives = np.unique(np.linspace(low, high, _SECTIONS).astype(np.int64))
            radii = self._radii(positives, rows)
            best = int(radii.argmax())
            if high - low < _SECTIONS:
                return float(radii[best])
            low, high = int(positives[max(best - 1, 0)]), int(positives[min(best + 1, positives.size - 1)])

    def _radii(self, positives: IntArray, rows: int) -> FloatArray:
        """Radius for each number of positives, where `n_bins` bins share the error budget."""
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
        return question.epsilon_of(question.rows_in_smallest_bin(n)) <= epsilon

    low = max(1, question.n_bins)
    if enough(low):
        return low
    high = 2 * low
    while not enough(high):
        low, high = high, 2 * high
        if high > _LARGEST_PLAN:
            rule = f"be so large that {_LARGEST_PLAN:,} labels are enough"
            raise InvalidValueError("epsilon", rule, got=shown(epsilon))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
