"""The columns that thresholds add to scored data."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.assess.threshold.proved_threshold import Threshold
from calibrant.sample.added_columns import AddColumns
from calibrant.sample.batch import Coded, Columns


@dataclass(frozen=True, slots=True, eq=False)
class SelectRows(AddColumns):
    """Whether each row is selected; with precision and npv also whether it is referred to a person."""

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

    def usable(self, scores: NDArray[Any], segments: Coded | None) -> NDArray[np.bool_]:
        """Every finite score; rows of an unknown segment are not selected."""
        return np.ones(len(scores), dtype=bool)

    def values(self, scores: NDArray[Any], segments: Coded | None) -> Sequence[Any]:
        """What `predict` and `refer` say."""
        low = np.full(len(scores), -np.inf)
        high = np.full(len(scores), np.inf)
        number = None if segments is None else {name: place for place, name in enumerate(segments.names)}
        for segment, ends in self.found.ends.items():
            here: Any = slice(None)
            if segments is not None and number is not None:
                here = segments.number == number.get(segment, -1)
            low[here], high[here] = ends
        values = scores.astype(np.float64)
        selected = values >= high
        return [selected, ~selected & (values >= low)] if self.refers else [selected]
