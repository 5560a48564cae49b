"""Predictions, labels and scores in the body of a request: JSON, JSON lines or Arrow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._json import read_json
from calibrant._optional import pa
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.monitor.serve.problems import ProblemError

ARROW = "application/vnd.apache.arrow.stream"
LINES = "application/x-ndjson"
JSON = "application/json"
MOST_ROWS = 1_000_000
_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class Body:
    """A body, and the content type that it declares."""

    data: bytes
    kind: str

    def columns(self, required: Sequence[str], optional: Sequence[str]) -> dict[str, Any]:
        """Columns by name; None for an optional one that no row has."""
        if self.kind == ARROW:
            return _arrow_columns(self.data, required, optional)
        rows = self._rows()
        if not 0 < len(rows) <= MOST_ROWS:
            raise InvalidValueError("the body", f"have 1 to {MOST_ROWS:,} rows", got=str(len(rows)))
        for row in rows:
            if not isinstance(row, Mapping):
                raise InvalidTypeError("a row", "be a JSON object")
        names = (*required, *optional)
        columns: dict[str, Any] = {name: [row.get(name) for row in rows] for name in names}
        for name in required:
            if any(entry is None for entry in columns[name]):
                raise InvalidValueError(name, "be in each row", got="a row without it")
        for name in optional:
            columns[name] = _complete(name, columns[name])
        return columns

    def json(self) -> Any:
        """The value of a body that is JSON."""
        if self.kind != JSON:
            raise ProblemError(415, f"send {JSON}")
        return read_json(self.data, "the body", strict=True)

    def _rows(self) -> Any:
        if self.kind == JSON:
            found = read_json(self.data, "the body", deepest=_DEEPEST, strict=True)
            return found if isinstance(found, list) else [found]
        if self.kind == LINES:
            lines = self.data.splitlines()
            return [
                read_json(line, f"line {number:,}", deepest=_DEEPEST, strict=True)
                for number, line in enumerate(lines, start=1)
                if line.strip()
            ]
        raise ProblemError(415, f"send {JSON}, {LINES} or {ARROW}")


def _complete(name: str, entries: list[Any]) -> list[Any] | None:
    """A column that all rows have, or none."""
    if all(entry is None for entry in entries):
        return None
    if any(entry is None for entry in entries):
        raise InvalidValueError(name, "be in each row, or in none", got="some rows without it")
    return entries


def _arrow_columns(data: bytes, required: Sequence[str], optional: Sequence[str]) -> dict[str, Any]:
    try:
        table = pa.ipc.open_stream(data).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise InvalidValueError("the body", "be an Arrow stream") from error
    if not 0 < table.num_rows <= MOST_ROWS:
        rule = f"have 1 to {MOST_ROWS:,} rows"
        raise InvalidValueError("the body", rule, got=f"{table.num_rows:,}")
    missing = next((name for name in required if name not in table.column_names), None)
    if missing is not None:
        raise InvalidValueError(missing, "be a column of the body", got="none of this name")
    columns: dict[str, Any] = {}
    for name in (*required, *optional):
        given = name in table.column_names
        columns[name] = _plain(name, table.column(name)) if given else None
    return columns


def _plain(name: str, column: Any) -> Any:
    """An Arrow column as a list, or as an array if it has numbers; it has no nulls."""
    if column.null_count:
        raise InvalidValueError(name, "have no nulls", got=f"{column.null_count:,}")
    if pa.types.is_floating(column.type):
        return np.asarray(column.to_numpy(), dtype=np.float64)
    return column.to_pylist()


def arrow_of(columns: Mapping[str, Any]) -> bytes:
    """Columns as an Arrow stream."""
    batch = pa.record_batch(dict(columns))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())
