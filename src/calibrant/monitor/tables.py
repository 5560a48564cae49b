"""The tables of a store: many models in one database, each with its own rows and its own state."""

from typing import Any

import sqlalchemy as sa

VERSION = 1
"""Version of the schema."""
MOST_NAME = 200
"""Most characters of the name of a model, and of an id."""

METADATA = sa.MetaData()


def _of_models(name: str, *columns: Any, **options: Any) -> sa.Table:
    """A table whose rows belong to models, which have numbers."""
    model = sa.Column("model", sa.Integer, primary_key=True)
    return sa.Table(name, METADATA, model, *columns, **options)


STORE = sa.Table(
    "calibrant_store",
    METADATA,
    sa.Column("key", sa.String(40), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
"""What concerns all models: the version of the schema."""

MODELS = _of_models(
    "calibrant_models",
    sa.Column("name", sa.String(MOST_NAME), nullable=False, unique=True),
    sa.Column("checksum", sa.String(80), nullable=False),
)
"""The models by name. A model is the one that it was made for if the checksum is the same."""

STATE = _of_models(
    "calibrant_state",
    sa.Column("key", sa.String(40), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
"""Texts of a model by name: its settings, the clock and the counts, the saved tests and their seal,
and notes.
"""

PREDICTIONS = _of_models(
    "calibrant_predictions",
    sa.Column("id", sa.String(MOST_NAME), primary_key=True),
    sa.Column("score", sa.Double, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("day", sa.Integer, nullable=False),
    sa.Column("segment", sa.Text),
    sa.Column("label", sa.SmallInteger),
    sa.Index("calibrant_predictions_by_day", "model", "day"),
    sqlite_with_rowid=False,
)
"""Predictions by model and id. The label is 0 or 1; 2 or 3 if it arrived too late to count; null
while unknown.
"""

WAITING = _of_models(
    "calibrant_waiting",
    sa.Column("id", sa.String(MOST_NAME), primary_key=True),
    sa.Column("label", sa.SmallInteger, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Index("calibrant_waiting_by_time", "model", "at"),
    sqlite_with_rowid=False,
)
"""Labels whose prediction is not known yet."""

DAYS = _of_models(
    "calibrant_days",
    sa.Column("day", sa.Integer, primary_key=True),
    sa.Column("counts", sa.Text, nullable=False),
)
"""The counts of each day: rows, positive rows and unknown labels of each cell, as JSON."""

QUARANTINE = _of_models(
    "calibrant_quarantine",
    sa.Column("day", sa.Integer, primary_key=True),
    sa.Column("n_rows", sa.Integer, nullable=False),
    sa.Column("problem", sa.Text, nullable=False),
)
"""Days that could not be counted, and why. Their predictions are kept."""
