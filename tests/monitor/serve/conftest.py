"""A service over a new store, and clients with each kind of key."""

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from calibrant import BinningCalibrator, Partition, save_model
from calibrant.monitor.serve.access import new_token
from calibrant.monitor.serve.app import make_app
from calibrant.monitor.serve.service import Service
from calibrant.monitor.store import Store

HOME = "http://127.0.0.1:8000"
RNG = np.random.default_rng(0)
SCORES = RNG.uniform(size=2000)
CALIBRATOR = BinningCalibrator(partition=Partition.fixed_width(4)).fit(
    SCORES, RNG.uniform(size=2000) < SCORES
)


def model_file() -> Any:
    """The content of the model file, as a client sends it."""
    file = io.StringIO()
    save_model(CALIBRATOR, file)
    return json.loads(file.getvalue())


@dataclass
class World:
    """A store with the model "fraud", its service, and a client that may write."""

    store: Store
    token: str

    def client(self, token: str | None = None, **how: Any) -> Any:
        """A client of a new service over the same store."""
        head = {} if token is None else {"Authorization": f"Bearer {token}"}
        app = make_app(Service(self.store), **how)
        return TestClient(app, HOME, headers=head, raise_server_exceptions=False)

    def writer(self, **how: Any) -> Any:
        return self.client(self.token, **how)


def begun(store: Store) -> World:
    world = World(store, new_token(store, "write"))
    content = {"name": "fraud", "maturity": 3, "model": model_file()}
    made = world.writer().post("/v1/models", json=content)
    assert made.status_code == 201, made.text
    return world


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    store = Store(tmp_path / "serve.db", 30.0)
    yield begun(store)
    store.close()
