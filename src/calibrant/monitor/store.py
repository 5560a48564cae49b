"""A store in a database: durable transactions, and errors that say what to do."""

import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from calibrant.errors import StoreError
from calibrant.monitor.tables import STATE, prepare_tables

_LIVE = "live"
"""The row that every writer locks: the clock and the counts."""
_MOST_NAMES = 10_000  # per query
_LARGEST_LOG = 2**24  # bytes to which SQLite truncates its log after a checkpoint

_ADVICE = (
    ("locked", "another process holds it: try again, or raise timeout"),
    ("lock timeout", "another process holds it: try again, or raise timeout"),
    ("readonly", "make the file and its folder writable"),
    ("read-only", "make the file and its folder writable"),
    ("full", "free space on the disk and try again; nothing was written"),
    ("disk i/o error", "check the disk and its free space; nothing was written"),
    ("malformed", "restore the file from a backup"),
    ("not a database", "name a file that this store has made"),
    ("unable to open", "check the path, and that its folder exists and is writable"),
)


class Store:
    """Tables in SQLite, or in another database given by its URL.

    Parameters
    ----------
    place : str or Path
        A file, or a URL such as "postgresql+psycopg://user@host/name".
    timeout : float
        Seconds to wait for another process's lock.
    """

    def __init__(self, place: str | Path, timeout: float) -> None:
        self.place = str(place)
        self.timeout = timeout
        with self._explained("opened"):
            self.url = _url_of(self.place)
            if not self.is_sqlite:
                self.place = self.url.render_as_string(hide_password=True)
            self._use(self._make_engine())

    def _use(self, engine: Any) -> None:
        """Use an engine of this process, whose connections are closed when the store is dropped."""
        self._engine = engine
        self._process = os.getpid()
        weakref.finalize(self, _close, engine, self._process)

    @property
    def is_sqlite(self) -> bool:
        """Whether the store is a SQLite file."""
        return bool(self.url.get_backend_name() == "sqlite")

    def _make_engine(self) -> Any:
        options: dict[str, Any] = {}
        if self.is_sqlite:
            options["connect_args"] = {"timeout": self.timeout}
        engine = sa.create_engine(self.url, **options)
        if self.is_sqlite:
            sa.event.listen(engine, "connect", _set_up_sqlite)
            sa.event.listen(engine, "begin", _begin_sqlite)
        return engine

    @property
    def engine(self) -> Any:
        """The engine of this process; after a fork the child opens its own connections."""
        if os.getpid() != self._process:
            self._engine.dispose(close=False)
            self._use(self._make_engine())
        return self._engine

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """A transaction that excludes other writers.

        It is durable when the block ends, or has no effect.
        """
        with self._explained("written"), self.engine.connect() as plain:
            connection = plain.execution_options(calibrant_writes=True)
            with connection.begin():
                self._limit_wait(connection)
                yield connection

    def _limit_wait(self, connection: Any) -> None:
        """Make a server stop waiting for another writer after `timeout`, as SQLite does."""
        if connection.dialect.name == "postgresql":
            milliseconds = max(1, round(1000.0 * self.timeout))
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = {milliseconds}")

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """A transaction that sees one state of the store, whatever others write meanwhile."""
        with self._explained("read"), self.engine.connect() as plain:
            connection = plain
            if not self.is_sqlite:
                connection = plain.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except sa.exc.SQLAlchemyError as error:
            found = str(getattr(error, "orig", None) or error).splitlines()[0]
            advice = next((said for sign, said in _ADVICE if sign in found.lower()), None)
            raise StoreError(
                "store", f"be {what} ({self.place})", got=found, advice=advice
            ) from error

    def open(self) -> bool:
        """Create the tables or migrate them; return whether the store is new."""
        try:
            return self._prepare()
        except StoreError:
            if self.is_sqlite:
                raise
            return self._prepare()  # another process was creating the same tables: now they exist

    def _prepare(self) -> bool:
        with self.writing() as connection:
            return prepare_tables(connection)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def _close(engine: Any, process: int) -> None:
    """Close the connections of an engine in the process that opened them."""
    if os.getpid() == process:
        engine.dispose()


def _url_of(place: str) -> Any:
    """The URL of a database, or of a SQLite file."""
    if "://" in place:
        return sa.make_url(place)
    return sa.URL.create("sqlite", database=str(Path(place).absolute()))


def lock(connection: Any) -> None:
    """Wait until no other writer is active; SQLite has already done so."""
    connection.execute(sa.select(STATE.c.value).where(STATE.c.key == "version").with_for_update())


def read_text(connection: Any, key: str) -> str | None:
    """Read a text from the state; None if there is none."""
    found: str | None = connection.execute(
        sa.select(STATE.c.value).where(STATE.c.key == key)
    ).scalar()
    return found


def write_text(connection: Any, key: str, value: str) -> None:
    """Set a text in the state."""
    changed = connection.execute(STATE.update().where(STATE.c.key == key).values(value=value))
    if changed.rowcount == 0:
        connection.execute(STATE.insert().values(key=key, value=value))


def rows_by_id(
    connection: Any, table: Any, ids: Sequence[str], columns: Sequence[Any]
) -> dict[str, Any]:
    """The rows of a table with one of these ids, by id."""
    found: dict[str, Any] = {}
    query = sa.select(table.c.id, *columns).where(
        table.c.id.in_(sa.bindparam("ids", expanding=True))
    )
    for start in range(0, len(ids), _MOST_NAMES):
        rows = connection.execute(query, {"ids": ids[start : start + _MOST_NAMES]}).fetchall()
        found.update({row[0]: row for row in rows})
    return found


def execute_rows(connection: Any, statement: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    """Run a statement for each row of parameters, bypassing SQLAlchemy's per-row work: a third of
    the time.
    """
    if not rows:
        return
    compiled = statement.compile(dialect=connection.dialect)
    given: Any = rows
    if compiled.positional:
        names = list(compiled.positiontup)
        given = [tuple([row[name] for name in names]) for row in rows]
    connection.exec_driver_sql(compiled.string, given)


def _set_up_sqlite(connection: Any, _: Any) -> None:
    """Let readers read while a writer writes (WAL), and make each commit durable (synchronous
    FULL).
    """
    connection.isolation_level = None  # SQLAlchemy controls when a transaction begins
    cursor = connection.cursor()
    try:
        cursor.execute("PRAGMA journal_mode=WAL")
    except Exception as error:  # the mode of a read-only file cannot be changed
        if "readonly" not in str(error):
            raise
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA fullfsync=ON")  # macOS: flush the disk's own cache
    cursor.execute("PRAGMA cache_size=-65536")
    cursor.execute(f"PRAGMA journal_size_limit={_LARGEST_LOG}")
    cursor.close()


def _begin_sqlite(connection: Any) -> None:
    writes = connection.get_execution_options().get("calibrant_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
