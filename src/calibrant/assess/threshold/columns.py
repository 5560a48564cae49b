"""The columns that thresholds add to scored data."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.assess.threshold.proved_threshold import Threshold
from calibrant.cells.bins import OTHER
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.segmented_partition import SegmentedPartition
from calibrant.sample.added_columns import AddColumns, LookUp
from calibrant.sample.batch import Coded, Columns


@dataclass(frozen=True, slots=True, eq=False)
class SelectRows(AddColumns):
    """Whether each row is selected; with precision and npv, also whether it is referred to a
    person.
    """

    columns: Columns
    found: Threshold
    prefix: str

    @property
    def refers(self) -> bool:
        """Whether rows between two thresholds are referred to a person."""
        return len({cut.target for cut in self.found.cuts}) > 1

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns to add."""
        added = ("selected", "referred") if self.refers else ("selected",)
        return tuple(self.prefix + name for name in added)

    def as_look_up(self) -> LookUp:
        """The steps of each segment.

        Rows of an unknown segment are not selected, but referred to a person.
        """
        parts: dict[Any, ScorePartition] = {}
        firsts: list[float] = []  # the first score of each step
        lows: list[float] = []
        highs: list[float] = []
        for segment, (low, high) in self.found.ends.items():
            cuts = [cut for cut in sorted({low, high}) if np.isfinite(cut)]
            parts[segment] = ScorePartition(np.array(cuts))
            firsts += [-np.inf, *cuts]
            lows += [low] * (len(cuts) + 1)
            highs += [high] * (len(cuts) + 1)
        if None not in parts:
            parts[OTHER] = ScorePartition(np.empty(0))
            firsts.append(-np.inf)
            lows.append(-np.inf)
            highs.append(np.inf)
        first = np.array(firsts)
        selected = first >= np.array(highs)
        columns = [selected, ~selected & (first >= np.array(lows))]
        table: dict[str, Any] = dict(zip(self.names, columns, strict=False))
        return LookUp(
            self.columns, parts[None] if None in parts else SegmentedPartition(parts), table
        )

    def usable(self, scores: NDArray[Any], segments: Coded | None) -> NDArray[np.bool_]:
        """Every finite score; rows of an unknown segment are not selected."""
        return np.ones(len(scores), dtype=bool)

    def values(self, scores: NDArray[Any], segments: Coded | None) -> Sequence[Any]:
        """The results of `predict` and `refer`."""
        low = np.full(len(scores), -np.inf)
        high = np.full(len(scores), np.inf)
        number = (
            None if segments is None else {name: place for place, name in enumerate(segments.names)}
        )
        for segment, ends in self.found.ends.items():
            here: Any = slice(None)
            if segments is not None and number is not None:
                here = segments.number == number.get(segment, -1)
            low[here], high[here] = ends
        values = scores.astype(np.float64)
        selected = values >= high
        return [selected, ~selected & (values >= low)] if self.refers else [selected]
