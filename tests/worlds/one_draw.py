"""Fits that draw the same positions, whatever the values of the rows: for what must not depend on
values otherwise.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from calibrant.params.random import RandomSource
from calibrant.sample.reader import ONE_ROW_EACH
from calibrant.sample.rows import Rows
from calibrant.sample.sources.memory import MemoryRows


@contextmanager
def one_draw() -> Iterator[None]:
    """Give all rows one fingerprint, so that what is drawn by position depends on the seed alone."""
    with (
        patch.object(MemoryRows, "fingerprint", lambda rows: 0),
        patch.object(Rows, "fingerprint", lambda data: 0),
    ):
        yield


def one_of_each(rows: MemoryRows, random_state: int = 0):
    """The rows that are drawn where one row of each group counts."""
    source: RandomSource = RandomSource.of(random_state, ONE_ROW_EACH, rows=rows.fingerprint())
    return rows.groups.one_row_each(source)
