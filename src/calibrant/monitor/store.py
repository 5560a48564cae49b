"""A store in a database: durable transactions, and errors that say what to do."""

import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from calibrant.errors import CalibrantError, StoreError
from calibrant.monitor.fork_gate import FORKS
from calibrant.monitor.model_rows import ModelRows
from calibrant.monitor.tables import METADATA, MODELS, STORE, VERSION

_DATABASES = ("sqlite", "postgresql")
_LARGEST_LOG = 2**24  # bytes to which SQLite truncates its log after a checkpoint
_OPENING = 0x63616C69  # the lock of PostgreSQL that whoever creates tables or models holds

_BY_INDEX = "SET LOCAL enable_seqscan = off; SET LOCAL plan_cache_mode = force_custom_plan"

_NAME_ONE = "name a file, or a URL such as postgresql+psycopg://user@host/database"
_RESTORE = "restore the store from a backup, or start a new one"
_ADVICE = (
    ("locked", "another process holds it: try again, or raise timeout"),
    ("lock timeout", "another process holds it: try again, or raise timeout"),
    ("readonly", "make the file and its folder writable"),
    ("read-only", "make the file and its folder writable"),
    ("full", "free space on the disk and try again; nothing was written"),
    ("disk i/o error", "check the disk and its free space; nothing was written"),
    ("malformed", _RESTORE),
    ("no such table", _RESTORE),
    ("no such column", _RESTORE),
    ("does not exist", _RESTORE),
    ("not a database", "name a file that this store has made"),
    ("unable to open", "check the path, and that its folder exists and is writable"),
    ("no module named", "install the driver that the URL names, such as psycopg"),
    ("can't load plugin", _NAME_ONE),
    ("connect", "check the URL, and that the server is running and reachable"),
)
_IN_MEMORY = "what is in memory is lost when the process ends: name a file"

_INHERITED: list[Any] = []
"""Connections of a parent process. They are kept, because closing them here would disturb it."""


class Store:
    """Tables in a SQLite file, or in PostgreSQL, for any number of models.

    Parameters
    ----------
    place : str or Path
        A file, or a URL such as "postgresql+psycopg://user@host/name".
    timeout : float
        Seconds to wait for another process's lock.
    """

    def __init__(self, place: str | Path, timeout: float) -> None:
        self.timeout = timeout
        self.place = _shown(str(place))
        self._file: str | None = None
        self._file_identity: Any = None
        self._has_log = False
        with self._explained("opened", _NAME_ONE, every=True):
            self.url = _url_of(str(place))
            self._use(self._new_engine())
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _use(self, engine: Any) -> None:
        """Use an engine of this process, whose connections are closed when the store is dropped."""
        self._engine = engine
        self._database_errors = (sa.exc.SQLAlchemyError, engine.dialect.loaded_dbapi.Error)
        self._process = os.getpid()
        weakref.finalize(self, _close, engine, self._process)

    @property
    def is_sqlite(self) -> bool:
        """Whether the store is a SQLite file."""
        return bool(self.url.get_backend_name() == "sqlite")

    def _new_engine(self) -> Any:
        options: dict[str, Any] = {}
        if self.is_sqlite:
            options["connect_args"] = {"timeout": self.timeout}
        engine = sa.create_engine(self.url, **options)
        if engine.dialect.is_async:
            raise StoreError("store", "have a driver that is not asynchronous", advice=_NAME_ONE)
        if self.is_sqlite:
            sa.event.listen(engine, "connect", _set_up_sqlite)
            sa.event.listen(engine, "begin", _begin_sqlite)
        return engine

    @property
    def engine(self) -> Any:
        """The engine of this process; after a fork the child opens its own connections."""
        if os.getpid() != self._process:
            _INHERITED.append(self._engine)
            self._use(self._new_engine())
        return self._engine

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """A transaction that excludes other writers: of the whole file with SQLite, of the rows
        that are locked with PostgreSQL.

        It is durable when the block ends, or has no effect.
        """
        with self._transaction("written", calibrant_writes=True) as connection:
            if connection.dialect.name == "postgresql":  # stop waiting for others, as SQLite does
                milliseconds = max(1, round(1000.0 * self.timeout))
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = {milliseconds};{_BY_INDEX}")
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """A transaction that sees one state of the store, whatever others write meanwhile."""
        level = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        with self._transaction("read", **level) as connection, self.sound():
            yield connection

    @contextmanager
    def rows_of(self, model: int, *, writes: bool = False) -> Iterator[ModelRows]:
        """The rows of a model, within a transaction that reads or writes."""
        with self.writing() if writes else self.reading() as connection:
            yield ModelRows(connection, model)

    @staticmethod
    def find(connection: Any, name: str) -> tuple[ModelRows, str] | None:
        """The rows and the checksum of the model with this name; None if there is none."""
        query = sa.select(MODELS.c.model, MODELS.c.checksum).where(MODELS.c.name == name)
        found = connection.execute(query).first()
        return None if found is None else (ModelRows(connection, found[0]), found[1])

    @staticmethod
    def add(connection: Any, name: str, checksum: str) -> ModelRows:
        """The rows of a new model, of which there are none."""
        new = MODELS.insert().values(name=name, checksum=checksum)
        return ModelRows(connection, int(connection.execute(new).inserted_primary_key[0]))

    @contextmanager
    def _transaction(self, what: str, **options: Any) -> Iterator[Any]:
        process = os.getpid()
        with FORKS.entered(self._file_identity), self._explained(what, _RESTORE):
            connection = self._connected().execution_options(**options)
            begun = connection.begin()
            try:
                yield connection
                if os.getpid() != process:
                    raise self.forked()
                begun.commit()
                self._check_file(is_written=what == "written")
            except BaseException:
                if os.getpid() == process and begun.is_active:
                    with suppress(sa.exc.SQLAlchemyError):  # the first error says more
                        begun.rollback()
                raise
            finally:
                if os.getpid() == process:
                    connection.close()
                else:
                    _INHERITED.append((begun, connection))

    def _connected(self) -> Any:
        self._check_file()
        with self._explained("opened", _NAME_ONE, every=True):
            return self.engine.connect()

    @contextmanager
    def _explained(self, what: str, advice: str, *, every: bool = False) -> Iterator[None]:
        """Turn errors of the database, or with `every` all errors, into a StoreError."""
        try:
            yield
        except CalibrantError:
            raise
        except Exception as error:
            if not every and not isinstance(error, self._database_errors):
                raise
            raise self._error(f"be {what}", error, advice) from error

    @contextmanager
    def sound(self) -> Iterator[None]:
        """Turn an error from reading the store into a StoreError: input has been checked before, so
        the content is damaged.
        """
        try:
            yield
        except (CalibrantError, MemoryError, *self._database_errors):
            raise
        except Exception as error:
            raise self._error("contain what calibrant wrote", error, _RESTORE) from error

    def _error(self, rule: str, error: Exception, advice: str) -> StoreError:
        known = getattr(error, "orig", None) or error
        found = (str(known).splitlines() or [""])[0][:300] or type(known).__name__
        told = next((said for sign, said in _ADVICE if sign in found.lower()), advice)
        return StoreError("store", f"{rule} ({self.place})", got=found, advice=told)

    def damaged(self, rule: str, got: str) -> StoreError:
        """The error for a store whose parts contradict each other."""
        return StoreError("store", f"{rule} ({self.place})", got=got, advice=_RESTORE)

    def forked(self) -> StoreError:
        """The error for a transaction of the process that this one was forked from."""
        return StoreError(
            "store",
            f"not be used in a process that was forked during a transaction ({self.place})",
            advice="fork outside the transaction, or start processes with multiprocessing's spawn",
        )

    def _open(self) -> None:
        """Create the tables of a new store; check those of an old one."""
        with self.reading() as connection:
            self._identify(connection)
            is_new = not sa.inspect(connection).has_table(STORE.name)
            if not is_new:
                self._check_tables(connection)
        if is_new:
            with self.writing() as connection:
                self.lock_opening(connection)
                self._create(connection)

    def _create(self, connection: Any) -> None:
        found = set(sa.inspect(connection).get_table_names())
        if STORE.name in found:  # another process was faster
            self._check_tables(connection)
            return
        if found & set(METADATA.tables):
            raise self.damaged("have the tables of this release", "others of the same names")
        METADATA.create_all(connection)
        connection.execute(STORE.insert().values(key="version", value=str(VERSION)))

    def _check_tables(self, connection: Any) -> None:
        query = sa.select(STORE.c.value).where(STORE.c.key == "version")
        version = connection.execute(query).scalar()
        if version != str(VERSION):
            rule = f"have a schema of version {VERSION}"
            raise self.damaged(rule, f"version {version!r:.40}")
        for table in METADATA.tables.values():
            connection.execute(sa.select(table).limit(0))

    @staticmethod
    def lock_opening(connection: Any) -> None:
        """Wait until no other process creates tables or models."""
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_OPENING)))

    def _identify(self, connection: Any) -> None:
        """Remember which file the store is; refuse a database in memory."""
        if not self.is_sqlite:
            return
        rows = connection.exec_driver_sql("PRAGMA database_list").fetchall()
        file = next((path for _, name, path in rows if name == "main"), "")
        self._file = file or self.place
        self._file_identity = _identity(file) if file else None
        self._has_log = connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        if self._file_identity is None:
            raise StoreError("store", "be a file", got=self.place, advice=_IN_MEMORY)
        self._check_file()

    def _check_file(self, *, is_written: bool = False) -> None:
        """Raise an error if the file, or the log that was just written, has been deleted or
        replaced since it was opened.

        What SQLite writes to a deleted file is lost when it is closed, so it is not acknowledged.
        """
        if self._file is None:
            return
        if self._file_identity in FORKS.inherited:
            raise self.forked()
        is_logged = not (is_written and self._has_log) or os.path.exists(f"{self._file}-wal")
        if is_logged and _identity(self._file) == self._file_identity:
            return
        raise StoreError(
            "store",
            f"stay where it is while it is open ({self.place})",
            got="a file that was deleted, moved or replaced",
            advice="put it back, or open the new one; submit again what was not acknowledged",
        )

    def close(self) -> None:
        """Close all connections."""
        if os.getpid() == self._process:
            self._engine.dispose()


def _close(engine: Any, process: int) -> None:
    """Close the connections of an engine in the process that opened them."""
    if os.getpid() == process:
        engine.dispose()


def _identity(file: str) -> tuple[int, int] | None:
    """What distinguishes a file from another one at the same path; None if there is no file."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _url_of(place: str) -> Any:
    """The URL of a database, or of a SQLite file."""
    if "://" not in place:
        if place == ":memory:" or place.startswith("file:"):
            raise StoreError("store", "be a file", got=repr(place), advice=_IN_MEMORY)
        return sa.URL.create("sqlite", database=str(Path(place).absolute()))
    url = sa.make_url(place)
    if url.get_backend_name() not in _DATABASES:
        got = url.get_backend_name()
        raise StoreError("store", "be in SQLite or PostgreSQL", got=got, advice=_NAME_ONE)
    in_memory = url.database in (None, "", ":memory:") or "memory" in str(url.query.get("mode"))
    if url.get_backend_name() == "sqlite" and in_memory:
        raise StoreError("store", "be a file", got=repr(place), advice=_IN_MEMORY)
    return url


def _shown(place: str) -> str:
    """The place for people: a URL without its password."""
    if "://" not in place:
        return place
    try:
        return str(sa.make_url(place).render_as_string(hide_password=True))
    except (sa.exc.ArgumentError, ValueError):
        return f"{place.partition('://')[0][:40]}://..."


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
