"""The tables of a store of predictions and labels, and their migrations."""

from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa

from calibrant.errors import InvalidValueError

VERSION = 1
"""Version of the schema. A change adds a step to `MIGRATIONS`; steps are never removed."""

METADATA = sa.MetaData()

STATE = sa.Table(
    "calibrant_state",
    METADATA,
    sa.Column("key", sa.String(40), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
"""Texts by name: the version, the settings, the clock and the counts, and the saved tests."""

PREDICTIONS = sa.Table(
    "calibrant_predictions",
    METADATA,
    sa.Column("id", sa.String(200), primary_key=True),
    sa.Column("score", sa.Double, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("day", sa.Integer, nullable=False),
    sa.Column("segment", sa.Text),
    sa.Column("label", sa.SmallInteger),
    sa.Index("calibrant_predictions_by_day", "day"),
    sqlite_with_rowid=False,
)
"""Predictions by id. The label is 0 or 1; 2 or 3 if it arrived too late to count; null while
unknown.
"""

WAITING = sa.Table(
    "calibrant_waiting",
    METADATA,
    sa.Column("id", sa.String(200), primary_key=True),
    sa.Column("label", sa.SmallInteger, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Index("calibrant_waiting_by_time", "at"),
    sqlite_with_rowid=False,
)
"""Labels whose prediction is not known yet."""

DAYS = sa.Table(
    "calibrant_days",
    METADATA,
    sa.Column("day", sa.Integer, primary_key=True),
    sa.Column("counts", sa.Text, nullable=False),
)
"""The counts of each day: rows, positive rows and unknown labels of each region, as JSON."""

MIGRATIONS: Mapping[int, Callable[[Any], None]] = {}
"""The migration from version n to n + 1, by n.

It receives a connection, within the transaction that opens the store.
"""


def prepare_tables(connection: Any) -> bool:
    """Create the tables, or migrate older ones; return whether the store is new."""
    METADATA.create_all(connection)
    found = connection.execute(sa.select(STATE.c.value).where(STATE.c.key == "version")).scalar()
    if found is None:
        connection.execute(STATE.insert().values(key="version", value=str(VERSION)))
        return True
    version = int(found)
    if version > VERSION:
        rule = f"have a schema of version {VERSION} or older"
        raise InvalidValueError(
            "store",
            rule,
            got=f"version {version}",
            advice="install a newer release of calibrant",
        )
    for step in range(version, VERSION):
        MIGRATIONS[step](connection)
    if version < VERSION:
        connection.execute(
            STATE.update().where(STATE.c.key == "version").values(value=str(VERSION))
        )
    return False
