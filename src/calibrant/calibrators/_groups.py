"""Rows that belong together: bins cut from whole groups, and limits by bets on the sums of groups."""

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant._numbers import counted
from calibrant._params import check_state
from calibrant._text import Setting
from calibrant._typing import FloatArray
from calibrant.calibrators._bins import (
    Binned,
    CutParameters,
    FitParameters,
    WeightAndGroupParameters,
    check_interval,
    chosen_segments,
    cut_and_count,
    each_part,
    joined_bins,
    split_size,
)
from calibrant.calibrators._weighted import WeightedLimits, checked_bound, has_weights, weights_of
from calibrant.errors import InvalidValueError
from calibrant.guarantee.statement import Edges, GroupFacts, Statement
from calibrant.intervals.group_sums import GroupDesign, GroupSums
from calibrant.intervals.groups import picked_distance, shared_limits
from calibrant.partition import Partition, ScorePartition
from calibrant.rows import ScoredData
from calibrant.rows.base import Split
from calibrant.rows.draw import Draw, seed_of
from calibrant.rows.facts import RowFacts
from calibrant.rows.memory import MemoryRows
from calibrant.rows.reach import Reach
from calibrant.tally import Tally

THEOREM = "Ville's inequality for bets on the sums of whole groups, by Bonferroni over regions"
_SHARE = 0.1  # of groups set aside to find the size limit, if no groups are needed to cut bins


def cut_rows(data: ScoredData, settings: FitParameters) -> tuple[Binned, GroupDesign | None]:
    """Cut bins and count the rows in them, whether they have groups, weights, or neither."""
    if has_groups(data, settings):
        return cut_and_count_groups(data, settings)
    data = data.without_groups()
    if not has_weights(data):
        return cut_and_count(data, settings), None
    check_interval(settings.interval, "importance weights", "use ShiftCalibrator for other intervals")
    return cut_and_count(data.collect(), settings, weighted=True), None


def has_groups(data: ScoredData, settings: WeightAndGroupParameters) -> bool:
    """Return whether rows have groups that matter; not if `max_group_size` is 1 and each row is its own group.

    A statement without groups then assumes that no group anywhere is larger. If that is true, no other statement is
    ever made; if not, only statements about groups are claimed. So this look at the sizes costs no part of alpha.
    """
    if isinstance(data, MemoryRows) and data.groups is not None and settings.max_group_size == 1:
        return int(data.groups.sizes.max(initial=0)) > 1
    return data.columns.group is not None


def cut_and_count_groups(data: ScoredData, settings: FitParameters) -> tuple[Binned, GroupDesign]:
    """Cut bins from whole groups that are set aside, count the others, and settle how groups count.

    Edges and the size limit come from groups that are not counted. Own-sample edges would need independent rows, and
    the largest size among the counted groups is no limit on the size of a new group.
    """
    check_interval(settings.interval, "groups")
    weighted = has_weights(data)
    if weighted:
        data = data.collect()
        checked_bound(weights_of(data), settings.weight_bound)
    seed = seed_of(settings.random_state)
    if isinstance(settings.min_rows, int):
        advice = ("name the segments with ", Setting("keep_segments"))
        raise InvalidValueError("min_rows", "be left as it is with groups", repr(settings.min_rows), advice)
    segments = chosen_segments(data, settings, seed, can_draw=False)
    data = data if segments is None else data.pooled(segments.kept)
    n_groups, sizes = data.n_groups(), data.sizes()
    fixed = settings.partition is not None or settings.strategy == "uniform"
    known = settings.partition is not None or settings.keep_segments is not None or list(sizes) == [None]
    aside = _aside(settings, n_groups, fixed, known)
    draw = data.draw(aside, seed) if aside else None
    parts = Split({}, sizes, data) if draw is None else data.split_by(draw)
    partition = _partition(settings, sizes, n_groups, parts.drawn)
    tally, classes, reach = parts.others.tally_and_reach(partition)
    reach = sum(map(Reach.of, parts.drawn.values()), reach)
    table = tally.groups
    if table is None or not table.n_groups:
        raise _too_few(n_groups)
    largest = settings.max_group_size
    if largest is None:
        seen = data.group_counts(partition, classes.positive, draw=draw, aside=True)
        largest = max(1, int(seen.rows.max(initial=1)))
    if weighted:
        tally, _ = parts.others.without_groups().tally(partition, weighted=True)
    elif settings.group_target == "rows":
        tally = replace(tally, groups=table.without_sizes())
    unseen = {name for name in sizes if not len(parts.drawn.get(name, ()))}
    unproved = () if known else _regions_without(partition, unseen)
    given, aside = settings.partition is not None, n_groups - table.n_groups
    design = GroupDesign(largest, settings.group_target, aside, unproved, fixed=given)
    if isinstance(data, MemoryRows) and weighted:
        design = replace(design, max_weight=_most_weight(data, draw, partition, design, settings))
    facts = RowFacts(skipped=data.skipped_rows(), pooled=() if segments is None else segments.pooled)
    return Binned(partition, tally, classes, reach, parts.others, facts, data), design


def _most_weight(
    data: MemoryRows, draw: Draw | None, partition: Partition, design: GroupDesign, settings: Any
) -> float:
    """By how much a group counts in a region at most: as stated, or the most of a group that was set aside."""
    if draw is not None and settings.max_group_size is None:
        aside, _ = weighted_sums(data.take(data.chosen(draw)), partition, replace(design, target="rows"))
        if aside.weight.size:
            return float(aside.weight.max())
    if settings.weight_bound is None:
        raise InvalidValueError("weight_bound", "be given with importance weights and max_group_size", got="None")
    return float(design.max_size * settings.weight_bound)


def weighted_sums(rows: MemoryRows, partition: Partition, design: GroupDesign) -> tuple[GroupSums, FloatArray]:
    """Sums of the weights of groups in regions, and the weight by which each row counts."""
    if rows.groups is None:
        raise InvalidValueError("groups", "be given", got="None")
    groups, regions = (rows.groups.codes, rows.groups.keys), partition.membership(rows.prepared)
    return GroupSums.of_rows(regions, weights_of(rows), rows.codes, groups, partition.n_regions, design)


def weighted_limits(binned: Binned, design: GroupDesign, bound: float | None, alpha: float) -> WeightedLimits:
    """Limits by bets on sums of the weights of whole groups."""
    rows = binned.rows.collect()
    sums, _ = weighted_sums(rows, binned.partition, design)
    effect = float(np.nan_to_num(sums.design_effect, nan=1.0))
    facts = _facts(design, rows.n_groups(), effect)
    largest = checked_bound(weights_of(rows), bound)
    return WeightedLimits(shared_limits(sums, design, alpha), largest, bounded=True, groups=facts, rows=sums.telling)


def rows_by_weight(binned: Binned, design: GroupDesign, alpha: float) -> tuple[MemoryRows, FloatArray]:
    """Rows repeated as their groups count them, and limits on their Kolmogorov distance from the population.

    The largest weight is 2^20 rows. What rounding moves is part of the distance.
    """
    rows, regions = binned.rows.collect(), binned.partition.n_regions
    sums, own = weighted_sums(rows, binned.partition, design)
    times = np.rint(own * (2.0**20 / own.max(initial=1e-300)))
    place = binned.partition.membership(rows.prepared)
    used = (place >= 0) & (own > 0.0)
    totals = [np.maximum(np.bincount(place[used], values[used], regions), 1e-300)[place] for values in (times, own)]
    moved = np.bincount(place[used], np.abs(times / totals[0] - own / totals[1])[used] / 2.0, regions)
    distance = np.minimum(picked_distance(sums, design, alpha) + moved, 1.0)
    return replace(rows, weights=None, groups=None, repeats=times.astype(np.int64)).without_empty(), distance


def _aside(settings: FitParameters, n_groups: int, fixed: bool, known: bool = True) -> float:
    """How many groups are set aside, as an int; or a fraction of them. It must not depend on the rows of groups.

    `fixed` says that the bins were fixed beforehand, `known` that the segments were.
    """
    split = settings.split
    if not fixed and split is None:
        rule = ("be ", Setting("split", "auto"), ", or a fraction or number of groups, where rows have groups")
        raise InvalidValueError("split", rule, got="None")
    if not fixed and split is not None and not isinstance(split, str):
        return split if isinstance(split, float) else min(int(split), max(n_groups - 1, 1))
    if fixed and known and settings.max_group_size is not None:
        return 0
    if n_groups < 2:
        raise _too_few(n_groups)
    if fixed:
        return max(round(_SHARE * n_groups), 1)
    return groups_that_cut(n_groups, settings._bins_for(n_groups))


def groups_that_cut(n_groups: int, n_bins: int) -> int:
    """How many groups cut bins: the share of rows that would, if there were three rows in each group.

    It does not depend on the number of rows: given that number, groups are not independent.

    >>> [groups_that_cut(n, 10) for n in (20, 1000, 100_000)]
    [10, 128, 2761]
    """
    about = 3 * n_groups
    return int(min(max(round(n_groups * split_size(about, n_bins) / about), 1), n_groups - 1))


def _too_few(n_groups: int) -> InvalidValueError:
    rule = "be at least two, because some groups are set aside and others are counted"
    advice = ("use more groups, or set ", Setting("max_group_size"), " and fix the bins beforehand")
    return InvalidValueError("groups", rule, got=counted(n_groups, "group"), advice=advice)


def _partition(
    settings: CutParameters, sizes: Mapping[Hashable, int], n_groups: int, drawn: Mapping[Hashable, Any]
) -> Partition:
    """The regions: as given, of equal width, or between quantiles of the drawn rows."""
    if settings.partition is not None:
        return settings.partition
    n_drawn = sum(map(len, drawn.values()))

    def cut(name: Hashable) -> ScorePartition:
        # by the rows set aside: given how many rows of a segment are counted, groups are not independent
        share = len(drawn[name]) / n_drawn if n_drawn else 1.0 / len(sizes)
        n_bins = settings._bins_for(n_groups * share)
        if settings.strategy == "uniform":
            return settings._fixed_width(n_bins)
        scores = drawn[name]
        if not len(scores):
            return ScorePartition(np.empty(0))
        n_bins = min(n_bins, len(scores))
        if np.unique(scores).size < len(scores):
            return ScorePartition.from_tied_scores(scores, n_bins)
        return ScorePartition.from_other_scores(scores, n_bins)

    return joined_bins(each_part({name: name for name in sizes}, cut))


def _regions_without(partition: Partition, segments: set[Any]) -> tuple[int, ...]:
    """Regions of these segments."""
    if not segments:
        return ()
    bins = partition.as_bins()
    inside = np.isin(bins.layout.cells.segment, [n for n, name in enumerate(bins.bins_by_segment) if name in segments])
    return tuple(np.flatnonzero(inside).tolist())


def said_of_groups(statement: Statement, tally: Tally, design: GroupDesign, settings: CutParameters) -> Statement:
    """The statement about rows of new groups."""
    n_groups = 0 if tally.groups is None else tally.groups.n_groups
    effect = GroupSums.of(tally, design).design_effect
    return of_new_groups(statement, _facts(design, n_groups, effect), settings)


def _facts(design: GroupDesign, n_groups: int, effect: float) -> GroupFacts:
    size, weight = design.max_size, design.max_weight
    return GroupFacts(n_groups, design.aside, size, design.target, effect, weight, design.fixed)


def said_of_weights(statement: Statement, weighted: WeightedLimits, settings: CutParameters) -> Statement:
    """The statement about the weighted population, and about rows of new groups if rows have them."""
    said = weighted.said(statement)
    return said if weighted.groups is None else of_new_groups(said, weighted.groups, settings)


def of_new_groups(statement: Statement, groups: GroupFacts, settings: CutParameters) -> Statement:
    """The statement about rows of new groups, with what is to be said of them."""
    cut = settings.strategy == "quantile" and not groups.fixed and groups.aside > 0
    return replace(statement, theorem=THEOREM, edges=Edges.OTHER_ROWS if cut else statement.edges, groups=groups)


def saved_design(state: Mapping[str, Any], tally: Tally) -> GroupDesign | None:
    """How groups count, in a state; None for rows without groups."""
    if tally.groups is None:
        return None
    check_state(state, ("groups",))
    design = GroupDesign.from_dict(state["groups"])
    if max(design.unproved, default=0) >= tally.n_regions:
        raise InvalidValueError("unproved", f"be regions below {tally.n_regions}", got=repr(list(design.unproved)))
    return design
