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

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._typing import FloatArray, IntArray, Seed
from calibrant.cells.group_counts import GroupCounts
from calibrant.cells.knots import Knots
from calibrant.cells.partition import Partition
from calibrant.cells.score_counts import ScoreSums
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.tally import Tally
from calibrant.errors import InvalidValueError
from calibrant.params.labels import Classes
from calibrant.params.random import Draw, RandomSource, draw_key, enough, mixed
from calibrant.sample.batch import Coded, missing_column
from calibrant.sample.counts import (
    Count,
    Counted,
    CountKnots,
    CountScores,
    check_counted,
    tally_of,
)
from calibrant.sample.facts import Reach
from calibrant.sample.group_rows import MOST_PASSES, CountGroups, ManyGroupsError
from calibrant.sample.groups import Groups
from calibrant.sample.order_statistics import (
    BitCounts,
    CountBits,
    Level,
    first_level,
)
from calibrant.sample.row_keys import check_ids
from calibrant.sample.row_source import RowSource
from calibrant.sample.taken_rows import (
    COLLECT_LIMIT,
    FindSmallest,
    Taken,
    TakeRows,
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

    _levels: Mapping[Hashable, Level] = MappingProxyType({})  # at which a draw counted all rows

    def split(self, split: float, random_state: Seed) -> Split:
        """Draw a random part of the rows, by position or id: a fraction, or an exact number of
        rows.
        """
        one_draw = self.columns.segment is None and self.columns.group is None
        if one_draw and not isinstance(
            split, float | np.floating
        ):  # finds the limit and the rows in one pass
            return self.first_rows(random_state, {None: int(split)})
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
        """Return the limit that draws exactly `rows` rows, or groups if rows have groups."""
        return self.fold(FindSmallest(self.columns, key, rows)).limit

    def split_by(self, draw: Draw) -> Split:
        """Return the drawn rows and the others; the choice does not depend on scores or labels."""
        return self._split(self.sample(draw), draw)

    def first_rows(
        self,
        random_state: Seed,
        most: Mapping[Hashable, int],
        ranks: Mapping[Hashable, IntArray] | None = None,
    ) -> Split:
        """Draw exactly `most` rows of each segment, those with the smallest hashes.

        They contain any smaller draw. If `ranks` of the other rows are needed later, the same pass
        reads the scores near them.
        """
        levels = None if ranks is None else self._near(ranks, most)
        key = draw_key(random_state, self.fingerprint())
        sizes = self.sizes()
        limits = {name: enough(rows, sizes[name]) for name, rows in most.items()}
        taken, draw = self.sample(Draw(key, limits=limits), levels).first(key, most)
        return self._split(taken, draw, levels)

    def _near(
        self, ranks: Mapping[Hashable, IntArray], drawn: Mapping[Hashable, int]
    ) -> dict[Hashable, Level] | None:
        """The scores near the given ranks, among the rows that are not drawn; None if there are
        many.
        """
        cells = self.survey(ranked=True).cells
        found = {
            name: first_level().around(cells.counts(name), wanted, drawn[name])
            for name, wanted in ranks.items()
            if wanted.size
        }
        return {name: level for name, level in found.items() if level is not None}

    def _split(
        self, taken: Taken, draw: Draw, levels: Mapping[Hashable, Level] | None = None
    ) -> Split:
        others = self._changed(_left_out=(draw, taken), _levels=levels or {})
        return Split(taken.scores(), self._checked_sizes(taken.survey), others)

    def sample(self, draw: Draw, levels: Mapping[Hashable, Level] | None = None) -> Taken:
        """Return the drawn rows, and the counts of all rows at some levels.

        Their labels are kept for `drawn_rows`. Edges cannot depend on them, because only
        `Taken.scores` are used to cut bins.
        """
        columns = self.columns.only("label", "segment", "id", "group")
        taken = self.fold(TakeRows(columns, draw, levels=levels or None))
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

        rows = taken.rows()
        if draw is not None and self.columns.id is not None:
            check_ids(taken.ids, self.columns.id)
        labels = rows.labels or Coded((), np.empty(0, dtype=np.intp))
        known = self.classes_among(labels.rows())
        hits = np.array([label == known.positive for label in labels.names], dtype=np.uint8)
        found = MemoryRows(
            rows.scores,
            hits[labels.number],
            known,
            weights=rows.weights,
            skipped=taken.survey.skipped,
            groups=None if self.columns.group is None else Groups.of_keys(rows.keys),
            bounds=self.bounds,
        )
        if rows.segments is not None:
            names = sorted_segments(rows.segments.names, self.columns)
            places = np.array([names.index(name) for name in rows.segments.names], dtype=np.intp)
            found = found.in_segments(names, places[rows.segments.number])
        by_id = self.columns.id is not None
        return found.take(np.argsort(mixed(rows.keys), kind="stable")) if by_id else found

    def values(self, most: int) -> dict[Hashable, FloatArray | None]:
        """Return the distinct scores of all rows (None) and of each segment; None in place of an
        array if there are more than `most`.

        The same pass reads what order statistics need.
        """
        seen = self.survey(ranked=True, most_values=most)
        seen.faults.check()
        whole = [None] if None in seen.values else []
        return {
            name: seen.values[name]
            for name in [*whole, *sorted_segments(seen.values, self.columns)]
        }

    def order_statistics(self, ranks: Mapping[Hashable, IntArray]) -> dict[Hashable, FloatArray]:
        """Return the exact scores at these ranks in each segment; None stands for all rows.

        The first of two passes is a survey, and a draw can be the second. Billions of rows need
        more passes.
        """
        found: dict[Hashable, FloatArray] = {
            name: np.empty(0) for name, wanted in ranks.items() if not wanted.size
        }
        levels = {name: first_level() for name in ranks if name not in found}
        taken = self._left_out[1]
        drawn = {} if taken is None else taken.scores()
        while levels:
            seen = self._at_levels(levels) - BitCounts.of(drawn, levels)
            for name, level in list(levels.items()):
                counts = level.part_of(seen.counts(name))
                finer, values = level.refined(counts, ranks[name])
                if values is not None:
                    found[name] = values
                    del levels[name]
                elif finer is not None:
                    levels[name] = finer
        return found

    def _at_levels(self, levels: Mapping[Hashable, Level]) -> BitCounts:
        """The rows in each cell of the levels, as known from passes made before, or from one more."""
        if all(level.runs is None for level in levels.values()):
            survey = self.survey(ranked=True)
            survey.faults.check()
            return survey.cells
        taken = self._left_out[1]
        known = self._levels
        if taken is not None and all(
            name in known and known[name].holds(level) for name, level in levels.items()
        ):
            return taken.survey.cells
        seen = self.fold(CountBits(self.columns, levels))
        seen.faults.check()
        return seen

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
        draw, taken = self._left_out
        counted = self.count(partition, draw=draw, weighted=weighted)
        check_counted(counted, taken)
        try:
            known = counted.classes(self.classes_among)
        except InvalidValueError:  # about labels, or about the positive one
            if draw is None:
                raise
            # drawn rows may have the only labels of a class; an error reports the labels of all rows
            known = self.count(partition).classes(self.classes_among)
        tally = replace(tally_of(counted, partition.n_regions, known, weighted), over=partition)
        if self.columns.group is not None and self._counts_groups:
            groups = self.group_counts(partition, known.positive, draw=draw)
            tally = replace(tally, groups=groups)
        return tally, known, counted.reach

    def tally_and_scores(self, partition: Partition) -> tuple[Tally, ScoreSums]:
        """Return the tally over regions that hold every row, and the sums of their scores."""
        counted = self.fold(CountScores(self.columns, partition.as_bins()))
        counted.faults.check()
        known = counted.classes(self.classes_among)
        if counted.scores is None:
            raise InvalidValueError("the data", "have at least one row", got="none")
        tally = tally_of(counted, partition.n_regions, known)
        return replace(tally, over=partition), counted.scores

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
        work = CountGroups(self.columns, partition.as_bins(), positive, draw, aside)
        passes = 1  # each brings the rows of some of the groups together
        while True:
            try:
                first, *others = (self.fold(part).table() for part in work.split(passes))
                return sum(others, first)
            except ManyGroupsError:
                if passes == MOST_PASSES:
                    raise
                passes *= 4

    def n_groups(self) -> int:
        """Return the number of groups; 0 without groups."""
        if self.columns.group is None:
            return 0
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
        return self.fold(Count(self.columns, bins, draw, weighted))

    def drawn_rows(self, whole: Rows, classes: Classes, most: int | None = None) -> MemoryRows:
        """Return the rows of `whole` that were drawn before these remained, with their labels.

        If they are more than `most`, at most that many, at equal steps.
        """
        named = whole.with_classes(classes.labels.tolist(), classes.positive)
        draw, taken = self._left_out
        lacks_labels = taken is None or any(rows.labels is None for _, rows in taken.batches)
        if taken is None or lacks_labels or whole.columns.weight is not None:
            return named.collect(draw=draw or Draw(0)).thinned(most)
        return named._in_memory(taken, draw).thinned(most)

    def counted_rows(self) -> MemoryRows:
        """Return the rows that remain after a draw, in memory, without the rows of drawn groups."""
        rows = self.collect()
        draw = self._left_out[0]
        return rows if draw is None else rows.take(~rows.chosen(draw))

    def count_knots(
        self, knots: Knots, classes: Classes, source: RandomSource
    ) -> tuple[IntArray, Reach]:
        """Count rows by place, half and label, without drawn rows, and find the range of their
        scores; see `Knots.count`.
        """
        draw, taken = self._left_out
        counted = self.fold(
            CountKnots(self.columns, knots.regions, draw, knots=knots, source=source)
        )
        check_counted(counted, taken)
        tally = tally_of(counted, 2 * knots.n_places, classes)
        by_label = np.stack([tally.counts - tally.positives, tally.positives], axis=-1)
        return by_label.reshape(knots.n_places, 2, 2), counted.reach
