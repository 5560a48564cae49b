"""Kill the service at random moments under load: what it acknowledged counts exactly once.

python experiments/service_kills.py --times 1000
python experiments/service_kills.py --times 1000 --postgres
"""

import argparse
import os
import signal
import sys
import tempfile
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from calibrant.monitor import Monitor
from monitor.serve.test_processes import BATCH, bearer, make_model, rows_of, service
from worlds.postgres_server import postgres_server

LONGEST_LIFE = 1.5  # seconds that a service serves


def send(client: httpx2.Client, number: int) -> int:
    """Send batches until the service is gone; return the first that was not acknowledged."""
    while True:
        try:
            for what in ("predictions", "labels"):
                answer = client.post(f"/v1/models/fraud/{what}", json=rows_of(number))
                if answer.status_code != 200:
                    sys.exit(f"refused: {answer.text}")
        except httpx2.TransportError:
            return number
        number += 1


def attack(place: str, times: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    head: dict[str, str] = {}
    number = 0
    for turn in range(times):
        with service("--store", place) as (process, told, client):
            if turn == 0:
                head = bearer(told)
                make_model(client, head)
            client.headers.update(head)
            killer = threading.Timer(
                rng.uniform(0.0, LONGEST_LIFE), os.kill, (process.pid, signal.SIGKILL)
            )
            killer.start()
            number = send(client, number)
            killer.join()
        if (turn + 1) % 20 == 0:
            print(f"{turn + 1} kills, {number * BATCH:,} rows acknowledged", flush=True)
    with service("--store", place) as (_, _, client):
        client.headers.update(head)
        for what in ("predictions", "labels"):
            client.post(f"/v1/models/fraud/{what}", json=rows_of(number)).raise_for_status()
        last: dict[str, Any] = {"id": "end", "score": 0.5, "at": 15_000}
        client.post("/v1/models/fraud/predictions", json=last).raise_for_status()
    n_rows = (number + 1) * BATCH
    with Monitor.resume(place, "fraud") as monitor:
        found = monitor.snapshot()
    counted = (found.n_mature, found.n_labels, int(found.positives.sum()))
    print(f"{times} kills: {counted} counted, {(n_rows, n_rows, n_rows // 2)} sent")
    if counted != (n_rows, n_rows, n_rows // 2):
        sys.exit("WRONG")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--postgres", action="store_true")
    given = parser.parse_args()
    with postgres_server() if given.postgres else nullcontext() as host:
        place = f"{tempfile.mkdtemp(prefix='calibrant-kill-')}/serve.db"
        if given.postgres:
            place = f"postgresql+psycopg://tester@/postgres?host={host}"
        attack(place, given.times, given.seed)


if __name__ == "__main__":
    main()
