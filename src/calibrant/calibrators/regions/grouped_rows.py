"""Grouped rows: bins cut from whole groups, and limits by bets on the sums of groups."""

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.calibrators.regions.binned_rows import (
    Binned,
    cut_and_count,
    each_part,
    equal_width,
    joined_bins,
    split_size,
)
from calibrant.calibrators.regions.own_segments import ChosenSegments, chosen_segments
from calibrant.calibrators.regions.parameters import CutParameters, DataAssumptions, check_interval
from calibrant.calibrators.regions.weighted_rows import (
    checked_bound,
    has_weights,
    weights_of,
)
from calibrant.cells.partition import Partition
from calibrant.cells.score_partition import ScorePartition
from calibrant.errors import InvalidValueError
from calibrant.limits.region_limits import GroupDesign
from calibrant.params.random import Draw, RandomSource, seed_number
from calibrant.sample.facts import Reach, RowFacts
from calibrant.sample.groups import PILOT_SHARE, fewest_pilot_groups
from calibrant.sample.reader import in_memory
from calibrant.sample.rows import Rows, Split
from calibrant.sample.sources.memory import MemoryRows
from calibrant.text.numbers import counted
from calibrant.text.sentences import Setting, Text

_FIX_THE_BINS = (
    "use more groups, or set ",
    Setting("max_group_size"),
    " and fix the bins beforehand",
)


def cut_units(data: Rows, settings: CutParameters, assumptions: DataAssumptions) -> Binned:
    """Cut bins and count the rows in them: plain rows, or rows with groups or weights."""
    if has_groups(data, assumptions):
        check_interval(settings.interval, "groups")
        return cut_and_count_groups(data, settings, assumptions)
    data = data.without_groups()
    if not has_weights(data):
        return cut_and_count(data, settings, assumptions)
    check_interval(
        settings.interval, "importance weights", "use ShiftCalibrator for other intervals"
    )
    return cut_and_count(data.collect(), settings, assumptions)


def has_groups(data: Rows, assumptions: DataAssumptions) -> bool:
    """Return whether rows have groups that matter.

    They do not if `max_group_size` is 1 and each row is its own group.

    A statement without groups then assumes that no group anywhere is larger. If that is true, no
    other statement is ever made; if not, only statements about groups are claimed. So looking at
    the sizes costs no part of alpha.
    """
    if in_memory(data) and data.groups is not None and assumptions.max_group_size == 1:
        return int(data.groups.sizes.max(initial=0)) > 1
    return data.columns.group is not None


def cut_and_count_groups(
    data: Rows, settings: CutParameters, assumptions: DataAssumptions
) -> Binned:
    """Cut bins from pilot groups, count the others, and determine how groups count.

    Edges and the cap on sizes come from groups that are not counted. Own-sample edges would need
    independent rows, and the largest size among the counted groups does not bound the size of a new
    group. If no cap is given, it is the largest size among a tenth of the groups or more: a new
    group is larger with probability 1 / (1 + pilot groups), so few groups count as fewer rows
    than they have.
    """
    weighted = has_weights(data)
    data = _checked(data, settings, assumptions, weighted)
    seed = seed_number(settings.random_state)
    segments = ChosenSegments()
    if data.columns.segment is not None:
        segments = chosen_segments(data, settings, seed, can_draw=False)
    data = data.pooled(segments.kept)
    n_groups = data.n_groups()
    sizes = data.sizes()
    is_given = settings._given_partition is not None
    fixed = is_given or settings._is_uniform
    # segments that the counted groups show were not fixed before these were seen
    known = is_given or settings._own_segments is not None or list(sizes) == [None]
    pilot = _pilot_size(settings, assumptions, n_groups, fixed, known)
    draw = data.draw(pilot, seed) if pilot else None
    parts = Split({}, sizes, data) if draw is None else data.split_by(draw)
    partition = _partition(settings, assumptions, sizes, n_groups, parts.drawn)
    tally, classes, reach = parts.others.tally_and_reach(partition)
    reach = sum(map(Reach.of, parts.drawn.values()), reach)
    table = tally.groups
    if table is None or not table.n_groups:
        raise too_few_groups(n_groups)
    largest = assumptions.max_group_size
    if largest is None:
        # by region: a group counts by the rows that it has in a region, not by all of its rows
        of_pilot = data.group_counts(partition, classes.positive, draw=draw, aside=True)
        largest = max(1, int(of_pilot.rows.max(initial=1)))
    if weighted:
        # bets take the weights of groups from the rows; the tally only shows sums
        tally, _ = parts.others.without_groups().tally(partition, weighted=True)
    elif assumptions.group_target == "rows":
        tally = replace(tally, groups=table.without_sizes())
    unseen = {name for name in sizes if not len(parts.drawn.get(name, ()))}
    design = GroupDesign(
        largest,
        assumptions.group_target,
        n_groups - table.n_groups,
        () if known else _regions_without(partition, unseen),
        fixed=is_given,
        order=_order_of_bets(data, seed),
    )
    if in_memory(data) and weighted:
        most = _most_weight(data, draw, partition, design, assumptions)
        design = replace(design, max_weight=most)
    few = data.row_sums().has_few_values
    facts = RowFacts(skipped=data.skipped_rows(), pooled=segments.pooled, over_seed=few)
    return Binned(
        partition,
        tally,
        classes,
        reach,
        parts.others,
        facts,
        data,
        parts.drawn,
        design,
        assumptions,
    )


def _checked(
    data: Rows, settings: CutParameters, assumptions: DataAssumptions, weighted: bool
) -> Rows:
    """The rows, in memory if they have weights; raise an error for what groups do not allow."""
    if weighted:
        data = data.collect()
        checked_bound(weights_of(data), assumptions.weight_bound)
    if settings._fewest_rows is not None:
        advice = "name the segments, or use the default"
        raise InvalidValueError(
            "segment_rule", "not be a number with groups", repr(settings.segment_rule), advice
        )
    return data


def _order_of_bets(data: Rows, seed: int) -> int:
    """The seed of the order of bets on these groups: a whole number that every JSON reader keeps."""
    return RandomSource.of(seed, "order of bets", rows=data.fingerprint()).key >> 11


def _most_weight(
    data: MemoryRows,
    draw: Draw | None,
    partition: Partition,
    design: GroupDesign,
    assumptions: DataAssumptions,
) -> float:
    """The largest weight of a group in a region: as stated, or the largest among pilot groups."""
    if draw is not None and assumptions.max_group_size is None:
        aside = data.take(data.chosen(draw))
        regions = partition.membership(aside.prepared)
        totals = aside.units.in_cells(regions, partition.n_regions).total
        if totals.size:
            return float(totals.max())
    if assumptions.weight_bound is None:
        raise InvalidValueError(
            "weight_bound", "be given with importance weights and max_group_size", got="None"
        )
    return float(design.max_size * assumptions.weight_bound)


def _pilot_size(
    settings: CutParameters,
    assumptions: DataAssumptions,
    n_groups: int,
    fixed: bool,
    known: bool = True,
) -> float:
    """The number of pilot groups, as an int, or a fraction of the groups.

    It must not depend on the rows of groups.

    `fixed` says that the bins were fixed beforehand, `known` that the segments were. If the pilot
    groups also set the cap on sizes, they are at least a tenth of the groups, whatever is requested.
    """
    pilot = settings.pilot
    # whether pilot groups determine the number of rows that a group counts as
    learned = assumptions.max_group_size is None and assumptions.group_target == "rows"
    if not fixed and pilot is None:
        rule = (
            "be ",
            Setting("pilot", "auto"),
            ", or a fraction or number of groups, where rows have groups",
        )
        raise InvalidValueError("pilot", rule, got="None")
    if not fixed and isinstance(pilot, float):
        return max(pilot, PILOT_SHARE) if learned else pilot
    if fixed and known and assumptions.max_group_size is not None:
        return 0
    if n_groups < 2:
        raise too_few_groups(n_groups)
    if fixed:
        return n_pilot_groups(n_groups, 1)
    asked = (
        groups_that_cut(n_groups, settings._bins_for(n_groups))
        if isinstance(pilot, str)
        else int(pilot or 1)
    )
    least = n_pilot_groups(n_groups, 1) if learned else 1
    return min(max(asked, least), n_groups - 1)


def n_pilot_groups(n_groups: int, n_bins: int) -> int:
    """The number of pilot groups, which cut bins and set the cap on sizes: at least a tenth of all
    groups.

    >>> [n_pilot_groups(n, 10) for n in (20, 1000, 100_000)]
    [10, 128, 10000]
    """
    wanted = max(groups_that_cut(n_groups, n_bins), fewest_pilot_groups(n_groups))
    return min(wanted, n_groups - 1)


def groups_that_cut(n_groups: int, n_bins: int) -> int:
    """The number of groups that cut bins: the share of rows that would, if each group had three
    rows.

    It does not depend on the number of rows: given that number, groups are not independent.

    >>> [groups_that_cut(n, 10) for n in (20, 1000, 100_000)]
    [10, 128, 2761]
    """
    about = 3 * n_groups
    return int(min(max(round(n_groups * split_size(about, n_bins) / about), 1), n_groups - 1))


def too_few_groups(n_groups: int, advice: Text = _FIX_THE_BINS) -> InvalidValueError:
    """The error if no group is left to count."""
    rule = "be at least two, because some are pilot groups and the others are counted"
    return InvalidValueError("groups", rule, got=counted(n_groups, "group"), advice=advice)


def _partition(
    settings: CutParameters,
    assumptions: DataAssumptions,
    sizes: Mapping[Hashable, int],
    n_groups: int,
    drawn: Mapping[Hashable, Any],
) -> Partition:
    """The regions: as given, of equal width, or between quantiles of the drawn rows."""
    if settings._given_partition is not None:
        return settings._given_partition
    n_drawn = sum(map(len, drawn.values()))

    def cut(name: Hashable) -> ScorePartition:
        # by the rows set aside: given how many rows of a segment are counted, groups are not
        # independent
        share = len(drawn[name]) / n_drawn if n_drawn else 1.0 / len(sizes)
        n_bins = settings._bins_for(n_groups * share)
        if settings._is_uniform:
            return equal_width(n_bins, assumptions)
        scores = drawn[name]
        if not len(scores):
            return ScorePartition(np.empty(0))
        n_bins = min(n_bins, len(scores))
        if np.unique(scores).size < len(scores):
            return ScorePartition.from_tied_scores(scores, n_bins)
        return ScorePartition.from_other_scores(scores, n_bins)

    return joined_bins(each_part({name: name for name in sizes}, cut))


def _regions_without(partition: Partition, unseen: set[Any]) -> tuple[int, ...]:
    """Regions of these segments."""
    if not unseen:
        return ()
    bins = partition.as_bins()
    inside = np.isin(
        bins.layout.cells.segment,
        [n for n, name in enumerate(bins.bins_by_segment) if name in unseen],
    )
    return tuple(np.flatnonzero(inside).tolist())
