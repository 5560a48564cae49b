"""The service as a process: killed under load, two on one PostgreSQL, and watched in a browser."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from calibrant.monitor import Monitor
from worlds.postgres_server import missing

from .conftest import model_file

SERVE = (sys.executable, "-m", "calibrant", "serve", "--json")
TURNS = 3
BATCH = 40
PATIENCE = 120.0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as place:
        return int(place.getsockname()[1])


@contextmanager
def service(*options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str], httpx2.Client]]:
    """A service as `calibrant serve` starts it: its process, what it says, and a client."""
    port = free_port()
    command = (*SERVE, "--port", str(port), *options)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        told = ""
        while not told.endswith("}\n"):
            line = process.stdout.readline()  # type: ignore[union-attr]
            assert line, process.stderr.read()  # type: ignore[union-attr]
            told += line
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=30.0) as client:
            wait_for(client)
            yield process, json.loads(told), client
    finally:
        process.kill()
        process.communicate()


def wait_for(client: httpx2.Client) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            assert client.get("/readyz").status_code == 200
            return
        except httpx2.TransportError:
            assert time.monotonic() < end
            time.sleep(0.05)


def bearer(told: dict[str, str]) -> dict[str, str]:
    return {"Authorization": f"Bearer {told['write_token']}"}


def make_model(client: httpx2.Client, head: dict[str, str]) -> None:
    content = {"name": "fraud", "maturity": 3, "model": model_file()}
    assert client.post("/v1/models", json=content, headers=head).status_code == 201


def rows_of(number: int) -> list[dict[str, Any]]:
    first = number * BATCH
    return [
        {"id": str(row), "score": row % 97 / 97, "label": row % 2, "at": 100 + row / 500}
        for row in range(first, first + BATCH)
    ]


@pytest.mark.service
def test_what_a_killed_service_acknowledged_counts_exactly_once(tmp_path: Path) -> None:
    """The client sends each batch until it is acknowledged, whoever dies meanwhile."""
    store = tmp_path / "serve.db"
    head: dict[str, str] = {}
    number = 0
    acknowledged: set[str] = set()
    for turn in range(TURNS):
        with service("--store", str(store)) as (process, told, client):
            head = head or bearer(told)
            client.headers.update(head)
            if turn == 0:
                make_model(client, head)
            before = number
            begun = time.monotonic()
            while True:
                if number - before >= 3 and time.monotonic() - begun > 0.4 * turn:
                    os.kill(process.pid, signal.SIGKILL)
                try:
                    for what in ("predictions", "labels"):
                        answer = client.post(f"/v1/models/fraud/{what}", json=rows_of(number))
                        assert answer.status_code == 200, answer.text
                except httpx2.TransportError:
                    break
                acknowledged |= {row["id"] for row in rows_of(number)}
                number += 1
    with service("--store", str(store)) as (_, _, client):
        client.headers.update(head)
        for what in ("predictions", "labels"):
            client.post(f"/v1/models/fraud/{what}", json=rows_of(number))
        client.post("/v1/models/fraud/predictions", json={"id": "end", "score": 0.5, "at": 9999})
    n_rows = (number + 1) * BATCH
    assert len(acknowledged) == number * BATCH
    with Monitor.resume(store, "fraud") as monitor:
        found = monitor.snapshot()
    assert (found.n_recorded, found.n_mature, found.n_pending) == (n_rows + 1, n_rows, 1)
    assert (found.n_labels, int(found.positives.sum())) == (n_rows, n_rows // 2)


@pytest.mark.service
def test_two_services_share_one_postgres(postgres: str) -> None:
    place = f"postgresql+psycopg://tester@/postgres?host={postgres}"
    with (
        service("--store", place) as (_, told, first),
        service("--store", place) as (_, second_told, second),
    ):
        assert "write_token" not in second_told
        head = bearer(told)
        make_model(first, head)
        for number in range(6):
            for client in (first, second):  # each batch comes twice
                client.headers.update(head)
                answer = client.post("/v1/models/fraud/predictions", json=rows_of(number))
                assert answer.json()["recorded"] == (BATCH if client is first else 0)
                answer = client.post("/v1/models/fraud/labels", json=rows_of(number))
                assert answer.json()["duplicate"] == (0 if client is first else BATCH)
        found = [one.get("/v1/models/fraud/snapshot").json() for one in (first, second)]
        assert found[0] == found[1]
        assert found[0]["n_recorded"] == 6 * BATCH


@pytest.mark.service
def test_a_page_renews_itself_in_a_browser_and_says_nothing_in_its_console(tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    found = shutil.which("chromium") or shutil.which("chromium-browser") or missing("chromium")
    with service("--store", str(tmp_path / "serve.db")) as (_, told, client):
        make_model(client, bearer(told))
        client.headers.update(bearer(told))
        with playwright.sync_playwright() as started:
            how = {"executable_path": found, "args": ["--no-sandbox"]}
            page = started.chromium.launch(**how).new_page()
            said: list[str] = []
            asked: list[str] = []
            page.on("console", lambda message: said.append(message.text))
            page.on("pageerror", lambda error: said.append(str(error)))
            page.on("request", lambda request: asked.append(request.url))
            page.goto(f"{client.base_url}/models/fraud")
            assert "Nothing is known about drift yet" in page.inner_text("main")
            page.keyboard.press("Tab")
            assert page.evaluate("document.activeElement.className") == "skip"
            for number in range(60):
                client.post("/v1/models/fraud/predictions", json=rows_of(number))
                client.post("/v1/models/fraud/labels", json=rows_of(number))
            page.wait_for_selector("text=Rates and predictions", timeout=1000 * PATIENCE)
            assert said == []
            assert all(url.startswith(str(client.base_url)) for url in asked)
            page.goto(f"{client.base_url}/")
            page.click("text=fraud")
            page.wait_for_selector("text=All models", timeout=1000 * PATIENCE)
            assert said == []
