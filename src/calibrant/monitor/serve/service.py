"""A store and the monitors of its models, for many requests at once."""

import hashlib
import io
import json
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import numpy as np
import sqlalchemy as sa

from calibrant.answers.model_file import load_model
from calibrant.errors import CalibrantError, InvalidValueError
from calibrant.monitor.durable import Monitor
from calibrant.monitor.headline import Standing, standings
from calibrant.monitor.ledger import Receipt
from calibrant.monitor.model_rows import ModelRows
from calibrant.monitor.serve.bodies import Body
from calibrant.monitor.serve.problems import ConflictError, ProblemError
from calibrant.monitor.snapshot import MonitorSnapshot
from calibrant.monitor.store import Store
from calibrant.monitor.tables import PREDICTIONS

T = TypeVar("T")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,199}")
_SETTINGS = ("maturity", "confidence_level", "unit", "reference", "remember")


class Service:
    """What the routes do."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._monitors: dict[str, Monitor] = {}
        self._snapshots: dict[str, tuple[str, MonitorSnapshot]] = {}
        # writers of a file take turns here, where the next one starts at once
        self._turn: AbstractContextManager[Any] = (
            threading.Lock() if store.is_sqlite else nullcontext()
        )

    def monitor(self, name: str) -> Monitor:
        """The monitor of a model, which another service may have made."""
        found = self._monitors.get(name)
        if found is None:
            try:
                found = Monitor.resume(self.store, name)
            except InvalidValueError:
                raise ProblemError(404, "there is no such model") from None
            self._monitors[name] = found
        return found

    def create(self, content: Any) -> tuple[Monitor, bool]:
        """Add a model, or find the same one; return whether it is new."""
        if not isinstance(content, Mapping):
            raise InvalidValueError("the body", "be a JSON object")
        name = content.get("name")
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            rule = "be letters, digits, blanks, points, hyphens and underscores, at most 200"
            raise InvalidValueError("name", rule)
        for required in ("model", "maturity"):
            if required not in content:
                raise InvalidValueError(required, "be in the body")
        unknown = sorted(set(content) - {"name", "model", *_SETTINGS})
        if unknown:
            level = "use confidence_level, which is 1 - alpha" if "alpha" in unknown else None
            raise InvalidValueError("the body", "have known entries", repr(unknown[0]), level)
        model = load_model(io.StringIO(json.dumps(content["model"])))
        settings = {one: content[one] for one in _SETTINGS if content.get(one) is not None}
        with self._turn:
            known = self.standing(name)
            try:
                monitor = Monitor(self.store, model, name=name, **settings)
            except CalibrantError as error:
                if known is not None and isinstance(error, InvalidValueError):
                    raise ConflictError(error) from None
                raise
        self._monitors[name] = monitor
        return monitor, known is None

    def record(self, name: str, body: Body) -> Receipt:
        """Record predictions."""
        monitor = self.monitor(name)
        columns = body.columns(("id", "score"), ("at", "segment"))  # in the order of arguments
        with self._turn:
            return monitor.record_many(*columns.values())

    def resolve(self, name: str, body: Body) -> Receipt:
        """Record labels."""
        monitor = self.monitor(name)
        columns = body.columns(("id", "label"), ("at",))
        with self._turn:
            return monitor.resolve_many(*columns.values())

    def erase(self, name: str, one: str) -> None:
        """Delete a prediction that is not mature."""
        monitor = self.monitor(name)
        try:
            with self._turn:
                found = monitor.erase(one)
        except InvalidValueError as error:
            raise ConflictError(error) from None
        if not found:
            raise ProblemError(404, "there is no prediction with this id")

    def calibrate(self, name: str, body: Body) -> dict[str, Any]:
        """Calibrated probabilities, and limits if the calibrator has them; nothing is stored."""
        calibrator: Any = self.monitor(name).calibrator
        columns = body.columns(("score",), ("segment",))
        segments = {} if columns["segment"] is None else {"segments": columns["segment"]}
        scores = columns["score"]
        found = {"probability": np.asarray(calibrator.predict(scores, **segments))}
        if hasattr(calibrator, "predict_interval"):
            limits = np.asarray(calibrator.predict_interval(scores, **segments))
            found |= {"lower": limits[:, 0], "upper": limits[:, 1]}
        return found

    def standings(self) -> list[Standing]:
        """All models."""
        with self.store.reading() as connection:
            return standings(connection)

    def standing(self, name: str) -> Standing | None:
        """One model; None if there is none of this name."""
        with self.store.reading() as connection:
            return next(iter(standings(connection, name)), None)

    def version(self, name: str) -> str:
        """A value that changes whenever anything in a snapshot does."""
        found = self.standing(name)
        if found is None:
            raise ProblemError(404, "there is no such model")
        return hashlib.sha256(repr(found).encode()).hexdigest()[:32]

    def versions(self) -> str:
        """A text that changes whenever the list of models does."""
        return hashlib.sha256(repr(self.standings()).encode()).hexdigest()[:32]

    def snapshot(self, name: str) -> tuple[str, MonitorSnapshot]:
        """What is known of a model, and its version."""
        version = self.version(name)
        known = self._snapshots.get(name)
        if known is None or known[0] != version:
            known = (version, self.monitor(name).snapshot())
            self._snapshots[name] = known
        return known

    def n_unlabelled(self, name: str) -> int:
        """How many predictions of the next day that is counted have no label yet."""
        found = self.standing(name)
        if found is None or found.live.counted_until is None:
            return 0
        with self.store.rows_of(self.monitor(name).number) as rows:
            next_day = PREDICTIONS.c.day == found.live.counted_until
            return rows.count(PREDICTIONS, next_day, PREDICTIONS.c.label.is_(None))

    def locked(self, name: str, change: Callable[[ModelRows], T]) -> T:
        """Run a change of a model's texts while no other process changes them."""
        number = self.monitor(name).number
        with self._turn, self.store.rows_of(number, writes=True) as rows:
            rows.locked_live()
            return change(rows)

    def check(self) -> None:
        """Raise a StoreError unless the store can be read."""
        with self.store.reading() as connection:
            connection.execute(sa.select(1))
