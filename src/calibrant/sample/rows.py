"""Scored rows: what is drawn from them and counted, wherever they are.

A source passes batches to a function and adds the results (`calibrant.sample.row_source`). The
split, the order statistics and the tally are written once, here. Rows in memory and on a device use
their own kernels for some of it. Users see a `Sample`, which holds such rows.

The steps of `fit`, for each source:

- from scores: `read_rows` checks arrays, the bins are cut at order statistics, `tally` counts, the
  guarantee follows;
- from Parquet: `scored` names files and columns, two passes of `fold` find the order statistics,
  one counts;
- from the command line: the options become `scored` data and a calibrator, and `fit` continues as
  from Parquet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._typing import FloatArray, IntArray, Seed
from calibrant.cells.group_counts import GroupCounts
from calibrant.cells.knots import Knots
from calibrant.cells.partition import Partition
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.tally import Tally
from calibrant.errors import InvalidValueError
from calibrant.params.labels import Classes, settle_classes
from calibrant.params.random import Draw, RandomSource, draw_key, enough, mixed
from calibrant.sample.batch import missing_column
from calibrant.sample.counts import Count, Counted, CountKnots, of_one_label
from calibrant.sample.facts import Reach
from calibrant.sample.faults import Faults
from calibrant.sample.group_rows import MOST_PASSES, CountGroups, ManyGroupsError
from calibrant.sample.groups import Groups
from calibrant.sample.order_statistics import (
    BitCounts,
    CountBits,
    everything,
    refine,
)
from calibrant.sample.row_keys import check_ids
from calibrant.sample.row_source import RowSource
from calibrant.sample.settled import check_same_rows, settle
from calibrant.sample.taken_rows import (
    COLLECT_LIMIT,
    FindSmallest,
    FindValues,
    Taken,
    TakeRows,
    Values,
    joined_codes,
    sorted_segments,
)

if TYPE_CHECKING:
    from calibrant.sample.sources.memory import MemoryRows


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """The scores of the drawn rows of each segment, the number of rows of each segment, and the
    data without drawn rows.
    """

    drawn: Mapping[Hashable, FloatArray]
    sizes: Mapping[Hashable, int]
    others: Rows


class Rows(RowSource):
    """Scored rows, wherever they are: the protocol that `fit` and similar methods work with."""

    def split(self, split: float, random_state: Seed) -> Split:
        """Draw a random part of the rows, by position or id: a fraction, or an exact number of
        rows.
        """
        one_draw = self.columns.segment is None and self.columns.group is None
        if one_draw and not isinstance(
            split, float | np.floating
        ):  # finds the limit and the rows in one pass
            return self.first_rows(random_state, {None: int(split)}, self.sizes())
        return self.split_by(self.draw(split, random_state))

    def draw(self, split: float, random_state: Seed) -> Draw:
        """Return the draw of a fraction, which keeps each row with that probability, or of an exact
        number of rows.
        """
        key = draw_key(random_state, self.fingerprint())
        if isinstance(split, float | np.floating):
            return Draw.of_share(key, float(split))
        return Draw(key, self.hash_limit(key, int(split)))

    def hash_limit(self, key: int, rows: int) -> int:
        """Return the limit that draws exactly `rows` rows."""
        return self.fold(FindSmallest(self.columns, key, rows)).limit

    def split_by(self, draw: Draw) -> Split:
        """Return the drawn rows and the others; the choice does not depend on scores or labels."""
        return self._split(self.sample(draw), draw)

    def first_rows(
        self, random_state: Seed, most: Mapping[Hashable, int], sizes: Mapping[Hashable, int]
    ) -> Split:
        """Draw exactly `most` rows of each segment, those with the smallest hashes.

        They contain any smaller draw.
        """
        key = draw_key(random_state, self.fingerprint())
        limits = {name: enough(rows, sizes[name]) for name, rows in most.items()}
        return self._split(*self.sample(Draw(key, limits=limits)).first(key, most))

    def _split(self, taken: Taken, draw: Draw) -> Split:
        return Split(
            taken.scores(), self._checked_sizes(taken.sizes), self._changed(_left_out=(draw, taken))
        )

    def sample(self, draw: Draw) -> Taken:
        """Return the drawn rows.

        Their labels are kept for `drawn_rows`. Edges cannot depend on them, because only
        `Taken.scores` are used to cut bins.
        """
        taken = self.fold(TakeRows(self.columns.only("label", "segment", "id", "group"), draw))
        if self.columns.id is not None:
            check_ids(taken.ids, self.columns.id)
        return taken

    def collect(self, *, draw: Draw | None = None, limit: int = COLLECT_LIMIT) -> MemoryRows:
        """Return the rows in memory, in order; with a draw, only the drawn rows.

        With an id, rows are sorted by a hash of the ids, so that the order does not depend on how
        they are stored. More rows than `limit` raise an error. Every `fit` accepts the result in
        place of these data.
        """
        if self.columns.label is None:
            raise missing_column("label")
        return self._in_memory(self.fold(TakeRows(self.columns, draw, limit)), draw)

    def _in_memory(self, taken: Taken, draw: Draw | None) -> MemoryRows:
        """Return the taken rows, with their labels."""
        from calibrant.sample.sources.memory import MemoryRows

        batches = taken.in_order()
        if draw is not None and self.columns.id is not None:
            check_ids(taken.ids, self.columns.id)
        labels = [rows.labels for rows in batches if rows.labels is not None]
        seen: Counter[Hashable] = Counter()
        for coded in labels:
            seen.update(coded.rows())
        known = settle_classes(seen, classes=self._classes, pos_label=self._pos_label)
        rows = MemoryRows(
            np.concatenate([part.scores for part in batches]),
            joined_codes(labels, lambda kind: int(kind == known.positive)).astype(np.uint8),
            known,
            weights=(
                None
                if self.columns.weight is None
                else np.concatenate([part.weights for part in batches])
            ),
            skipped=taken.sizes.skipped,
            groups=None if self.columns.group is None else Groups.of_keys(taken.keys()),
            bounds=self.bounds,
        )
        if self.columns.segment is not None:
            segments = [part.segments for part in batches if part.segments is not None]
            names = sorted_segments(
                {name for coded in segments for name in coded.names}, self.columns
            )
            rows = rows.in_segments(names, joined_codes(segments, names.index))
        return (
            rows
            if self.columns.id is None
            else rows.take(np.argsort(mixed(taken.keys()), kind="stable"))
        )

    def values(self, most: int) -> dict[Hashable, Values]:
        """Return the distinct scores of all rows (None) and of each segment, unless there are more
        than `most`.
        """
        seen = self.fold(FindValues(self.columns, most))
        seen.faults.check()
        whole = [None] if None in seen.values else []
        return {
            name: seen.values[name]
            for name in [*whole, *sorted_segments(seen.values, self.columns)]
        }

    def order_statistics(self, ranks: Mapping[Hashable, IntArray]) -> dict[Hashable, FloatArray]:
        """Return the exact scores at these ranks in each segment, in two passes.

        Billions of rows need more passes.
        """
        found: dict[Hashable, FloatArray] = {
            name: np.empty(0) for name, wanted in ranks.items() if not wanted.size
        }
        runs = {name: everything() for name in ranks if name not in found}
        drawn = {} if self._left_out is None else self._left_out[1].scores()
        while runs:
            seen = self.fold(CountBits(self.columns, runs))
            seen.faults.check()
            seen -= BitCounts.of(drawn.items(), runs, Faults())
            for name in list(runs):
                here = {
                    number: counts
                    for (segment, number), counts in seen.counts.items()
                    if segment == name
                }
                shorter, values = refine(runs[name], here, ranks[name])
                if values is None:
                    runs[name] = shorter
                else:
                    found[name] = values
                    del runs[name]
        return found

    def tally(self, partition: Partition, *, weighted: bool = False) -> tuple[Tally, Classes]:
        """Return the tally over a partition, without rows drawn to cut it, and the classes."""
        return self.tally_and_reach(partition, weighted=weighted)[:2]

    def tally_and_reach(
        self, partition: Partition, *, weighted: bool = False
    ) -> tuple[Tally, Classes, Reach]:
        """Return the tally, the classes, and the range of the counted scores."""
        if partition.has_absorbed:
            bins = partition.as_bins()
            cells, classes, reach = self.tally_and_reach(bins.cells, weighted=weighted)
            return cells.regrouped(bins.count_regions, bins), classes, reach
        draw, taken = (None, None) if self._left_out is None else self._left_out
        counted = self.count(partition, draw=draw, weighted=weighted)
        counted.faults.check()
        check_same_rows(counted, taken)
        try:
            tally, known = settle(counted, partition, self._classes, self._pos_label, weighted)
        except InvalidValueError:  # about labels, or about the positive one
            if draw is None:
                raise
            # drawn rows may have the only labels of a class; an error reports the labels of all rows
            every = self.count(partition)
            known = settle(every, partition, self._classes, self._pos_label, weighted=False)[1]
            tally = settle(counted, partition, known.labels, known.positive, weighted)[0]
        if self.columns.group is not None and self._counts_groups:
            groups = self.group_counts(partition, known.positive, draw=draw)
            tally = replace(tally, groups=groups)
        return tally, known, counted.reach

    def group_counts(
        self,
        partition: Partition,
        positive: Any,
        *,
        draw: Draw | None = None,
        aside: bool = False,
    ) -> GroupCounts:
        """Count groups by their rows and positives in each region: groups not drawn or, with
        `aside`, drawn groups.
        """
        return self.exchange(CountGroups(self.columns, partition.as_bins(), positive, draw, aside))

    def exchange(self, work: CountGroups) -> GroupCounts:
        """Bring the rows of each group together, in one pass, or in several passes that each handle
        some of the groups.
        """
        passes = 1
        while True:
            try:
                first, *others = (self.fold(part).table() for part in work.split(passes))
                return sum(others, first)
            except ManyGroupsError:
                if passes == MOST_PASSES:
                    raise
                passes *= 4

    def n_groups(self) -> int:
        """Return the number of groups, if rows have groups."""
        return self.group_counts(ScorePartition(np.empty(0)), None).n_groups

    def count(
        self, partition: Partition, *, draw: Draw | None = None, weighted: bool = False
    ) -> Counted:
        """Count rows by region and label."""
        bins = partition.as_bins()
        for role, is_needed in (
            ("label", True),
            ("segment", bins.has_segments),
            ("weight", weighted),
        ):
            if is_needed and getattr(self.columns, role) is None:
                raise missing_column(role)
        return self.fold(Count(self.columns, bins, draw, weighted, self._many_rows()))

    def drawn_rows(self, whole: Rows, classes: Classes, most: int | None = None) -> MemoryRows:
        """Return the rows of `whole` that were drawn before these remained, with their labels.

        If they are more than `most`, at most that many, at equal steps.
        """
        named = whole.with_classes(classes.labels.tolist(), classes.positive)
        draw, taken = (Draw(0), None) if self._left_out is None else self._left_out
        if taken is None or not taken.has_labels or whole.columns.weight is not None:
            return named.collect(draw=draw).thinned(most)
        return named._in_memory(taken, draw).thinned(most)

    def counted_rows(self) -> MemoryRows:
        """Return the rows that remain after a draw, in memory, without the rows of drawn groups."""
        rows = self.collect()
        return rows if self._left_out is None else rows.take(~rows.chosen(self._left_out[0]))

    def count_knots(
        self, knots: Knots, classes: Classes, source: RandomSource
    ) -> tuple[IntArray, Reach]:
        """Count rows by place, half and label, without drawn rows, and find the range of their
        scores; see `Knots.count`.
        """
        draw, taken = (None, None) if self._left_out is None else self._left_out
        work = CountKnots(
            self.columns,
            knots.regions,
            draw,
            pass_rows=self._many_rows(),
            knots=knots,
            source=source,
        )
        counted = self.fold(work)
        counted.faults.check()
        check_same_rows(counted, taken)
        settle_classes(
            {kind: tally.n_rows for kind, tally in counted.kinds.items() if tally.n_rows},
            classes=classes.labels,
            pos_label=classes.positive,
        )
        nothing = of_one_label(np.zeros(2 * knots.n_places, dtype=np.int64))
        labels = (classes.negative, classes.positive)
        of_labels = [
            counted.kinds.get(label, nothing).counts.reshape(knots.n_places, 2) for label in labels
        ]
        return np.stack(of_labels, axis=-1), counted.reach
