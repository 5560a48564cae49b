"""Rows that belong together: bins cut from whole groups, and limits by bets on the sums of groups."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from calibrant._numbers import counted
from calibrant._params import CheckedParameters, Choice, Integer, Optional, Rules, check_state
from calibrant._text import Setting
from calibrant.calibrators._bins import Binned, CutParameters, _chosen_segments, _each, _joined, split_size
from calibrant.errors import InvalidValueError
from calibrant.guarantee.statement import Edges, GroupFacts, Statement
from calibrant.intervals.groups import TARGETS, GroupDesign, GroupSums
from calibrant.partition import Partition, ScorePartition
from calibrant.rows import ScoredData
from calibrant.rows.draw import seed_of
from calibrant.rows.facts import RowFacts
from calibrant.rows.memory import MemoryRows
from calibrant.rows.reach import Reach
from calibrant.tally import Tally

THEOREM = "Ville's inequality for bets on the sums of whole groups, by Bonferroni over regions"
_SHARE = 0.1  # of groups set aside to find the size limit, where none are needed to cut bins
EXACT = "clopper-pearson"
"""The default interval, in whose place groups have that of "betting"."""


@dataclass(eq=False, repr=False, kw_only=True)
class GroupParameters(CheckedParameters):
    """The parameters of calibrators whose rows may belong together."""

    _parameter_rules: ClassVar[Rules] = {"max_group_size": Optional(Integer(1)), "group_target": Choice(TARGETS)}

    interval: str
    strategy: str
    partition: Partition | None
    max_group_size: int | None = None
    group_target: str = "rows"

    def _check_group_interval(self) -> None:
        """Refuse an interval that groups do not have."""
        if self.interval != EXACT:
            rule = "be left as it is with groups, whose interval is that of betting"
            raise InvalidValueError("interval", rule, repr(self.interval))

    def _cuts(self) -> bool:
        """Whether bins are cut from rows."""
        return self.strategy == "quantile" and self.partition is None


def read_groups(data: ScoredData, settings: GroupParameters) -> tuple[ScoredData, bool]:
    """The rows, and whether they have groups that matter: not where each row is its own group, and is said to be.

    What is said without groups assumes that there are no larger ones anywhere. Where that is true, nothing else is ever
    said; where it is not, only what is said of groups counts. So this look at the sizes costs no part of alpha.
    """
    if isinstance(data, MemoryRows) and data.groups is not None and settings.max_group_size == 1:
        alone = int(data.groups.sizes.max(initial=0)) <= 1
        return (replace(data, groups=None), False) if alone else (data, True)
    return data, data.columns.group is not None


def cut_and_count_groups(data: ScoredData, settings: Any) -> tuple[Binned, GroupDesign]:
    """Cut bins from whole groups that are set aside, count the others, and settle how groups count.

    Edges and the size limit come from groups that are not counted. Own-sample edges would need independent rows, and
    the largest size among the counted groups is no limit on the size of a new group.
    """
    settings._check_group_interval()
    if data.columns.weight is not None:
        raise InvalidValueError("weight", "be None where rows have groups", got=repr(data.columns.weight))
    seed = seed_of(settings.random_state)
    if isinstance(settings.min_rows, int):
        advice = ("name the segments with ", Setting("keep_segments"))
        raise InvalidValueError("min_rows", "be left as it is with groups", repr(settings.min_rows), advice)
    segments = _chosen_segments(data, settings, seed, can_draw=False)
    data = data if segments is None else data.pooled(segments.kept)
    n_groups, sizes = data.n_groups(), data.sizes()
    fixed = settings.partition is not None or settings.strategy == "uniform"
    known = settings.partition is not None or settings.keep_segments is not None or list(sizes) == [None]
    aside = _aside(settings, n_groups, fixed, known)
    draw, parts = None, None
    if aside:
        draw = data.draw(aside, seed)
        parts = data.split_by(draw)
    drawn = {} if parts is None else parts.drawn
    partition = _partition(settings, sizes, n_groups, drawn)
    others = data if parts is None else parts.others
    tally, classes, reach = others.tally_and_reach(partition)
    if parts is not None:
        reach = sum(map(Reach.of, parts.drawn.values()), reach)
    table = tally.groups
    if table is None or not table.n_groups:
        raise _too_few(n_groups)
    largest = settings.max_group_size
    if largest is None:
        seen = data.group_counts(partition, classes.positive, draw=draw, aside=True)
        largest = max(1, int(seen.rows.max(initial=1)))
    if settings.group_target == "rows":
        tally = replace(tally, groups=table.without_sizes())
    unproved = () if known else _regions_without(partition, {name for name in sizes if not len(drawn.get(name, ()))})
    design = GroupDesign(largest, settings.group_target, n_groups - table.n_groups, unproved)
    facts = RowFacts(skipped=data.skipped_rows(), pooled=() if segments is None else segments.pooled)
    return Binned(partition, tally, classes, reach, others, facts, data), design


def _aside(settings: Any, n_groups: int, fixed: bool, known: bool = True) -> float:
    """How many groups are set aside, as an int; or a fraction of them. It must not depend on the rows of groups.

    `fixed` tells that bins are, and `known` that segments are.
    """
    if not fixed and settings.split is None:
        rule = ("be ", Setting("split", "auto"), ", or a fraction or number of groups, where rows have groups")
        raise InvalidValueError("split", rule, got="None")
    if not fixed and not isinstance(settings.split, str):
        return settings.split if isinstance(settings.split, float) else min(int(settings.split), max(n_groups - 1, 1))
    if fixed and known and settings.max_group_size is not None:
        return 0
    if n_groups < 2:
        raise _too_few(n_groups)
    if fixed:
        return max(round(_SHARE * n_groups), 1)
    return groups_that_cut(n_groups, _bins_for(settings, n_groups))


def groups_that_cut(n_groups: int, n_bins: int) -> int:
    """How many groups cut bins: the share of rows that would, if these were three times as many as the groups.

    It does not depend on the rows that there are: given their number, groups are not independent.

    >>> [groups_that_cut(n, 10) for n in (20, 1000, 100_000)]
    [10, 128, 2761]
    """
    about = 3 * n_groups
    return int(min(max(round(n_groups * split_size(about, n_bins) / about), 1), n_groups - 1))


def _too_few(n_groups: int) -> InvalidValueError:
    rule = "be at least two, because some groups are set aside and others are counted"
    advice = ("use more groups, or set ", Setting("max_group_size"), " and fix the bins beforehand")
    return InvalidValueError("groups", rule, got=counted(n_groups, "group"), advice=advice)


def _bins_for(settings: CutParameters, n_groups: float) -> int:
    return settings._automatic_bins(max(1, int(n_groups))) if settings.n_bins == "auto" else int(settings.n_bins)


def _partition(settings: CutParameters, sizes: Mapping[Any, int], n_groups: int, drawn: Mapping[Any, Any]) -> Partition:
    """The regions: as given, of equal width, or between quantiles of the drawn rows."""
    if settings.partition is not None:
        return settings.partition
    n_drawn = sum(map(len, drawn.values()))

    def cut(name: Hashable) -> ScorePartition:
        # by the rows set aside: given how many rows of a segment are counted, groups are not independent
        share = len(drawn[name]) / n_drawn if n_drawn else 1.0 / len(sizes)
        n_bins = _bins_for(settings, n_groups * share)
        if settings.strategy == "uniform":
            return ScorePartition.fixed_width(n_bins, settings.score_range or (0.0, 1.0))
        scores = drawn[name]
        if not len(scores):
            return ScorePartition(np.empty(0))
        n_bins = min(n_bins, len(scores))
        if np.unique(scores).size < len(scores):
            return ScorePartition.from_tied_scores(scores, n_bins)
        return ScorePartition.from_other_scores(scores, n_bins)

    return _joined(_each({name: name for name in sizes}, cut))


def _regions_without(partition: Partition, segments: set[Any]) -> tuple[int, ...]:
    """Regions of these segments."""
    if not segments:
        return ()
    bins = partition.as_bins()
    inside = np.isin(bins.layout.cells.segment, [n for n, name in enumerate(bins.bins_by_segment) if name in segments])
    return tuple(np.flatnonzero(inside).tolist())


def said_of_groups(statement: Statement, tally: Tally, design: GroupDesign, *, cut: bool) -> Statement:
    """The statement about rows of new groups; `cut` tells that bins were cut from groups set aside."""
    n_groups = 0 if tally.groups is None else tally.groups.n_groups
    effect = GroupSums.of(tally, design).design_effect
    return replace(
        statement,
        theorem=THEOREM,
        edges=Edges.OTHER_ROWS if cut else statement.edges,
        groups=GroupFacts(n_groups, design.aside, design.max_size, design.target, effect),
    )


def saved_design(state: Mapping[str, Any], tally: Tally) -> GroupDesign | None:
    """How groups count, in a state; None for rows without groups."""
    if tally.groups is None:
        return None
    check_state(state, ("groups",))
    design = GroupDesign.from_dict(state["groups"])
    if max(design.unproved, default=0) >= tally.n_regions:
        raise InvalidValueError("unproved", f"be regions below {tally.n_regions}", got=repr(list(design.unproved)))
    return design
