"""Steps of a table: from the bins of a partition, or from cuts that apply to every score."""

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.calibrators.tables.table import Steps
from calibrant.cells.bins import OTHER
from calibrant.cells.partition import Partition
from calibrant.errors import InvalidTypeError, InvalidValueError, no_table
from calibrant.sample.sql.search import LARGEST
from calibrant.text.sentences import shown

_MOST_INTEGER = 2**63


def steps_everywhere(cuts: FloatArray, regions: IntArray | None = None) -> Steps:
    """Steps between cuts, for every finite score.

    Each is a region of its own unless regions are given.
    """
    if regions is None:
        regions = np.arange(cuts.size + 1)
    return Steps(None, -LARGEST, LARGEST, cuts, regions)


def steps_of_probabilities() -> Steps:
    """One step, for scores from 0 to 1."""
    return Steps(None, 0.0, 1.0, np.empty(0), np.arange(1))


def steps_of_bins(partition: Partition) -> tuple[Steps, ...]:
    """The bins of a partition, in each segment; raise an error for a partition without score bins."""
    bins = partition.bins_by_segment
    if not bins:
        raise no_table(type(partition).__name__)  # no engine can run a Python function
    if partition.has_segments:
        check_segments(tuple(name for name in bins if name is not OTHER))
    steps = []
    first = 0
    for segment, part in bins.items():
        low = max(part.low, -LARGEST)
        high = min(part.high, LARGEST)
        regions = first + np.arange(part.n_regions)
        steps.append(Steps(segment, low, high, part.cuts, regions))
        first += part.n_regions
    return tuple(steps)


def check_segments(segments: tuple[object, ...]) -> None:
    """Check that a column of one type can hold the segments."""
    kinds = {type(segment) for segment in segments}
    if len(kinds) > 1 or not kinds <= {str, int, float, bool}:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise InvalidTypeError(
            "segments", "be all text, all whole numbers, all floats or all bools", got=names
        )
    for segment in segments:
        if type(segment) is int and not -_MOST_INTEGER <= segment < _MOST_INTEGER:
            raise InvalidValueError(
                "segments", "be whole numbers of at most 64 bits", got=shown(segment)
            )
        if type(segment) is float and not np.isfinite(segment):
            raise InvalidValueError("segments", "be finite numbers", got=shown(segment))
