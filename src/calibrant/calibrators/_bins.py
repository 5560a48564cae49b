"""From scored rows to bins and what was counted in them."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from scipy.special import ndtri

from calibrant import _params as rules
from calibrant._labels import Classes
from calibrant._numbers import counted
from calibrant._text import Setting, shown
from calibrant._typing import ArrayLike
from calibrant.errors import InvalidValueError
from calibrant.guarantee import VALUES
from calibrant.intervals import METHODS
from calibrant.intervals.group_sums import TARGETS
from calibrant.intervals.shift.base import WEIGHT_BOUND
from calibrant.partition import Partition, ScorePartition, SegmentedPartition
from calibrant.partition.bins import OTHER
from calibrant.partition.scores import check_enough_rows, edge_ranks
from calibrant.rows import ScoredData
from calibrant.rows.base import Split
from calibrant.rows.draw import Draw, repeated, seed_of
from calibrant.rows.facts import RowFacts
from calibrant.rows.memory import MemoryRows
from calibrant.rows.ranks import MovedRowsError
from calibrant.rows.reach import Reach
from calibrant.rows.reader import one_row_each
from calibrant.tally import Tally

STRATEGIES = ("quantile", "uniform")
EXACT = "clopper-pearson"
"""The default interval. Rows with weights or groups have the interval of "betting" instead."""

_LARGEST_SHARE = 2 / 17  # of the rows, to choose segments
_DRAWN_ROWS = 16  # expected from the smallest segment that is kept, in a draw that chooses segments
_MOST_DRAWN = 1 << 20  # rows, to choose segments
T = TypeVar("T")
U = TypeVar("U")

Bins: TypeAlias = Annotated[int | str, rules.Integer(1) | rules.Only("auto")]
Method: TypeAlias = Annotated[str, rules.Choice(METHODS)]
Value: TypeAlias = Annotated[str, rules.Choice(VALUES)]
ScoreRange: TypeAlias = Annotated[tuple[float, float] | None, rules.Optional(rules.ScoreRange())]


@dataclass(eq=False, repr=False)
class BinParameters(rules.CheckedParameters):
    """The parameters of every calibrator that cuts bins of a score."""

    n_bins: Bins = "auto"
    _: KW_ONLY
    strategy: Annotated[str, rules.Choice(STRATEGIES)] = "quantile"
    confidence_level: rules.ConfidenceLevel = 0.9
    interval: Method = EXACT
    split: Annotated[float | str | None, rules.Optional(rules.FRACTION_OR_COUNT | rules.Only("auto"))] = "auto"
    pos_label: Hashable = None
    classes: ArrayLike | None = None
    random_state: rules.RandomSeed = 0
    n_jobs: rules.Threads = None


@dataclass(eq=False, repr=False, kw_only=True)
class CutParameters(BinParameters):
    """The same, and the parameters of calibrators that take segments, or regions fixed beforehand."""

    score_range: ScoreRange = None
    partition: Annotated[Partition | None, rules.Optional(rules.Instance(Partition, "a Partition"))] = None
    min_rows: Annotated[int | str | None, rules.Optional(rules.Integer(1) | rules.Only("auto"))] = "auto"
    keep_segments: Annotated[
        Sequence[Hashable] | None, rules.Optional(rules.Names('a list of segments, such as ["north", "south"]'))
    ] = None

    def _automatic_bins(self, n_rows: int) -> int:
        return automatic_bins(n_rows)

    def _bins_for(self, n_rows: float) -> int:
        """Return the number of bins for a number of rows, or of groups."""
        return self._automatic_bins(max(1, int(n_rows))) if self.n_bins == "auto" else int(self.n_bins)

    def _fixed_width(self, n_bins: int) -> ScorePartition:
        """Bins of equal width."""
        given = None if self.score_range is None else rules.ScoreRange().parse(self.score_range)
        return ScorePartition.fixed_width(n_bins, given or (0.0, 1.0))

    def _asked(self) -> dict[str, Any]:
        """What a statement says of how the bins were cut: whether from other rows, and how many were asked for."""
        n_bins = None if self.n_bins == "auto" or self.partition is not None else int(self.n_bins)
        return {"split": self.split not in (None, "auto"), "n_bins": n_bins}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        fixed = self.strategy == "uniform" or self.partition is not None
        if self.split not in (None, "auto") and fixed:
            raise InvalidValueError("split", "be None for bins that are fixed beforehand", got=repr(self.split))
        counts_all = self.split is None and self.strategy == "quantile"
        if isinstance(self.min_rows, int) and (counts_all or self.partition is not None):
            given = ('be None or "auto" where ', Setting("split", None), " or the bins are given")
            raise InvalidValueError("min_rows", given, repr(self.min_rows), "rows that choose segments are not counted")
        if self.strategy == "quantile" and self.score_range is not None:
            any_score = ("be None for ", Setting("strategy", "quantile"), ", which takes any score")
            raise InvalidValueError("score_range", any_score, got=repr(self.score_range))


@dataclass(eq=False, repr=False, kw_only=True)
class RegionParameters(CutParameters):
    """The same, and the parameter of calibrators that predict one value in each region."""

    value: Value = "jeffreys"


@dataclass(eq=False, repr=False, kw_only=True)
class WeightAndGroupParameters(rules.CheckedParameters):
    """The parameters of calibrators whose rows may have importance weights, or groups."""

    weight_bound: Annotated[float | None, rules.Optional(WEIGHT_BOUND)] = None
    max_group_size: Annotated[int | None, rules.Optional(rules.Integer(1))] = None
    group_target: Annotated[str, rules.Choice(TARGETS)] = "rows"


@dataclass(eq=False, repr=False, kw_only=True)
class FitParameters(CutParameters, WeightAndGroupParameters):
    """The parameters of calibrators that take segments, importance weights and groups."""


def check_interval(interval: str, beside: str, advice: str | None = None) -> None:
    """Raise an error for an interval that rows with weights or groups do not have."""
    if interval != EXACT:
        left = f"be left as it is with {beside}, whose interval is that of betting"
        raise InvalidValueError("interval", left, repr(interval), advice)


class Binned(NamedTuple):
    """Bins, what was counted in them, the classes of the rows, the range of their scores, and the counted rows.

    `facts` are what a guarantee has to say of how the rows were read and drawn; `whole` are all rows, those that are
    not counted too, and `drawn` the scores of the latter, by segment.
    """

    partition: Partition
    tally: Tally
    classes: Classes
    reach: Reach
    rows: ScoredData
    facts: RowFacts
    whole: ScoredData
    drawn: Mapping[Hashable, Any] = MappingProxyType({})


class _Segments(NamedTuple):
    """The segments that are kept; how many rows of each, and of the others, were drawn to choose them; the others."""

    kept: frozenset[Hashable]
    drawn: Mapping[Hashable, int]
    pooled: tuple[Any, ...]


def cut_and_count(data: ScoredData, settings: CutParameters, *, weighted: bool = False) -> Binned:
    """Cut bins and count the rows in them, once; `weighted` sums their importance weights too."""
    data = one_row_each(data, settings.random_state)
    if settings.partition is not None:
        return _counted(settings.partition, data, data, weighted, data.facts(drawn=False))
    seed = seed_of(settings.random_state)
    try:
        return _cut(data, settings, weighted, seed, can_draw=True)
    except MovedRowsError:  # rows without an order may come in another order
        must_draw = settings.split != "auto" or isinstance(settings.min_rows, int)
        if data.has_order or data.columns.id is not None or must_draw:
            raise
        return _cut(data, settings, weighted, seed, can_draw=False)


def _cut(data: ScoredData, settings: CutParameters, weighted: bool, seed: int, *, can_draw: bool) -> Binned:
    segments = chosen_segments(data, settings, seed, can_draw)
    whole = data if segments is None else data.pooled(segments.kept)
    drawn = {} if segments is None else segments.drawn
    if settings.strategy == "uniform":
        counted = data.split_by(_segment_draw(data, settings, seed)).others if drawn else data
        binned = _fixed_width(counted if segments is None else counted.pooled(segments.kept), whole, settings, weighted)
    elif settings.split is None or isinstance(settings.split, str):
        binned = _own_quantiles(whole, settings, weighted, seed, drawn, can_look=can_draw and settings.split == "auto")
    else:
        binned = _split_quantiles(whole, settings, settings.split, seed, weighted)
    if segments is None:
        return binned
    drawn_by = binned.facts.drawn_by or (data.facts(drawn=True).drawn_by if drawn else None)
    return binned._replace(facts=replace(binned.facts, drawn_by=drawn_by, pooled=segments.pooled), whole=whole)


def chosen_segments(data: ScoredData, settings: CutParameters, seed: int, can_draw: bool) -> _Segments | None:
    """Choose the segments that have regions of their own: those given, or those with enough rows in a random draw.

    The draw is from all rows, of any segment. Given the drawn rows, the others are independent draws and the choice is
    fixed. That would not be true of a choice by the counts of all rows.
    """
    if data.columns.segment is None:
        return None
    if settings.keep_segments is not None:
        kept, sizes = frozenset(settings.keep_segments), data.sizes()
        refused = [name for name in kept if name not in sizes or name == OTHER.value]
        if refused:
            rule = f"name segments of the data, none of them {OTHER.value!r}"
            raise InvalidValueError("keep_segments", rule, got=shown(refused[0]))
        return _Segments(kept, {}, tuple(name for name in sizes if name not in kept))
    looks = settings.split == "auto" and settings.strategy == "quantile" and can_draw
    fixed = data.columns.group is not None or (isinstance(data, MemoryRows) and data.repeats is not None)
    if settings.min_rows is None or (settings.min_rows == "auto" and (fixed or not looks)):
        return None
    parts = data.split_by(_segment_draw(data, settings, seed))
    n_rows, drawn = sum(parts.sizes.values()), {name: len(scores) for name, scores in parts.drawn.items()}
    kept = kept_segments(drawn, _fewest(settings, n_rows) * sum(drawn.values()) / max(n_rows, 1))
    pooled = tuple(name for name in parts.sizes if name not in kept)
    if not pooled:
        return _Segments(kept, drawn, ())
    others = sum(drawn[name] for name in pooled)
    return _Segments(kept, {**{name: drawn[name] for name in kept}, OTHER: others}, pooled)


def fewest_rows(n_rows: int, n_bins: int | str) -> int:
    """Rows of a segment from which on it has regions of its own by default.

    300, or 100 for each bin that is asked for; and a thousandth of all rows.

    >>> fewest_rows(10_000, "auto"), fewest_rows(10_000, 10), fewest_rows(1_000_000, "auto")
    (300, 1000, 1000)
    """
    return max(300, 100 * n_bins if isinstance(n_bins, int) else 0, n_rows // 1000)


def _fewest(settings: CutParameters, n_rows: int) -> int:
    return fewest_rows(n_rows, settings.n_bins) if settings.min_rows == "auto" else int(settings.min_rows or 1)


def kept_segments(drawn: Mapping[Hashable, int], fewest: float) -> frozenset[Hashable]:
    """Return the segments with at least `fewest` drawn rows; "other" is never among them.

    If the remaining segments have a twentieth of the rows or more, but fewer than `fewest` rows, the smallest of these
    segments are added to the remaining ones.
    """
    kept = sorted((rows, name) for name, rows in drawn.items() if rows >= max(fewest, 1) and name != OTHER.value)
    total, place = sum(drawn.values()), 0
    rest = total - sum(rows for rows, _ in kept)
    while place < len(kept) and total < 20 * rest and rest < fewest:
        rest += kept[place][0]
        place += 1
    return frozenset(name for _, name in kept[place:])


def _segment_draw(data: ScoredData, settings: CutParameters, seed: int) -> Draw:
    """The rows that choose segments: those that cut bins, or about 16 of a segment that is just large enough."""
    if settings.split is not None and not isinstance(settings.split, str):
        return data.draw(settings.split, seed)
    n_rows = sum(data.sizes().values())
    return Draw.of_share(
        seed, min(_DRAWN_ROWS / _fewest(settings, n_rows), _LARGEST_SHARE, _MOST_DRAWN / max(n_rows, 1))
    )


def _counted(partition: Partition, data: ScoredData, whole: ScoredData, weighted: bool, facts: RowFacts) -> Binned:
    return Binned(partition, *data.tally_and_reach(partition, weighted=weighted), data, facts, whole)


def automatic_bins(n_rows: int) -> int:
    """Return the whole part of the cube root of `n_rows`, and at least 1.

    >>> [automatic_bins(n) for n in (1, 100, 1000, 10_000, 1_000_000)]
    [1, 4, 10, 21, 100]
    """
    return max(1, int(n_rows ** (1 / 3) + 1e-9))


def _fixed_width(data: ScoredData, whole: ScoredData, settings: CutParameters, weighted: bool) -> Binned:
    """Bins of equal width, for which no row is needed; a segment may have no rows but those that chose it."""
    cut = cache(settings._fixed_width)
    partition = joined_bins(
        each_part(whole.sizes(), lambda rows: cut(check_enough_rows(rows, settings._bins_for(rows))))
    )
    return _counted(partition, data, data, weighted, data.facts(drawn=False))


def _own_quantiles(
    data: ScoredData,
    settings: CutParameters,
    weighted: bool,
    seed: int,
    drawn: Mapping[Hashable, int],
    *,
    can_look: bool,
) -> Binned:
    """Bins between order statistics of the rows that are counted, unless a look at a few others finds ties.

    Rows are counted in the finest cells, between and at the order statistics; the counts show which of them are tied.

    The rows of a look are not counted. If they are untied, bins lie between order statistics of the other rows, and a
    bin absorbs its left edge if that is tied after all. If they are tied, bins lie between quantiles of these rows and
    of some more. Given the rows that were looked at, the others are independent draws and the choice is fixed, so that
    it costs no confidence. There is no look at rows with a `sample_weight`, because no draw treats one row of weight 2
    as two rows, nor at rows that change places from one pass to the next, because a draw could not be left out. With
    importance weights a tied edge is a region of its own, because nothing bounds its weighted share. Rows that were
    `drawn` to choose segments, those with the smallest hashes of all, are among those of the look.
    """
    sizes = data.sizes()
    bins = each_part(sizes, lambda rows: check_enough_rows(rows, settings._bins_for(rows)))
    has_repeats = isinstance(data, MemoryRows) and data.repeats is not None
    looks = {name: look_size(rows, bins[name]) if can_look and not has_repeats else 0 for name, rows in sizes.items()}
    looks = {name: max(rows, drawn.get(name, 0)) for name, rows in looks.items()}
    cuts, parts = dict.fromkeys(sizes, 0), Split({}, sizes, data)
    if any(looks.values()):
        parts = data.first_rows(seed, looks, sizes)
        tied = {name for name, scores in parts.drawn.items() if repeated(scores).size}
        cuts = {name: split_size(rows, bins[name]) if name in tied else 0 for name, rows in sizes.items()}
    taken = {name: max(looks[name], cuts[name]) for name in sizes}
    if any(cuts.values()):
        parts = data.first_rows(seed, taken, sizes)
    # hardly any row may be left of a segment that was chosen by few rows; one without any is one bin
    left = {name: max(rows - taken[name], 1) for name, rows in sizes.items()}
    ranks = {name: edge_ranks(rows, min(bins[name], rows)) for name, rows in left.items() if not cuts[name]}
    edges = parts.others.order_statistics(ranks) if ranks else {}
    # the number of rows of a segment estimates its mass, except among the rows that chose the segments
    aside = {name: rows - drawn.get(name, 0) for name, rows in taken.items()}
    cells = joined_bins(
        {
            name: ScorePartition.at(edges[name], aside[name])
            if name in ranks
            else ScorePartition.from_tied_scores(parts.drawn[name], bins[name], aside=aside[name])
            for name in sizes
        }
    )
    tally, classes, reach = parts.others.tally_and_reach(cells, weighted=weighted)
    absorbs = settings.split is not None and not weighted
    partition = cells.cut_by_cells(tally.counts, {name: bins[name] - 1 for name in sizes} if absorbs else None)
    reach = sum(map(Reach.of, parts.drawn.values()), reach)
    looked = sum(rows for name, rows in looks.items() if not cuts[name])
    facts = replace(data.facts(drawn=any(taken.values())), looked=looked, cutting=sum(cuts.values()))
    counted = tally.regrouped(partition.count_regions, partition)
    return Binned(partition, counted, classes, reach, parts.others, facts, data, parts.drawn)


def look_size(n_rows: int, n_bins: int) -> int:
    """How many rows are looked at for ties: ceil(sqrt(2 (n_bins - 1) n_rows)), but at most 2/17 of them.

    A look of m rows expects m^2 / (2 n) pairs of equal scores for every one that the n_bins - 1 edges expect, times
    1 / (n_bins - 1). So an untied look followed by a tied edge is the case in at most 1/4 of all fits.

    >>> [look_size(n, 10) for n in (10, 100, 1000, 10_000, 1_000_000)]
    [0, 11, 117, 425, 4243]
    """
    wanted = math.ceil(math.sqrt(2 * (n_bins - 1) * n_rows))
    rows = min(wanted, 2 * n_rows // 17, n_rows - n_bins)
    return rows if rows >= 2 else 0


def split_size(n_rows: int, n_bins: int) -> int:
    """How many rows cut bins where scores are tied: about (g n sqrt(B) / 2)^(2/3), g = Phi^-1(1 - 0.56 / B).

    More rows cut bins of more equal size, and leave fewer to be counted. At most half of the rows, and 0 where these
    are fewer than the bins.

    >>> [split_size(n, 10) for n in (100, 1000, 10_000, 1_000_000)]
    [40, 185, 858, 18484]
    """
    if not 2 <= n_bins <= n_rows // 2:
        return 0
    wanted = math.ceil((float(ndtri(1.0 - 0.56 / n_bins)) * n_rows * math.sqrt(n_bins) / 2.0) ** (2.0 / 3.0))
    return int(min(max(wanted, n_bins), n_rows // 2))


def _split_quantiles(data: ScoredData, settings: CutParameters, split: float, seed: int, weighted: bool) -> Binned:
    """Bins between quantiles of a random part of the rows, which only cuts; the others count (the paper's way)."""
    parts = data.split(split, seed)
    n_rows, n_drawn = sum(parts.sizes.values()), sum(map(len, parts.drawn.values()))
    if not 0 < n_drawn < n_rows:
        got = f"{split!r} of {counted(n_rows, 'row')}, which draws {n_drawn:,}"
        raise InvalidValueError("split", "leave rows both to cut and to count", got=got)

    def cut(name: Hashable) -> ScorePartition:
        scores, n_bins = parts.drawn[name], settings._bins_for(parts.sizes[name])
        if not len(scores):  # a segment without a drawn row is one bin
            return ScorePartition(np.empty(0))
        return ScorePartition.from_other_scores(
            scores, min(n_bins, len(scores)) if settings.n_bins == "auto" else n_bins
        )

    partition = joined_bins(each_part({name: name for name in parts.sizes}, cut))
    binned = _counted(partition, parts.others, data, weighted, data.facts(drawn=True))
    return binned._replace(drawn=parts.drawn)


def each_part(parts: Mapping[Hashable, T], make: Callable[[T], U]) -> dict[Hashable, U]:
    """Apply a function to each segment; an error names the segment."""
    made = {}
    for name, part in parts.items():
        try:
            made[name] = make(part)
        except InvalidValueError as error:
            raise (error if name is None else InvalidValueError(None, f"in segment {name!r}: {error}")) from None
    return made


def joined_bins(parts: dict[Hashable, ScorePartition]) -> ScorePartition | SegmentedPartition:
    return parts[None] if None in parts else SegmentedPartition(parts)
