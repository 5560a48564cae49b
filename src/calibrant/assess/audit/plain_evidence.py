"""What is shown about independent rows without weights.

Given all scores their labels are independent. So regions may be cut after seeing all scores, limits
are binomial, and those of different regions are independent. Counts of cells of scores are enough,
wherever the rows are.

*Are the scores overconfident or underconfident?* One test is over the lowest and the highest scores.

A region shows scores that are too high, or too low. Scores that are too extreme are both: too high at
one end and too low at the other. No region sees both ends, so a slope slightly below 1 can hide from
all of them.

*Statistic.* The outer thirds of the scores are taken, by their information s (1 - s). T counts the
positives among the highest scores and the negatives among the lowest. Its labels have the rates f =
s and f = 1 - s if the scores are calibrated. Few of them are overconfidence, many underconfidence.

*Bound.* If no score is off by more than t, then T is stochastically at most the sum of labels with
the rates min(1, f + t), and at least that with max(0, f - t). Its tail is a known Poisson-binomial
tail, and it increases with t. So every t at which the tail is below the level is ruled out, and the
largest of them is a lower bound on sup |E[Y | score] - score|. One test decides about all t.

*Cells.* Rows are counted in fixed cells, about equally wide in log odds: scores such as 1 - 1e-9 are
far from 0.99. The rates of a cell may be replaced by their mean (Hoeffding 1956). For two labels of
a sum with p + q fixed, P(S >= k) is linear in p q, with the slope P(R = k - 2) - P(R = k - 1), where
R is the sum of the others. R is unimodal, with a mode less than 1 from its mean (Darroch 1964). So
for k >= E[S] + 3 the slope is not negative, and the tail is largest if all rates of the cell are
equal. For smaller k, only Chernoff's bound is used, which is always largest for equal rates. So
counts and mean scores of cells are enough, wherever rows were counted.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np
from scipy.special import expit

from calibrant._typing import FloatArray, IntArray
from calibrant.assess.audit.findings import (
    OVERCONFIDENT,
    REGIONS_SHARE,
    SPREAD_SHARE,
    UNDERCONFIDENT,
    Finding,
    Resolutions,
    finest_bins,
    nested_regions,
)
from calibrant.assess.metrics.bin_sums import MOST_VALUES, few_values
from calibrant.assess.metrics.independent_units import ROWS, Units
from calibrant.assess.monotone.monotone_band import MonotoneBand
from calibrant.cells.score_counts import ScoreCounts
from calibrant.cells.score_partition import ScorePartition, equal_mass
from calibrant.cells.segmented_partition import SegmentedPartition
from calibrant.errors import InvalidValueError
from calibrant.guarantee.relative import relative_limits
from calibrant.limits.error_budget import sidak_level
from calibrant.limits.interval import Interval
from calibrant.limits.kl import lower_mean
from calibrant.limits.non_identical import non_identical
from calibrant.limits.poisson_binomial import grouped_upper_tail, log_tail_bound
from calibrant.params.labels import CODED
from calibrant.sample.reader import in_memory
from calibrant.sample.rows import Rows

CELL_EDGES: FloatArray = expit(np.arange(-30.0, 30.5, 0.5))
"""Where the cells of scores begin; below the first is one more."""

_OUTER = 1.0 / 3.0  # of the information, at each end: more is further from the best weights
_MARGIN = 3.0  # above the mean, in labels: see "Cells"
_ROUNDING_OF_MEANS = 1e-10  # of mean scores of cells
_MOST_EXACT = 2_000_000  # rows; beyond, Chernoff's bound is close enough
_NEAR = 4.0  # in log units: if the bound misses the level by more, the exact tail does, too
_HALVINGS = 30
_EXACT_HALVINGS = 8  # each costs a tail


def outer_signs(counts: FloatArray, means: FloatArray) -> IntArray:
    """For cells in increasing order of their mean score: -1 in the lowest third of the information,
    1 in the highest, 0 between.

    >>> outer_signs(np.full(4, 10.0), np.array([0.2, 0.4, 0.6, 0.8]))
    array([-1,  0,  0,  1])
    """
    information = counts * means * (1.0 - means)
    if not information.any():  # only the scores 0 and 1
        information = counts
    before = np.cumsum(information) - information / 2.0
    share = before / information.sum()
    highest = (share > 1.0 - _OUTER).astype(np.int64)
    return np.asarray(highest - (share < _OUTER))


def spread_of(cells: ScoreCounts, alpha: float, segment: Hashable = None) -> Finding | None:
    """What is shown with probability 1 - alpha about rows that were counted at each score, or in
    cells within those of `CELL_EDGES`; its error is 0 if nothing is. None if all rows are in one
    cell.
    """
    rows, hits = cells.whole
    first = np.flatnonzero(np.diff(np.searchsorted(CELL_EDGES, cells.scores, "right"), prepend=-1))
    counts = np.add.reduceat(rows, first)
    positives = np.add.reduceat(hits, first)
    low = cells.scores[first]
    high = cells.high[np.append(first[1:], rows.size) - 1]
    means = np.clip(np.add.reduceat(cells.total, first) / counts, low, high)
    signs = outer_signs(counts.astype(np.float64), means)
    used = signs != 0
    if not ((signs > 0).any() and (signs < 0).any()):
        return None
    outer = counts[used]
    total = int(outer.sum())
    seen = int(np.where(signs > 0, positives, counts - positives)[used].sum())
    rates = np.where(signs > 0, means, 1.0 - means)[used]
    overconfident = seen < float((outer * rates).sum())
    if overconfident:
        seen = total - seen
        rates = 1.0 - rates
    return Finding(
        segment=segment,
        direction=OVERCONFIDENT if overconfident else UNDERCONFIDENT,
        error=_largest_ruled_out(outer, rates, seen, alpha / 2.0),
        count=total,
        mean_score=float((counts * means)[used].sum()) / total,
        rate=int(positives[used].sum()) / total,
        low=float(low[used].min()),
        high=float(high[used].max()),
    )


def _largest_ruled_out(rows: IntArray, rates: FloatArray, seen: int, tail: float) -> float:
    """A number t such that labels with the rates min(1, rates + t) reach `seen` with probability
    at most `tail`; 0 if there is none.
    """
    log_tail = math.log(tail)

    def raised(by: float) -> FloatArray:
        return np.minimum(rates + (by + _ROUNDING_OF_MEANS), 1.0)

    def is_above(by: float) -> bool:
        return seen >= float((rows * raised(by)).sum()) + _MARGIN

    def log_bound(by: float) -> float:
        return log_tail_bound(rows, raised(by), seen)

    def is_ruled_out(by: float) -> bool:
        return is_above(by) and grouped_upper_tail(rows, raised(by), seen) <= tail

    if log_bound(0.0) > log_tail + _NEAR:
        return 0.0
    found = _last(lambda by: log_bound(by) <= log_tail, 0.0, 1.0, _HALVINGS)
    most = _last(is_above, found, 1.0, _HALVINGS)
    if rows.sum() > _MOST_EXACT:
        return found
    return _last(is_ruled_out, found, most, _EXACT_HALVINGS)


def _last(is_true: Callable[[float], bool], low: float, high: float, halvings: int) -> float:
    """The last number found at which a statement is true, from `low` up to `high`; `low` if none is.

    The statement is true up to some number, and false beyond it.
    """
    for _ in range(halvings):
        middle = (low + high) / 2.0
        if is_true(middle):
            low = middle
        else:
            high = middle
    return low


_ROUNDING = 1e-12  # for rounding in a mean score, subtracted from the error shown


@dataclass(frozen=True, slots=True, eq=False)
class PlainEvidence:
    """Cells of scores: of all rows, and then of each segment.

    Attributes
    ----------
    rows : Rows
        The rows.
    segments : list of pairs
        The name of each segment, None for all rows, and its cells.
    n_bins : int or "auto"
        Number of bins at the finest resolution.
    """

    units: ClassVar[Units] = ROWS
    assumptions: ClassVar[tuple[str, ...]] = (ROWS.assumption,)
    n_set_aside: ClassVar[int] = 0

    rows: Rows
    segments: list[tuple[Hashable, ScoreCounts]]
    n_bins: int | str

    @classmethod
    def of(cls, data: Rows, n_bins: int | str) -> Self:
        """Count rows of any number where they are, in memory or elsewhere.

        A region ends where the middle rank of a value passes j n / n_bins. That value is the order
        statistic of rank ceil(j n / n_bins). Each of these values is a cell, and so is each range
        between two of them. So every region consists of whole cells, and no scores are sorted.
        Ranges are also cut at `CELL_EDGES`, for the spread.
        """
        values = data.values(MOST_VALUES)
        if not values:
            raise InvalidValueError("the data", "have at least one row", got="none")
        sizes = data.sizes()
        sizes[None] = sum(sizes.values())
        edges = {name: distinct for name, distinct in values.items() if distinct is not None}
        many_valued = values.keys() - edges.keys()
        ranks = {}
        for name in many_valued:
            finest = finest_bins(sizes[name], n_bins)
            ranks[name] = -(-np.arange(1, finest, dtype=np.int64) * sizes[name] // finest)
        edges |= data.order_statistics(ranks)
        edges |= {name: np.union1d(edges[name], CELL_EDGES) for name in many_valued}
        atoms = {name: ScorePartition.atoms(edges[name]) for name in values}
        counted = [data.without_segments().tally_and_scores(atoms.pop(None))]
        if atoms:
            bins = SegmentedPartition(atoms)
            tally, sums = data.tally_and_scores(bins)
            places = [slice(*ends) for ends in pairwise(bins.offsets.tolist())]
            counted += [(tally.part(place), sums.part(place)) for place in places]
        cells = [
            (name, ScoreCounts.of_tally(tally, sums, are_values=name not in many_valued))
            for name, (tally, sums) in zip((None, *atoms), counted, strict=True)
        ]
        return cls(data, cells, n_bins)

    def band(self, confidence_level: float) -> MonotoneBand:
        """The band of all rows: of every score in memory, else of the cells; its texts name no
        class.
        """
        cells = self.segments[0][1]
        if in_memory(self.rows):
            cells = ScoreCounts.of(self.rows.scores, self.rows.codes)
        return MonotoneBand.from_cells(cells, CODED, confidence_level)

    def resolutions(self, segment: int, alpha: float) -> Resolutions:
        """The regions of a segment, limits that hold for all of them, and whether its scores are too
        extreme, or not extreme enough.

        Every resolution gets the same share of the level. Within a resolution the share is divided by
        Sidak's rule: given the scores, labels of different regions are independent. The cuts depend
        on the scores alone, and equal scores stay together, so choosing the cuts costs no part of
        alpha.
        """
        name, cells = self.segments[segment]
        # whether every score is seen often enough to be a region of its own
        finite = few_values(cells.n_values, int(cells.n_rows))
        rows, positives = cells.whole
        levels = _nested_cells(rows, finest_bins(int(cells.n_rows), self.n_bins), finite)
        regions = nested_regions(replace(cells, counts=rows, positives=positives), rows, levels)
        resolution = regions["resolution"]
        sizes = np.bincount(resolution).tolist()
        share = REGIONS_SHARE * alpha / len(levels)
        tails = np.array([sidak_level(share, size) / 2 for size in sizes])[resolution]
        is_value = regions["low"] == regions["high"]
        rates = non_identical(regions["counts"], regions["positives"], tails, is_value)
        mean = regions["mean_score"]
        errors = Interval(rates.lower - mean, rates.upper - mean)
        relative = relative_limits(rates, Interval(mean, mean))
        return Resolutions.of(
            name,
            regions,
            rates,
            errors,
            relative,
            _ROUNDING,
            finite=finite,
            n_values=cells.n_values,
            spread=spread_of(cells, SPREAD_SHARE * alpha, name),
        )

    def average_error(
        self, parts: Sequence[Resolutions], alpha: float, *, within_segments: bool
    ) -> float:
        """A lower bound on the average error: that of the scores seen, an average of independent
        draws from [0, 1], by Chernoff's bound.
        """
        some = parts[1:] if within_segments else parts[:1]
        sizes = [part.n_rows for part in some]
        error = np.average([part.average_error() for part in some], weights=sizes)
        return lower_mean(float(error), sum(sizes), alpha)

    def unseen_mass(self, alpha: float, *, within_segments: bool) -> float:
        """An upper bound on the mass of unseen scores, by the number of scores seen once (McAllester
        and Ortiz 2003) and McDiarmid's inequality.
        """
        some = [cells for _, cells in (self.segments[1:] if within_segments else self.segments[:1])]
        n_rows = sum(int(cells.n_rows) for cells in some)
        once = sum(int(np.count_nonzero(cells.counts == 1)) for cells in some)
        deviation = (1.0 + math.sqrt(2.0)) * math.sqrt(math.log(2.0 / alpha) / n_rows)
        return min(1.0, once / n_rows + deviation)


def _nested_cells(counts: IntArray, n_bins: int, finite: bool) -> list[IntArray]:
    """For every resolution, coarse to fine, the region of each cell.

    Each region lies within one coarser region.
    """
    nested = [equal_mass(counts, n_bins)]
    while nested[0][-1] > nested[0][0]:
        nested.insert(0, nested[0] // 2)
    if finite:
        nested.append(np.arange(counts.size))
    sizes = [int(np.count_nonzero(np.diff(cell))) for cell in nested]
    # a resolution with the same regions as the next finer one would waste a share of alpha
    return [
        cell
        for cell, size, finer in zip(nested, sizes, [*sizes[1:], -1], strict=True)
        if size != finer
    ]
