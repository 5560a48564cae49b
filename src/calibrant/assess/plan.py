"""How many labels a target epsilon needs, and which epsilon a number of labels gives."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom

from calibrant._typing import FloatArray, IntArray
from calibrant.assess._fewest_labels import LARGEST_PLAN, fewest
from calibrant.assess._relative_plan import in_factors, limits_at
from calibrant.calibrators.regions.binned_rows import look_size
from calibrant.calibrators.regions.grouped_rows import groups_set_aside
from calibrant.cells.score_partition import edge_ranks
from calibrant.cells.tally import Tally
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee.absorbed import ABSORBED_SHARE
from calibrant.guarantee.relative import RARE
from calibrant.limits.interval import Interval
from calibrant.limits.mass import budgets
from calibrant.limits.methods import METHODS, get_method
from calibrant.params.rules import (
    FRACTION_OR_COUNT,
    OPEN_UNIT,
    Choice,
    Integer,
    Number,
    Only,
    Optional,
    check_bins,
    error_budget,
)
from calibrant.text.numbers import nearest, percent, plain, upper
from calibrant.text.result import Result
from calibrant.text.sentences import Setting, words

_PLANNED = "BinningCalibrator"
_NAMED = Setting("method", "binning", python=_PLANNED)
_INTERVALS = tuple(name for name, method in METHODS.items() if method.largest_radius is not None)
_FIRST_TRIED = 12  # counts of positives; they show which others need not be tried
_MOST_TRIED = 4_000  # counts of positives that are tried one by one; for more, a bound is used
_ROUNDING = 1e-10
_CORRELATION = Number("a number from 0 to 1", 0.0, 1.0)


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Result):
    """A number of labels, and the epsilon that it gives a `BinningCalibrator`.

    Attributes
    ----------
    n : int
        Rows with labels, those that only cut bins included.
    epsilon : float
        A fit gives at most this: in every bin at once, the true rate is within epsilon of the
        predicted probability.
    rows_per_bin : int
        Rows in the smallest bin.
    confidence_level, n_bins, interval, pilot :
        As given.
    base_rate : float or None
        Overall rate of positives, as given; None for the worst case.
    probability : float
        The probability that a fit gives at most `epsilon`: 1 without a base rate, pilot rows and
        groups, else as given.
    group_size, icc : int and float, or None
        Rows of each group, and the correlation of labels within a group, as given; None for
        independent rows.
    calibrator : str
        The calibrator that the plan is for, "BinningCalibrator". The epsilon of
        `AnchoredCalibrator` is usually larger.
    """

    _also: ClassVar[tuple[str, ...]] = ("design_effect",)

    n: int
    epsilon: float
    rows_per_bin: int
    confidence_level: float
    n_bins: int
    interval: str
    base_rate: float | None
    pilot: float | int | str | None
    probability: float
    group_size: int | None = None
    icc: float | None = None
    calibrator: str = words((_NAMED,))

    @property
    def relative(self) -> Interval | None:
        """Limits on the true rate divided by the prediction, in a bin of `rows_per_bin` rows with
        the base rate.

        They are those of a bin in which that share of rows is positive. None for a base rate of 5 %
        or more, without one, and with groups.
        """
        if self.base_rate is None or self.base_rate >= RARE or self.group_size is not None:
            return None
        return limits_at(
            self.base_rate, self.rows_per_bin, self.n_bins, self.interval, self.confidence_level
        )

    @property
    def design_effect(self) -> float:
        """How many times larger variances are than those of independent rows: 1 + (group_size - 1)
        icc.
        """
        return (
            1.0
            if self.group_size is None or self.icc is None
            else 1.0 + (self.group_size - 1) * self.icc
        )

    @property
    def sentence(self) -> str:
        """The plan in words, which name the calibrator that it is for."""
        bins = (
            "1 bin"
            if self.n_bins == 1
            else f"{self.n_bins:,} bins of at least {self.rows_per_bin:,}"
        )
        claim = f"epsilon {upper(self.epsilon)} at {percent(self.confidence_level)} confidence"
        how_likely = (
            ""
            if self.probability == 1.0
            else f" with probability at least {percent(self.probability)}"
        )
        rates = "for any rates, if"
        if self.base_rate is not None:
            rates = f"if {percent(self.base_rate)} of rows are positive and"
        if self.group_size is not None:
            groups = f"in {self.n // self.group_size:,} groups of {self.group_size:,}"
            alike = (
                f"at an intra-cluster correlation of {self.icc:g} (design effect"
                f" {nearest(self.design_effect, 2)})"
            )
            return words(
                (
                    f"{self.n:,} labels {groups}, {alike}, give ",
                    _NAMED,
                    f" about {claim}{how_likely}.",
                )
            )
        given = (
            f", in {bins}, {claim}{how_likely}, {rates} no scores are"
            f" tied.{in_factors(self.relative, self.base_rate)}"
        )
        return words((f"{self.n:,} labels give ", _NAMED, given))

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain JSON values."""
        limits = self.relative
        relative = None if limits is None else plain([limits.lower[0], limits.upper[0]])
        return {**Result.to_dict(self), "relative": relative}


def plan(
    *,
    epsilon: float | None = None,
    n: int | None = None,
    confidence_level: float = 0.9,
    n_bins: int = 10,
    base_rate: float | None = None,
    interval: str = "clopper-pearson",
    pilot: float | int | str | None = "auto",
    probability: float = 0.9,
    group_size: int | None = None,
    icc: float | None = None,
) -> Plan:
    """Return how many labels a `BinningCalibrator` needs for a target epsilon, or the epsilon that
    it reaches.

    Claimed, for `BinningCalibrator` with quantile bins, `value="jeffreys"` or "mean", and scores
    without ties: a fit of `n` rows has at most the planned epsilon. Without `base_rate` and a
    number as `pilot` this is sure. With them, it holds with at least the stated `probability`,
    because the number of positives, or of rows in a bin, is random. Assumed then: rows are
    independent draws, and the base rate is as given. Other calibrators are not covered; the epsilon
    of `AnchoredCalibrator` is usually larger.

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
        Overall rate of positives. None plans for the worst case over all counts of positives. With
        a base rate, the number of positives is binomial. The plan is for the worst case in which no
        bin has more positives than the `probability` quantile of that number, or that without a
        base rate if it is better. For rates above 1/2, read negatives for positives.
    interval : str, default="clopper-pearson"
        As in `BinningCalibrator`.
    pilot : "auto", None, float or int, default="auto"
        As in `BinningCalibrator`. "auto" sets aside the rows that are looked at for ties. A
        fraction or number of rows is only used to cut bins. The size of the smallest bin is then
        random. By `thm:data_dep_partition`, for continuous scores, if at least 5.18 B ln(2B / t)
        rows cut the bins, then with probability 1 - t it holds at least m / 2B - sqrt(m ln(2B / t)
        / 2) of the m other rows. With "auto" and None the counts are known exactly.
    probability : float, default=0.9
        How likely the plan must be to succeed, with `base_rate` or `pilot`. The numbers that are
        random share the rest equally: of positives, of rows in a bin, of rows that a fraction
        draws.
    group_size : int, optional
        Rows of each group, where rows are grouped; see `BinningCalibrator.fit`. `n` is a
        multiple of it.
    icc : float in [0, 1], optional
        Intra-cluster correlation of the labels, to be given with `group_size`: 0 for independent
        rows, 1 for groups whose rows all have one label. A fit reports
        ``guarantee_.design_effect``, which is 1 + (group_size - 1) icc.

    Notes
    -----
    With groups the plan is an estimate and no proof, because limits depend on how alike the rows of
    a group turn out to be. It is for rows of a group that share a bin, the worst case. With N
    groups in the smallest bin, m rows each, a design effect D and L = ln(2 B / alpha), epsilon is
    about sqrt(2 L p (1 - p) D / (N m)) + L / (3 N). The smallest bin has about N = (C / B) exp(-z
    sqrt(B / A + B / C)) groups, where A groups cut the bins, C are counted, and z is the quantile
    of the normal law that B bins keep with the stated probability.

    `AnchoredCalibrator` on as many rows and regions, from 1,000 to 10,000 rows, in simulations: its
    epsilon was 0.84 to 1.6 times that of the plan where the rate clearly rises or falls with the
    score, up to 2.1 times where it hardly depends on it, and up to 2.9 times where it goes up and
    down. A curve that keeps the ranking cannot follow the noise of regions, or such a rate.

    The largest epsilon is not monotone in the number of rows of a bin, because counts are whole
    numbers. So every size that a bin can have, and every count of positives that a bound does not
    rule out, is tried. Where that would be more than 4,000 counts, or where pilot rows leave the
    sizes open, the bound itself is used. It only falls as a bin grows. For the limits of Clopper
    and Pearson, and Blaker's inside them, it follows from Zubkov and Serov (2013): P(X <= k) <=
    Phi(-sqrt(2 N kl((k + 1) / N, q))). So the radius is at most 1 / N plus the largest q - p with
    kl(p, q) <= z^2 / (2N). With a target, `n` is enough although `n` - 1 is not.

    References
    ----------
    Zubkov and Serov (2013), "A complete proof of universal inequalities for the distribution
    function of the binomial law", Theory of Probability and its Applications 57.

    Examples
    --------
    >>> from calibrant import plan
    >>> print(plan(epsilon=0.05, n_bins=10))  # doctest: +NORMALIZE_WHITESPACE
    7,240 labels give BinningCalibrator, in 10 bins of at least 687, epsilon 0.05 at 90% confidence, for any rates, if
    no scores are tied.
    >>> plan(n=10_000, n_bins=10).epsilon <= 0.0423
    True
    >>> print(plan(epsilon=0.1, n_bins=5, group_size=10, icc=0.3))  # doctest: +NORMALIZE_WHITESPACE
    10,210 labels in 1,021 groups of 10, at an intra-cluster correlation of 0.3 (design effect 3.7), give
    BinningCalibrator about epsilon 0.1 at 90% confidence with probability at least 90%.
    """  # noqa: E501
    if (epsilon is None) == (n is None):
        raise InvalidTypeError(
            "epsilon", "be given if n is not, and only then", got="neither" if n is None else "both"
        )
    confidence_level = OPEN_UNIT.check("confidence_level", confidence_level)
    n_bins = check_bins(n_bins)
    base_rate = Optional(OPEN_UNIT).check("base_rate", base_rate)
    Choice(_INTERVALS).check("interval", interval)
    pilot = Optional(FRACTION_OR_COUNT | Only("auto")).check("pilot", pilot)
    probability = OPEN_UNIT.check("probability", probability)
    if (group_size is None) != (icc is None):
        raise InvalidTypeError(
            "icc", ("be given with ", Setting("group_size"), ", and only then"), got=repr(icc)
        )
    settings = (confidence_level, n_bins, interval, base_rate, pilot)
    question = _Question(*settings, probability)
    size = 1
    if group_size is not None and icc is not None:
        size = Integer(1).check("group_size", group_size)
        correlation = _CORRELATION.check("icc", icc)
        question = _GroupQuestion(*settings, probability, size, correlation)
        if pilot is None or interval != _INTERVALS[0]:
            name, got = ("pilot", "None") if pilot is None else ("interval", repr(interval))
            raise InvalidValueError(name, "be left as it is with groups", got=got)
    elif base_rate is None and pilot in (None, "auto"):
        question = replace(question, probability=1.0)  # nothing is random
    if epsilon is not None:
        target = OPEN_UNIT.check("epsilon", epsilon)
        return question.answer(
            fewest(lambda number: question.enough(number, target), n_bins, target)
        )
    n = Integer(1).check("n", n)
    if not size <= n <= LARGEST_PLAN:
        rule = f"be {'at most' if size == 1 else 'from group_size to'} {LARGEST_PLAN:,}"
        raise InvalidValueError("n", rule, got=str(n))
    return question.answer(n // size)


@dataclass(frozen=True, slots=True)
class _Question:
    confidence_level: float
    n_bins: int
    interval: str
    base_rate: float | None
    pilot: float | int | str | None
    probability: float

    def answer(self, n: int) -> Plan:
        epsilon, smallest = min(
            (way._epsilon(way._sizes(n)), way._sizes(n).smallest) for way in self._ways
        )
        return Plan(n, epsilon, smallest, **asdict(self))

    def enough(self, n: int, epsilon: float) -> bool:
        return any(way._epsilon(way._sizes(n), epsilon) <= epsilon for way in self._ways)

    @property
    def _ways(self) -> "tuple[_Question, ...]":
        """The question with its base rate, and without: no plan depends on rows, so that the better
        one may be taken.

        A base rate can cost more than it gives: the number of positives is one more thing that may
        go wrong, so that less of what may go wrong is left for the sizes of bins.
        """
        return (self,) if self.base_rate is None else (self, replace(self, base_rate=None))

    @property
    def _alpha(self) -> float:
        """What the limits on rates may miss."""
        alpha = budgets(error_budget(self.confidence_level))[0]
        return alpha * (1.0 - ABSORBED_SHARE) if self.pilot == "auto" and self.n_bins > 1 else alpha

    @property
    def _share(self) -> float:
        """What each random number may go wrong with: of positives, of rows in a bin, of rows that
        cut the bins.
        """
        drawn = 0 if self.pilot in (None, "auto") else 1 + isinstance(self.pilot, float)
        events = (self.base_rate is not None) + drawn
        return error_budget(self.probability) / max(events, 1)

    def _sizes(self, n: int) -> "_Sizes":
        if self.pilot is None or isinstance(self.pilot, str):
            if n < self.n_bins:
                raise InvalidValueError(
                    "n", ("be at least ", Setting("n_bins", self.n_bins)), got=str(n)
                )
            if self.pilot == "auto":
                n -= look_size(n, self.n_bins)
            ranks = np.concatenate([[0], edge_ranks(n, self.n_bins), [n + 1]])
            sizes = np.unique(np.diff(ranks) - 1).tolist()
            return _Sizes(sizes[0], sizes, n)
        fewest = most = int(self.pilot)
        if isinstance(self.pilot, float):  # each row is drawn with this probability
            fewest, most = (
                int(binom.ppf(tail, n, self.pilot))
                for tail in (self._share / 2, 1 - self._share / 2)
            )
        log_term = math.log(2 * self.n_bins / self._share)
        needed = math.ceil(self.n_bins * log_term / (math.log(2) - 0.5))
        counting = n - most
        if counting <= 0 or fewest < needed:
            return _Sizes(0, [], max(n - fewest, 0))
        smallest = math.floor(counting / (2 * self.n_bins) - math.sqrt(counting * log_term / 2))
        return _Sizes(max(0, smallest), [], n - fewest)

    def _epsilon(self, sizes: "_Sizes", target: float = 0.0) -> float:
        """Largest distance between a limit and the observed rate.

        Near enough to compare it with a target.
        """
        most = sizes.counted
        if self.base_rate is not None:
            rarer = min(self.base_rate, 1.0 - self.base_rate)
            most = int(binom.ppf(1.0 - self._share, sizes.counted, rarer))
        if not sizes.known:
            return self._bound(sizes.smallest, most)
        counts = {rows: min(most, rows // 2) for rows in sizes.known if rows}
        best = self._first_tried(counts) if counts else 0.0
        best = best if sizes.smallest else max(best, 0.5)  # of an empty bin
        if best > target > 0.0:
            return best
        bound = self._bound(sizes.smallest, most)
        if bound <= target:
            return bound
        for rows, largest in counts.items():
            best = self._largest_radius(rows, largest, best)
        return best

    def _first_tried(self, counts: dict[int, int]) -> float:
        """Largest radius over a few counts of positives, from none to as many as a bin of each size
        can have.
        """
        some = {
            rows: np.unique(np.linspace(0, most, _FIRST_TRIED).astype(np.int64))
            for rows, most in counts.items()
        }
        sizes = np.repeat(list(some), [len(positives) for positives in some.values()])
        return float(self._radii(np.concatenate(list(some.values())), sizes).max())

    def _bound(self, rows: int, most: int) -> float:
        """An upper bound for the radius of every bin with at least `rows` rows and at most `most`
        positives.
        """
        bound = get_method(self.interval).largest_radius
        return (
            1.0
            if rows == 0 or bound is None
            else min(1.0, bound(rows, most, self._alpha, self.n_bins))
        )

    def _largest_radius(self, rows: int, most: int, best: float) -> float:
        """Largest of `best` and the radii over all counts of positives up to `most`, or as many of
        the other class.
        """
        if best >= self._bound(rows, most):
            return best
        # smaller counts have smaller bounds
        ruled_out = -1
        left = most
        while left - ruled_out > 1:
            middle = (ruled_out + left) // 2
            ruled_out, left = (
                (middle, left) if self._bound(rows, middle) <= best else (ruled_out, middle)
            )
        if most - ruled_out > _MOST_TRIED:
            return self._bound(rows, most)
        positives = np.arange(left, most + 1)
        return max(best, float(self._radii(positives, np.full(positives.size, rows)).max()))

    def _radii(self, positives: IntArray, rows: IntArray) -> FloatArray:
        """Radius for each number of positives among so many rows, at the level that each of
        `n_bins` bins has.
        """
        alpha = self._alpha
        method = get_method(self.interval)
        # many regions at once, with an alpha that gives each the same level
        log_rest = math.log1p(-alpha)
        most = int(self.n_bins * (-20.0 / log_rest if method.exact else 0.9 / alpha))
        size = max(self.n_bins, min(most, positives.size))
        alpha = (
            -math.expm1(log_rest * (size / self.n_bins))
            if method.exact
            else alpha * (size / self.n_bins)
        )
        radii = []
        for start in range(0, positives.size, size):
            batch, n = (
                np.resize(values[start : start + size], size) for values in (positives, rows)
            )
            limits = method(Tally.from_counts(n, batch), alpha)
            values = np.array(
                [batch / n, (batch + 0.5) / (n + 1)]
            )  # of both values that are planned for
            radii.append(
                np.maximum(limits.upper - values.min(axis=0), values.max(axis=0) - limits.lower)
            )
        return np.minimum(np.concatenate(radii) * (1.0 + _ROUNDING), 1.0)


@dataclass(frozen=True, slots=True)
class _GroupQuestion(_Question):
    """The same for rows with groups; `n` is a number of groups."""

    group_size: int
    icc: float

    def answer(self, n: int) -> Plan:
        epsilon, smallest = self._of_groups(n)
        return Plan(n * self.group_size, epsilon, int(smallest * self.group_size), **asdict(self))

    def enough(self, n: int, epsilon: float) -> bool:
        return self._of_groups(n)[0] <= epsilon

    def _of_groups(self, n_groups: int) -> tuple[float, float]:
        """About how large epsilon is, and how many groups the smallest bin has."""
        bins = self.n_bins
        if n_groups <= bins:
            return 1.0, 0.0
        if isinstance(self.pilot, str):
            aside = groups_set_aside(n_groups, bins)
        else:
            aside = (
                round(self.pilot * n_groups)
                if isinstance(self.pilot, float)
                else int(self.pilot or 0)
            )
        counted = n_groups - aside
        if counted <= 0 or (aside <= 0 and bins > 1):
            return 1.0, 0.0
        quantile = float(ndtri(1.0 - error_budget(self.probability) / bins))
        spread = quantile * math.sqrt(bins / aside + bins / counted) if bins > 1 else 0.0
        smallest = counted / bins * math.exp(-spread)
        if smallest < 1.0:
            return 1.0, max(smallest, 0.0)
        rate = (
            0.5
            if self.base_rate is None
            else min(min(self.base_rate, 1.0 - self.base_rate) * bins, 0.5)
        )
        log_term = math.log(2.0 * bins / error_budget(self.confidence_level))
        effect = 1.0 + (self.group_size - 1) * self.icc
        variance = rate * (1.0 - rate) * effect / (smallest * self.group_size)
        return (
            min(1.0, math.sqrt(2.0 * log_term * variance) + log_term / (3.0 * smallest)),
            smallest,
        )


class _Sizes(NamedTuple):
    """Rows of the smallest bin; all sizes that bins have, where these are known.

    And how many rows are counted.
    """

    smallest: int
    known: list[int]
    counted: int
