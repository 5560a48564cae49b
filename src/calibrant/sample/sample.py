"""What users hold: scores and labels, wherever they are, with the names of their columns."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from calibrant.cells.score_partition import ScorePartition
from calibrant.sample.rows import Rows
from calibrant.sample.taken_rows import COLLECT_LIMIT
from calibrant.text.result import frame_of_arrow


class Sample:
    """Scores and labels wherever they are: in files, a database table, a frame, a cluster, a
    device, or memory.

    Made by `calibrant.scored`. Pass it instead of scores and labels to any `fit`, and to functions
    such as `audit`, `check` and `threshold`. Rows outside memory are not loaded: each method that
    needs them reads them where they are stored.

    Examples
    --------
    >>> from calibrant import scored
    >>> data = scored({"p": [0.1, 0.4, 0.6, 0.9], "y": [0, 0, 1, 1]}, score="p", label="y")
    >>> data
    Sample(score='p', label='y')
    >>> data.describe()
    {'rows': 4, 'skipped_rows': 0, 'labels': {0: 2, 1: 2}, 'scores': (0.1, 0.9)}
    """

    __slots__ = ("_rows",)

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __repr__(self) -> str:
        parts = [f"{role}={name!r}" for role, name in self.columns.items()]
        if self._rows.columns.pending is not None:
            parts.append("skip_missing=True")
        parts += [f"{name}={value!r}" for name, value in self._rows.bounds.known.items()]
        return f"Sample({', '.join(parts)})"

    @property
    def columns(self) -> dict[str, str]:
        """The columns in use: a mapping from each role, such as "score", to the name of its column."""
        return self._rows.columns.named

    @property
    def names(self) -> list[str]:
        """The names of all columns of the data."""
        return self._rows.names()

    @property
    def in_memory(self) -> bool:
        """Whether the rows are arrays in memory, so that no method reads them again."""
        return self._rows.in_memory

    @property
    def weight_bound(self) -> float | None:
        """An upper bound on the importance weights, if one was given."""
        return self._rows.bounds.weight_bound

    @property
    def max_group_size(self) -> int | None:
        """The largest number of rows that a group counts as, if it was given."""
        return self._rows.bounds.max_group_size

    @property
    def group_target(self) -> str | None:
        """Whether every row or every group counts equally, "rows" or "groups", if it was given."""
        return self._rows.bounds.group_target

    def n_rows(self) -> int:
        """Return the number of rows, without those that are skipped."""
        return sum(self.sizes().values())

    def n_groups(self) -> int:
        """Return the number of groups; 0 if no column of groups was named."""
        return self._rows.n_groups()

    def sizes(self) -> dict[Hashable, int]:
        """Return the number of rows in each segment, sorted by segment.

        Without segments, there is one segment, None.
        """
        return self._rows.sizes()

    def skipped_rows(self) -> int:
        """Return how many rows are skipped because their label is missing.

        0 unless `skip_missing=True`.
        """
        return self._rows.skipped_rows()

    def describe(self) -> dict[str, Any]:
        """Return what is in the data, as plain numbers.

        Its entries are `rows`, `skipped_rows`, the number of rows with each label (`labels`), the
        smallest and largest scores (`scores`), the number of rows in each segment (`segments`) and
        the number of groups (`groups`). Entries whose column was not named are left out.

        >>> from calibrant import scored
        >>> columns = {"p": [0.1, 0.4, 0.6], "y": [0, 1, 1], "site": ["a", "b", "b"]}
        >>> scored(columns, score="p", label="y", segment="site").describe()["segments"]
        {'a': 1, 'b': 2}
        """
        columns = self._rows.columns
        sizes = self.sizes()
        found: dict[str, Any] = {
            "rows": sum(sizes.values()),
            "skipped_rows": self.skipped_rows(),
        }
        if columns.label is not None:
            counted = self._rows.count(ScorePartition(np.empty(0)))
            counted.faults.check()
            kinds = sorted(counted.kinds.items(), key=lambda kind: str(kind[0]))
            found["labels"] = {label: tally.n_rows for label, tally in kinds}
            found["scores"] = counted.reach.seen
        else:
            from calibrant.sample.fingerprint import reach_of

            found["scores"] = reach_of(self._rows).seen
        if columns.segment is not None:
            found["segments"] = sizes
        if columns.group is not None:
            found["groups"] = self.n_groups()
        return found

    def collect(self, *, pos_label: Hashable = None, limit: int = COLLECT_LIMIT) -> "Sample":
        """Return the same rows, read into memory; more than `limit` rows raise an error.

        `pos_label` is the positive class, required unless the labels are 0 and 1, or -1 and 1. The
        rows keep their order. With an id, they are sorted by a hash of the ids, so the order does
        not depend on how they are stored.
        """
        rows = self._rows
        if pos_label is not None:
            rows = rows.with_classes(pos_label=pos_label)
        return Sample(rows.collect(limit=limit))

    def to_frame(self) -> Any:
        """Return the columns in use as a frame: from pandas, else Polars, else pyarrow.

        The rows keep their order, without those that are skipped.
        """
        from calibrant.sample.columns import table_of

        wanted = {name: role for role, name in self.columns.items()}
        return frame_of_arrow(table_of(self._rows, wanted))


def held_rows(sample: Sample) -> Rows:
    """The rows inside a sample, for code that counts them."""
    return sample._rows
