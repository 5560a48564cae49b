"""The rows of a database query: cursors of Python's database interface (DB-API), and results of
SQLAlchemy.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from calibrant._optional import pa
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.sample.batch import Columns
from calibrant.sample.progress import Progress
from calibrant.sample.sources.arrow import ArrowData, Part
from calibrant.sample.sources.spool import Room, read_once

_FETCHED_ROWS = 1 << 16  # Python objects, which take far more memory than columns


def is_cursor(source: object) -> bool:
    """Whether this has the rows of a query, to be fetched."""
    return hasattr(source, "fetchmany") and (
        hasattr(source, "description") or callable(getattr(source, "keys", None))
    )


def from_cursor(cursor: Any, columns: Columns, *, progress: Progress) -> ArrowData:
    """The rows that the query of a cursor found: fetched once, and kept as columns."""
    names = _names(cursor)
    columns.check(names)
    read = read_once(_fetched(cursor, names), Room())
    return ArrowData([Part(read)], None, columns, names=names, progress=progress)


def _names(cursor: Any) -> list[str]:
    keys = getattr(cursor, "keys", None)
    if callable(keys):
        return [str(name) for name in keys()]
    if cursor.description is None:
        advice = "execute a SELECT first"
        raise InvalidValueError("the cursor", "have the rows of a query", "none", advice)
    return [str(column[0]) for column in cursor.description]


def _fetched(cursor: Any, names: Sequence[str]) -> Iterator[Any]:
    while rows := cursor.fetchmany(_FETCHED_ROWS):
        columns = {}
        for name, values in zip(names, zip(*rows, strict=True), strict=True):
            try:
                columns[name] = pa.array(list(values))
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                rule = "contain one kind of entry"
                raise InvalidTypeError(f"column {name!r}", rule, got=str(error)) from None
        yield pa.RecordBatch.from_pydict(columns)
