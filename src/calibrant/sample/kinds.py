"""Functions that ask what kind of rows an object is: the only place that depends on the kinds."""

from typing import TYPE_CHECKING, Any

from calibrant.errors import InvalidTypeError
from calibrant.sample.rows import Rows
from calibrant.sample.sample import Sample, held_rows

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from calibrant.sample.sources.memory import MemoryRows

_PREDICT = "use predict for arrays"


def is_scored(data: object) -> "TypeIs[Sample | Rows]":
    """Whether this is scored data, from `calibrant.scored`, rather than an array."""
    return isinstance(data, Sample | Rows)


def rows_of(data: Sample | Rows) -> Rows:
    """The rows that a sample holds, or the rows themselves."""
    return held_rows(data) if isinstance(data, Sample) else data


def rows_in(data: object) -> Rows | None:
    """The rows of scored data; None for anything else, such as an array."""
    return rows_of(data) if is_scored(data) else None


def scored_rows(data: object) -> Rows:
    """The rows of a `Sample`; raise an error for anything else."""
    rows = rows_in(data)
    if rows is None:
        got = type(data).__name__
        raise InvalidTypeError("data", "be scored(...) data", got=got, advice=_PREDICT)
    return rows


def bound_of(data: object, name: str, given: Any) -> Any:
    """Return a bound that describes the data: the given one, or that of `scored(...)`.

    Two different bounds raise an error.
    """
    rows = rows_in(data)
    if rows is None:
        return given
    return rows.bounds.merged(name, given, rows.columns)


def in_memory(rows: Rows) -> "TypeIs[MemoryRows]":
    """Whether these rows are in memory."""
    return rows.in_memory
