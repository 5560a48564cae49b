"""The rows of one model in a store: a few statements, which are sent to the driver as they are.

Each takes a whole batch. With SQLite, a list is one JSON text, or the statement is run for each row
without leaving C; with PostgreSQL, a list is an array.
"""

import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from calibrant.monitor.tables import STATE

_STATE = f"FROM {STATE.name} WHERE model = :model AND key = :key"
_READ = f"SELECT value {_STATE}"
_WRITE = (
    f"INSERT INTO {STATE.name} (model, key, value) VALUES (:model, :key, :value)"
    " ON CONFLICT (model, key) DO UPDATE SET value = excluded.value"
)


@cache
def _for_psycopg(text: str) -> str:
    """A statement with the parameters of psycopg in place of :name."""
    return re.sub(r"(?<!:):(\w+)", r"%(\1)s", text)


@cache
def _types(table: Any) -> dict[str, str]:
    """The type of each column, as PostgreSQL calls it."""
    dialect: Any = postgresql.dialect()  # type: ignore[no-untyped-call]
    return {column.name: str(column.type.compile(dialect)) for column in table.columns}


@dataclass(frozen=True, slots=True)
class ModelRows:
    """The rows of one model, within a transaction."""

    connection: Any
    model: int

    def of(self, table: Any) -> Any:
        """The condition that a row of a table belongs to the model."""
        return table.c.model == self.model

    def count(self, table: Any, *conditions: Any) -> int:
        """The number of rows of a table that meet all conditions."""
        query = sa.select(sa.func.count()).select_from(table).where(self.of(table), *conditions)
        return int(self.connection.execute(query).scalar())

    def select(self, *columns: Any, where: Sequence[Any] = ()) -> Any:
        """Columns of the rows of a table that meet all conditions, in the order of the first."""
        query = sa.select(*columns).where(self.of(columns[0].table), *where).order_by(columns[0])
        return self.connection.execute(query)

    @property
    def _is_sqlite(self) -> bool:
        return bool(self.connection.dialect.name == "sqlite")

    @property
    def _driver(self) -> Any:
        return self.connection.connection.driver_connection

    def _run(self, text: str, **given: Any) -> Any:
        given["model"] = self.model
        return self._driver.execute(text if self._is_sqlite else _for_psycopg(text), given)

    def read_text(self, key: str) -> str | None:
        """Read a text from the state; None if there is none."""
        found = self._run(_READ, key=key).fetchone()
        return None if found is None else found[0]

    def write_text(self, key: str, value: str) -> None:
        """Set a text in the state."""
        self._run(_WRITE, key=key, value=value)

    def _with_ids(self, begin: str, ids: Sequence[str], **given: Any) -> Any:
        """Run a statement about the rows that have one of these ids."""
        listed = "IN (SELECT value FROM json_each(:ids))" if self._is_sqlite else "= ANY(:ids)"
        found: Any = json.dumps(ids) if self._is_sqlite else list(ids)
        return self._run(f"{begin} WHERE model = :model AND id {listed}", ids=found, **given)

    def by_id(self, table: Any, ids: Sequence[str], *columns: str) -> dict[str, Any]:
        """The rows of a table with one of these ids, by id, as the id and these columns."""
        if not ids:
            return {}
        begin = f"SELECT {', '.join(('id', *columns))} FROM {table.name}"
        return {row[0]: row for row in self._with_ids(begin, ids).fetchall()}

    def delete(self, table: Any, ids: Sequence[str]) -> None:
        """Delete the rows of a table with one of these ids."""
        if ids:
            self._with_ids(f"DELETE FROM {table.name}", ids)

    def update(self, table: Any, name: str, value: Any, ids: Sequence[str]) -> None:
        """Set a column of the rows of a table with one of these ids."""
        self._with_ids(f"UPDATE {table.name} SET {name} = :value", ids, value=value)

    def insert(self, table: Any, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Add rows to a table, with values for these columns."""
        if not rows:
            return
        begin = f"INSERT INTO {table.name} (model, {', '.join(names)})"
        if self._is_sqlite:
            marks = ", ".join("?" for _ in names)
            self._driver.executemany(f"{begin} VALUES ({self.model}, {marks})", rows)
            return
        types = _types(table)
        arrays = ", ".join(f"CAST(:c_{name} AS {types[name]}[])" for name in names)
        columns = zip(*rows, strict=True)
        given = {f"c_{name}": list(one) for name, one in zip(names, columns, strict=True)}
        self._run(f"{begin} SELECT :model, given.* FROM unnest({arrays}) AS given", **given)

    def count_again(self, table: Any) -> None:
        """Let PostgreSQL see how large a table has become, or it would search it by a bad index
        until it finds out by itself; SQLite has no such plans.
        """
        if not self._is_sqlite:
            self._run(f"ANALYZE {table.name}")

    def locked_live(self) -> tuple[str | None, float]:
        """Wait until no other writer of this model is active; SQLite has already done so.

        Return its clock and counts as text, and the time by the clock of the store: that of the
        server, or of this machine if the store is a file.
        """
        if self._is_sqlite:
            return self.read_text("live"), time.time()
        found = self._run(f"{_READ} FOR UPDATE", key="live").fetchone()
        now = sa.select(sa.extract("epoch", sa.func.clock_timestamp()))
        return None if found is None else found[0], float(self.connection.execute(now).scalar())
