"""Rows in overlapping subgroups, from which every question about them is answered.

*Is any subgroup off?* The largest surprise over all subgroups is compared with that of labels drawn
from the scores. *Which?* By exact tails of the label sum if every row's rate is its score.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._typing import BoolArray, CodeArray, FloatArray, IndexArray
from calibrant.cells.score_kinds import N_KINDS, kinds_of
from calibrant.cells.subgroup_family import SubgroupFamily
from calibrant.limits.error_budget import even_width_tails
from calibrant.limits.interval import Interval
from calibrant.limits.non_identical import non_identical
from calibrant.limits.poisson_binomial import log_tail_bound, lower_tail, upper_tail
from calibrant.params.random import RandomSource
from calibrant.sample.progress import watched

_SMALL_SKEW = 1e-6
_ROUNDING = 1e-9  # of the mean scores of counted rows
_NEAR = 4.0  # in log units: a bound that misses the level by more is not followed up
_ROUNDING_OF_MEANS = 1e-10  # of mean scores
_MOST_EXACT = (
    200_000  # largest subgroup whose tail is computed exactly; beyond, a bound is close enough
)


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """The distribution of the label sum of each subgroup if every row's rate is its score.

    Attributes
    ----------
    total : float array of shape (n_subgroups,)
        Sums of scores, the expected sums of labels.
    variance : float array of shape (n_subgroups,)
        Sums of s (1 - s), the variances of the sums of labels.
    skew : float array of shape (n_subgroups,)
        Sums of s (1 - s) (1 - 2 s) over the variances: third over second cumulants, from -1 to 1.
    """

    total: FloatArray
    variance: FloatArray
    skew: FloatArray

    def surprise(self, positives: FloatArray) -> FloatArray:
        """About -log P of this many positive labels or more, or of this few or fewer, for each
        subgroup (the last axis).

        It uses a Poisson variable with the same variance and skewness: (v / b^2) h(b x / v), h(u) =
        (1 + u) log(1 + u) - u, with x the distance from the expected sum, and x^2 / (2 v) as b goes
        to 0. For rare labels, plain x^2 / (2 v) would let the smallest subgroups mask all others.
        It is a statistic; no proof relies on its shape. Infinite if scores that are all 0 or 1 are
        contradicted.
        """
        distance = positives - self.total
        variance = np.where(self.variance > 0.0, self.variance, 1.0)
        skew = np.where(np.abs(self.skew) < _SMALL_SKEW, _SMALL_SKEW, self.skew)
        with np.errstate(over="ignore", invalid="ignore"):  # scores as small as 1e-310
            shift = np.maximum(skew * distance / variance, -1.0 + 1e-12)
            entropy = (1.0 + shift) * np.log1p(shift) - shift
            # for small shifts the difference above loses all digits
            series = shift * shift * (0.5 - shift * (1.0 / 6.0 - shift / 12.0))
            curved = np.where(np.abs(shift) < 1e-3, series, entropy)
            found = variance / (skew * skew) * np.where(np.isnan(curved), np.inf, curved)
        certain = np.where(distance != 0.0, np.inf, 0.0)
        return np.where(self.variance > 0.0, found, certain)


@dataclass(frozen=True, slots=True, eq=False)
class SubgroupEntries:
    """Single rows, or counts of rows with equal attributes and nearly equal scores.

    Attributes
    ----------
    family : SubgroupFamily
        Subgroups of the entries.
    rows, positives, totals, variances : float arrays
        Of each entry: rows, positive rows, and the sums of s and of s (1 - s) over the scores s of
        its rows. With weights, weighted sums.
    kind : int array or None
        The kind of score of each entry; None for single rows.
    """

    family: SubgroupFamily
    rows: FloatArray
    positives: FloatArray
    totals: FloatArray
    variances: FloatArray
    kind: IndexArray | None = None

    @classmethod
    def of_rows(
        cls,
        family: SubgroupFamily,
        scores: FloatArray,
        codes: CodeArray,
        weights: FloatArray | None = None,
    ) -> Self:
        """Single rows, with labels coded as 0 and 1."""
        counted = np.ones(scores.size) if weights is None else weights
        spread = scores * (1.0 - scores)
        return cls(family, counted, counted * codes, counted * scores, counted * spread)

    @property
    def surplus(self) -> FloatArray:
        """Positive rows minus the sum of scores, for each entry."""
        return self.positives - self.totals

    @property
    def n_positive(self) -> FloatArray:
        """Positive rows in each subgroup."""
        return self.family.sums(self.positives)

    @property
    def rounding(self) -> float:
        """How much mean scores may be off."""
        return 0.0 if self.kind is None else _ROUNDING

    def averages(self) -> tuple[FloatArray, FloatArray]:
        """The mean score and the rate of each subgroup; NaN without rows."""
        rows = self.family.sums(self.rows)
        some = np.where(rows > 0.0, rows, np.nan)
        return self.family.sums(self.totals) / some, self.n_positive / some

    def expected(self) -> Expected:
        """The distribution of the label sum of each subgroup if every row's rate is its score."""
        variance = self.family.sums(self.variances)
        third = self.family.sums(self.variances * (1.0 - 2.0 * self.totals / self.rows))
        skew = np.divide(third, variance, out=np.zeros(variance.size), where=variance > 0.0)
        return Expected(self.family.sums(self.totals), variance, np.clip(skew, -1.0, 1.0))

    def tails(self, alpha: float) -> FloatArray:
        """The tail of each limit: largest for subgroups whose limits are widest, judging by scores,
        not labels.
        """
        deviation = np.sqrt(np.maximum(self.family.sums(self.variances), 1.0))
        return even_width_tails(deviation / np.maximum(self.family.counts, 1), alpha)

    def rate_limits(self, alpha: float) -> Interval:
        """Limits on the mean rate of the rows at hand, in every subgroup simultaneously, with
        probability 1 - alpha.

        Labels are independent given scores and attributes, with different rates: see
        `calibrant.limits.non_identical`.
        """
        return non_identical(self.family.counts, self.n_positive, self.tails(alpha))


def level_of_each(family: SubgroupFamily, alpha: float) -> FloatArray:
    """The level of each subgroup: orders share alpha evenly, and so do the subgroups of an order.

    All rows count as a subgroup of order 1. The number of subgroups depends on attributes alone.
    """
    order = np.maximum(family.order, 1)
    used = np.unique(order)
    sizes = np.bincount(order)
    return np.asarray(alpha / used.size / sizes[order])


def proved_off(entries: SubgroupEntries, alpha: float) -> BoolArray:
    """The subgroups in which some row's rate is shown to differ from its score.

    Guarantee: if labels are independent given scores and attributes, then with probability at least
    1 - alpha every marked subgroup has a row whose rate is above its score if there are too many
    positives, or below if there are too few.

    Notes
    -----
    If no row of a subgroup has a rate above its score, the sum of labels is stochastically
    dominated by the sum with rates equal to scores, whose distribution is Poisson-binomial and
    known. Each side gets half of the subgroup's level. Chernoff's bound is tried first, from the
    mean scores of 128 kinds of rows. If it narrowly misses, the tail of single rows is computed
    exactly.
    """
    family = entries.family
    positives = entries.n_positive
    expected = entries.expected()
    kind = kinds_of(entries.totals) if entries.kind is None else entries.kind
    counts = _sums_by_kind(family, kind, entries.rows)
    means = _sums_by_kind(family, kind, entries.totals) / np.maximum(counts, 1.0)
    log_level = np.log(level_of_each(family, alpha) / 2.0)
    candidates = np.flatnonzero(expected.surprise(positives) > -log_level - _NEAR)
    found = np.zeros(family.n_subgroups, dtype=bool)
    for number in candidates.tolist():
        hits = int(positives[number])
        too_many = bool(hits > expected.total[number])
        rows = counts[number]
        if too_many:
            bound = log_tail_bound(rows, means[number] + _ROUNDING_OF_MEANS, hits)
        else:
            bound = log_tail_bound(
                rows, 1.0 - means[number] + _ROUNDING_OF_MEANS, int(rows.sum()) - hits
            )
        is_near = log_level[number] < bound < log_level[number] + _NEAR
        if entries.kind is None and is_near and family.counts[number] <= _MOST_EXACT:
            tail = upper_tail if too_many else lower_tail
            own = entries.totals[family.members(number)]
            bound = math.log(max(tail(own, hits), 1e-300))
        found[number] = bound <= log_level[number]
    return found


def _sums_by_kind(family: SubgroupFamily, kind: IndexArray, values: FloatArray) -> FloatArray:
    """Sums over the entries of each subgroup (rows) with each kind of score (columns)."""
    found = []
    for part in family.crossings:
        place = part.cell.astype(np.intp) * N_KINDS + kind
        sums = np.bincount(place, values, minlength=(part.size + 1) * N_KINDS)
        found.append(sums.reshape(-1, N_KINDS)[: part.size])
    return np.concatenate(found).astype(np.float64)


_ROWS_AT_ONCE = 8191  # whose labels are drawn together
_DRAWS_AT_ONCE = 200
_MOST_JOINT = 256  # joint cells of crossings that are counted together
_TIED = 1e-12  # tolerance for ties: rounding may depend on the position in an array


def largest_surprise_p_value(entries: SubgroupEntries, n_draws: int, source: RandomSource) -> float:
    """The p-value of the largest surprise of single rows, under the hypothesis that every row's rate
    is its score.

    Guarantee: if labels are independent given scores and attributes, and each has its score as its
    rate, then the result is at most p with probability at most p, for every p. Nothing else is
    assumed.

    Notes
    -----
    Monte Carlo test (Barnard 1963; Dwass 1957): under the null, the labels and `n_draws` sets of
    labels that are drawn from the scores are exchangeable, and so are the largest surprises over
    all subgroups. So the rank of the real one is uniform up to ties, which count against it: p = (1
    + #{drawn >= real}) / (1 + n_draws). The subgroups may overlap and depend on each other in any
    way, so a search through many nearly equal subgroups costs nothing.
    """
    expected = entries.expected()
    real = float(expected.surprise(entries.n_positive).max())
    if real == np.inf:
        return 1.0 / (1.0 + n_draws)
    generator = source.generator()
    tables = JointCells.of(entries.family)
    reached = 0
    with watched(None, n_draws, "drawing labels", "draws") as advance:
        for start in range(0, n_draws, _DRAWS_AT_ONCE):
            size = min(_DRAWS_AT_ONCE, n_draws - start)
            drawn = _drawn_positives(tables, entries.totals, size, generator)
            surprises = expected.surprise(drawn).max(axis=1)
            reached += int(np.count_nonzero(surprises >= real * (1.0 - _TIED)))
            advance(size)
    return (1.0 + reached) / (1.0 + n_draws)


@dataclass(frozen=True, slots=True, eq=False)
class JointCells:
    """Crossings that are counted together: rows by joint cells, and which subgroups these are in.

    Crossings of a few attributes have few joint cells. So labels are summed by joint cell once, and
    these sums are added up for each crossing, instead of summing all labels for each.

    Attributes
    ----------
    cells : tuple of int arrays of shape (n,)
        For each group of crossings, the joint cell of each row.
    within : tuple of float arrays of shape (n_cells, size)
        For each group, 1 where a joint cell is in a subgroup, and 0 elsewhere.
    place : int array of shape (n_subgroups,)
        The column of each subgroup of the family, after those of all groups are put side by side.
    """

    cells: tuple[IndexArray, ...]
    within: tuple[FloatArray, ...]
    place: IndexArray

    @classmethod
    def of(cls, family: SubgroupFamily) -> Self:
        """Group each crossing with those that its joint cells already determine, or nearly."""
        firsts = np.cumsum([0, *(part.size for part in family.crossings)])
        left = list(range(len(family.crossings)))
        cells = []
        within = []
        columns = []
        while left:
            joint = np.zeros(family.n_rows, dtype=np.intp)
            together: list[int] = []
            for number in left:
                part = family.crossings[number]
                finer = _numbered(joint * (part.size + 1) + part.cell)
                if not together or int(finer.max(initial=0)) < _MOST_JOINT:
                    joint = finer
                    together.append(number)
            n_cells = int(joint.max(initial=-1)) + 1
            cells.append(joint)
            for number in together:
                part = family.crossings[number]
                of_cell = np.zeros(n_cells, dtype=np.intp)
                of_cell[joint] = part.cell
                columns.append(firsts[number] + np.arange(part.size))
                within.append((of_cell[:, None] == np.arange(part.size)).astype(np.float64))
            within[-len(together) :] = [np.hstack(within[-len(together) :])]
            left = [number for number in left if number not in together]
        return cls(tuple(cells), tuple(within), np.argsort(np.concatenate(columns)))


def _numbered(codes: IndexArray) -> IndexArray:
    """The number of each code among those that occur."""
    occurs = np.zeros(int(codes.max(initial=-1)) + 1, dtype=bool)
    occurs[codes] = True
    return (np.cumsum(occurs) - 1)[codes]


def _drawn_positives(
    tables: JointCells, scores: FloatArray, n_draws: int, generator: np.random.Generator
) -> FloatArray:
    """Positive labels in each subgroup (columns), for label sets drawn from the scores (rows)."""
    total = np.zeros((n_draws, tables.place.size))
    for start in range(0, scores.size, _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        part = scores[rows]
        labels = generator.random((n_draws, part.size)) < part
        found = []
        for joint, within in zip(tables.cells, tables.within, strict=True):
            by_cell = [np.bincount(joint[rows], one, len(within)) for one in labels]
            found.append(np.stack(by_cell) @ within)
        total += np.hstack(found)[:, tables.place]
    return total
