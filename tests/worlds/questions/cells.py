"""Counting: partitions, tallies, groups, exact sums."""

from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from calibrant import BinningCalibrator, Partition, Tally
from calibrant.cells.exact_sums import ExactSums
from calibrant.cells.group_counts import GroupCounts
from calibrant.cells.score_partition import ScorePartition, edge_ranks, equal_mass, middle_ranks
from calibrant.cells.tally import WeightSums
from worlds.questions.base import (
    ATOMS,
    GRID,
    QUESTIONS,
    SMOOTH,
    TIED,
    Text,
    of_state,
    question,
    refused,
    tried,
)


def bins_of() -> dict[str, Partition]:
    """Partitions of every kind."""
    return {
        "fixed": Partition.fixed_width(4),
        "fixed range": Partition.fixed_width(3, (-1.0, 2.0)),
        "edges": Partition.from_edges([0.1, 0.4, 0.9]),
        "edges in a range": Partition.from_edges([0.1, 0.4], (0.0, 1.0)),
        "mass": Partition.uniform_mass(SMOOTH.scores, 5),
        "tied mass": Partition.uniform_mass(TIED.scores, 4),
        "atoms": Partition.atoms([0.0, 0.1, 0.5, 1.0]),
        "own sample": BinningCalibrator(4, pilot=None).fit(SMOOTH.scores, SMOOTH.y).partition_,
        "own ties": BinningCalibrator(4, pilot=None).fit(TIED.scores, TIED.y).partition_,
        "absorbing": BinningCalibrator(4).fit(ATOMS.scores, ATOMS.y).partition_,
        "segments": Partition.by_segment(
            {"north": Partition.fixed_width(2), "south": Partition.fixed_width(3)}
        ),
        "segments and others": Partition.by_segment(
            {"north": Partition.fixed_width(2)}, Partition.fixed_width(3)
        ),
    }


for _name in bins_of():

    def of_bins(name: str = _name) -> Any:
        bins = bins_of()[name]
        named = {"segments": np.repeat(["north", "south"], 5)} if bins.has_segments else {}
        values = tried(lambda: bins.prepare(GRID, **named))
        found: list[Any] = [
            bins.n_regions,
            list(bins.describe()),
            bins.has_absorbed,
            bins.cuts_own_sample,
        ]
        if not isinstance(values, Text):
            found += [bins.assign(GRID, **named), bins.membership(values)]
            found += [bins.look_up(values, np.arange(bins.n_regions) / 10.0)]
            found += [bins.count(values, np.arange(10, dtype=np.uint8) % 2)]
        for part in getattr(bins, "parts", ()):
            found += [
                part.edges,
                part.cuts,
                part.count_cuts,
                part.bounds,
                part.is_atom,
                part.is_tied,
            ]
            found += [part.is_absorbed, part.rows_after]
        found += [bins == bins_of()[name], hash(bins) == hash(bins_of()[name])]
        return [found, of_state(Partition.from_dict, bins, type(bins).to_dict, most=120)]

    QUESTIONS[f"partition {_name}"] = of_bins


@question
def partitions_of_functions() -> Any:
    rows = np.stack([SMOOTH.scores, SMOOTH.new], axis=1)
    by_sum = Partition.from_function(lambda X: (X.sum(axis=1) > 1.0).astype(int), 2)
    by_name = Partition.from_function(lambda X: np.where(X[:, 0] > 0.5, "b", "a"), ["a", "b"])
    tree = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(rows, SMOOTH.y)
    leaves = Partition.from_tree(tree)
    found = []
    for bins in (by_sum, by_name, leaves):
        found += [bins.n_regions, list(bins.describe()), bins.assign(rows[:20])]
        tally = Tally.from_data(bins, rows, SMOOTH.y)
        # the fingerprint of a function depends on the file that it is in
        found += [tally.counts, tally.positives, bins.fingerprint == bins.fingerprint]
    wrong = Partition.from_function(lambda X: np.full(len(X), 7), 2)
    short = Partition.from_function(lambda X: np.zeros(3, dtype=int), 2)
    return [
        found,
        refused(lambda: wrong.assign(rows)),
        refused(lambda: short.assign(rows)),
        refused(lambda: by_sum.assign(rows, segments=SMOOTH.segments)),
        refused(lambda: by_sum.to_dict()),
        refused(lambda: Partition.from_function("f", 2)),
        refused(lambda: Partition.from_function(len, 0)),
        refused(lambda: Partition.from_function(len, 10**7)),
        refused(lambda: Partition.from_function(len, 10**7 + 1)),
        refused(lambda: Partition.from_function(len, ["a", "a"])),
        refused(lambda: Partition.from_function(len, [])),
        refused(lambda: Partition.from_tree("tree")),
    ]


@question
def refusals_of_partitions() -> Any:
    return [
        refused(lambda: Partition.fixed_width(0)),
        refused(lambda: Partition.fixed_width(1)),
        refused(lambda: Partition.fixed_width(2, (1.0, 0.0))),
        refused(lambda: Partition.fixed_width(2, (0.0, 0.0))),
        refused(lambda: Partition.fixed_width(2, (0.0, np.inf))),
        refused(lambda: Partition.from_edges([0.5, 0.5])),
        refused(lambda: Partition.from_edges([0.6, 0.5])),
        refused(lambda: Partition.from_edges([np.nan])),
        refused(lambda: Partition.from_edges([])),
        refused(lambda: Partition.from_edges([0.0, 0.5], (0.0, 1.0))),
        refused(lambda: Partition.from_edges([0.5, 1.0], (0.0, 1.0))),
        refused(lambda: Partition.uniform_mass([0.1, 0.2], 3)),
        refused(lambda: Partition.uniform_mass([0.1, 0.2, 0.3], 3)),
        refused(lambda: Partition.uniform_mass([0.1, 0.2], 2)),
        refused(lambda: Partition.uniform_mass([], 1)),
        refused(lambda: Partition.atoms([])),
        refused(lambda: Partition.atoms([0.1, 0.1])),
        refused(lambda: Partition.by_segment({})),
        refused(lambda: Partition.by_segment({"a": 5})),
        refused(lambda: Partition.by_segment({"a": Partition.fixed_width(2)}, 5)),
        refused(lambda: Partition.fixed_width(2).assign([1.5])),
        refused(lambda: Partition.fixed_width(2).assign([1.0, 0.0])),
        refused(lambda: Partition.fixed_width(2).assign([np.nan])),
        refused(lambda: Partition.fixed_width(2).assign([0.5], segments=["a"])),
        refused(lambda: Partition.by_segment({"a": Partition.fixed_width(2)}).assign([0.5])),
        refused(lambda: Partition.by_segment({"a": Partition.fixed_width(2)}).assign([0.5], ["b"])),
        refused(
            lambda: Partition.by_segment({"a": Partition.fixed_width(2)}).assign([0.5], ["a", "a"])
        ),
    ]


@question
def ranks_of_edges() -> Any:
    counts = np.array([3, 0, 7, 1, 1, 20, 4])
    masses = [equal_mass(counts, bins) for bins in (1, 2, 3, 7, 40)]
    return [
        [edge_ranks(n, b) for n, b in ((10, 3), (100, 7), (5, 5))],
        middle_ranks(counts),
        masses,
    ]


@question
def bins_of_pilot_scores() -> Any:
    found = []
    for scores in (SMOOTH.scores, TIED.scores, ATOMS.scores, SMOOTH.scores[:7]):
        for n_bins in (1, 2, 5):
            for aside in (0, 30):
                found.append(
                    ScorePartition.from_other_scores(scores, n_bins, aside=aside).to_dict()
                )
                tied = tried(ScorePartition.from_tied_scores, scores, n_bins, aside=aside)
                found.append(tied if isinstance(tied, Text) else tied.to_dict())
    return found


def tallies() -> dict[str, Tally]:
    """Tallies of every kind."""
    bins = Partition.fixed_width(3)
    groups = GroupCounts.of([0, 0, 1, 2, 2, 1], [1, 0, 1, 1, 0, 0], [7, 7, 7, 8, 9, 9])
    of_groups = (
        BinningCalibrator(2)
        .fit(SMOOTH.scores[:200], SMOOTH.y[:200], groups=SMOOTH.groups[:200])
        .tally_
    )
    return {
        "plain": Tally.from_data(bins, SMOOTH.scores, SMOOTH.y),
        "weights": Tally.from_data(
            bins, SMOOTH.scores[:60], SMOOTH.y[:60], importance_weight=SMOOTH.weights[:60] / 7
        ),
        "groups": of_groups,
        "counts": Tally.from_counts([5, 0, 7], [1, 0, 7]),
        "few groups": Tally(np.array([2, 2, 2]), np.array([1, 1, 1]), 0, "x", groups=groups),
    }


for _name in ("plain", "weights", "groups", "counts", "few groups"):

    def of_tally(name: str = _name) -> Any:
        tally = tallies()[name]
        both = tally + tally
        part = tally.part(slice(0, 1))
        frame = tally.to_frame()
        found = [tally.rates, tally.n_rows, tally.n_regions, both, part, sum([tally, tally])]
        found += [tally == tallies()[name], tally == both, frame.to_numpy()]
        return [found, of_state(Tally.from_dict, tally, Tally.to_dict, most=150)]

    QUESTIONS[f"tally {_name}"] = of_tally


@question
def refusals_of_tallies() -> Any:
    some = tallies()
    bins = Partition.fixed_width(3)
    return [
        refused(lambda: some["plain"] + some["counts"]),
        refused(lambda: some["plain"] + some["weights"]),
        refused(lambda: some["plain"] + some["groups"]),
        refused(lambda: some["counts"] + some["counts"]),
        refused(lambda: Tally.from_counts([1, 2], [1])),
        refused(lambda: Tally.from_counts([1, 2], [1, 3])),
        refused(lambda: Tally.from_counts([1, 2], [1, 2])),
        refused(lambda: Tally.from_counts([1, -2], [0, -2])),
        refused(lambda: Tally.from_counts([1, 2], [0, -1])),
        refused(lambda: Tally.from_counts([1.5], [0])),
        refused(lambda: Tally.from_counts([], [])),
        refused(lambda: Tally.from_counts([1, 2], [0, 0], partition=bins)),
        refused(lambda: Tally.from_counts([1, 2, 3], [0, 0, 0], partition=bins)),
        refused(lambda: Tally.from_data(bins, [0.5, 0.6], [0])),
        refused(lambda: Tally.from_data(bins, [0.5], [2])),
        refused(lambda: Tally.from_data(bins, [0.5], [1], importance_weight=[-1.0])),
        refused(lambda: Tally.from_data(bins, [0.5], [1], importance_weight=[np.inf])),
        refused(lambda: Tally.from_data(bins, [0.5], [1], segments=["a"])),
    ]


@question
def counts_of_groups() -> Any:
    regions = (SMOOTH.scores[:120] * 4).astype(int)
    one = GroupCounts.of(regions, SMOOTH.y[:120], SMOOTH.groups[:120] % 30)
    two = GroupCounts.of(regions[:50], SMOOTH.y[:50], SMOOTH.groups[:50] % 9 + 100)
    both = one + two
    found = [
        both,
        one.part(slice(1, 3), 4),
        one.regrouped(np.array([2, -1, 0, 1])),
        refused(lambda: one.regrouped(np.array([0, 0, 1, 1]))),
        one.totals(4),
        one == two,
    ]
    found += [one.without_sizes(), refused(lambda: one.without_sizes() + two)]
    return [
        found,
        of_state(GroupCounts.from_dict, both, GroupCounts.to_dict, most=120),
    ]


@question
def exact_sums() -> Any:
    values = np.array([0.1, 1e-300, 1e300, 0.2, -0.3, 5e-324, 1.0, 2.0**60])
    groups = np.array([0, 0, 1, 1, 2, 2, 0, 1])
    sums = ExactSums.of(values, groups, 3)
    other = ExactSums.of(values[::-1].copy(), groups, 3)
    found = [
        sums.rounded(),
        (sums + other).rounded(),
        sums.part(slice(1, 3)).rounded(),
        len(sums),
        sums.to_list(),
    ]
    found += [
        sums == other,
        sums == ExactSums.of(values, groups, 3),
        sums.at_most(other),
        sums.at_most(sums),
    ]
    found += [
        sums.regrouped(np.array([0, 1, 0]), 2).rounded(),
        ExactSums.from_list(sums.to_list()) == sums,
    ]
    weights = WeightSums.of(
        np.array([1.0, 2.0, 0.5]), np.array([0, 1, 0]), np.array([1, 0, 1], dtype=np.uint8), 2
    )
    found += [weights.to_dict(), (weights + weights).to_dict(), weights.part(slice(0, 1)).to_dict()]
    return [
        found,
        refused(lambda: ExactSums.from_list([[np.inf]])),
        refused(lambda: ExactSums.from_list([["x"]])),
        refused(lambda: ExactSums.from_list(5)),
        of_state(WeightSums.from_dict, weights, WeightSums.to_dict),
    ]
