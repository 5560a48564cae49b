"""Work that counts rows at the knots of curves."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant.cells.knots import Knots, RowHashes
from calibrant.params.random import RandomSource
from calibrant.sample.batch import BatchRows, Columns, read_batch
from calibrant.sample.counts import MOST_KINDS, Count, Counted, KindSums, segment_numbers
from calibrant.sample.faults import Place
from calibrant.sample.reach import Reach
from calibrant.sample.taken_rows import Seal


@dataclass(frozen=True, slots=True)
class CountKnots(Count):
    """Count rows by place, half and kind of label, without drawn rows; see `calibrant.cells.knots`.

    The random numbers of a row come from its position or its id.
    """

    knots: Knots = field(kw_only=True)
    source: RandomSource = field(kw_only=True)

    @property
    def columns(self) -> Columns:
        """Score and label, and what else is needed."""
        wanted = ("segment",) if self.partition.has_segments else ()
        return self.data_columns.only("label", "id", *wanted)

    @property
    def needs_positions(self) -> bool:
        """Each row's position determines the knot where it counts."""
        return True

    def __call__(self, batch: Any, place: Place) -> Counted:
        """Count one batch."""
        rows, faults = read_batch(batch, self.columns, place, keys=True)
        left_out = Seal()
        if self.draw is not None:
            drawn = rows.drawn_by(self.draw)
            index = np.flatnonzero(drawn)
            left_out = Seal.of(rows.scores[index], rows.keys[index])
            rows = rows.take(~drawn)
        rows, outside = self._inside(rows, place)
        kinds = {} if rows.labels is None else self._count(rows, rows.labels.names, place)
        return Counted(kinds, left_out, faults + outside, Reach.of(rows.scores))

    def _count(
        self, rows: BatchRows, kinds: tuple[Any, ...], place: Place
    ) -> dict[Hashable, KindSums]:
        """Rows of each kind of label by place and half."""
        if rows.labels is None:
            return {}
        kinds = kinds[: MOST_KINDS + 1]
        number = np.minimum(rows.labels.number, len(kinds) - 1)  # with more, labels are refused
        counts = self.knots.count(
            self.partition.prepared(rows.scores, segment_numbers(rows.segments, self.partition)),
            number,
            RowHashes(self.source, rows.keys),
            n_labels=len(kinds),
        )
        return {kind: KindSums(counts[..., code].ravel()) for code, kind in enumerate(kinds)}
