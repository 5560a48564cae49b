"""How fast the service is: a second process sends batches, and then single rows and scores.

python benchmarks/service.py --seconds 60
python benchmarks/service.py --seconds 5     # a first impression

The service, its store in SQLite, and the client share this machine. Times are those of the client.
"""

import argparse
import io
import json
import multiprocessing
import os
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from calibrant import BinningCalibrator, save_model

ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}
BATCH = 1000
DAY = 20_000.0
MOST_CALLS = 2000


def fitted() -> BinningCalibrator:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=20_000)
    return BinningCalibrator(10).fit(scores, rng.uniform(size=20_000) < scores)


def serve(place: str, listening: socket.socket, tell: Any) -> None:
    """Run the service in this process until it is ended."""
    import uvicorn

    from calibrant.monitor.serve.access import new_token
    from calibrant.monitor.serve.app import make_app
    from calibrant.monitor.serve.service import Service
    from calibrant.monitor.store import Store

    store = Store(place, 30.0)
    tell.send(new_token(store, "write"))
    app = make_app(Service(store), each_second=1e6)
    config = uvicorn.Config(app, log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[listening])


def arrow(**columns: Any) -> bytes:
    batch = pa.record_batch(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue().to_pybytes()


def ingest(client: Any, seconds: float, *, as_arrow: bool) -> tuple[float, int]:
    """Predictions in batches: rows a second."""
    rng = np.random.default_rng(1)
    kind = "arrow" if as_arrow else "json"
    scores = rng.uniform(size=BATCH).tolist()
    number = 0
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        ids = [f"{kind} {number + row}" for row in range(BATCH)]
        if as_arrow:
            how = {"content": arrow(id=ids, score=scores, at=[DAY] * BATCH), "headers": ARROW}
        else:
            rows = zip(ids, scores, strict=True)
            how = {"json": [{"id": name, "score": score, "at": DAY} for name, score in rows]}
        answer = client.post("/v1/models/fraud/predictions", **how)
        assert answer.json()["recorded"] == BATCH, answer.text
        number += BATCH
    return number / (time.perf_counter() - begin), number


def latencies(call: Any, n_calls: int) -> str:
    taken = []
    for number in range(n_calls):
        begin = time.perf_counter()
        assert call(number).status_code == 200
        taken.append(time.perf_counter() - begin)
    p50, p99 = 1000.0 * np.quantile(taken, [0.5, 0.99])
    return f"p50 {p50:.2f} ms, p99 {p99:.2f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    seconds = parser.parse_args().seconds
    import httpx2

    n_calls = min(MOST_CALLS, int(100 * seconds))
    # asyncio sends small packets at once only if the protocol is named, as uvicorn names it
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    with tempfile.TemporaryDirectory() as folder:
        here, there = multiprocessing.Pipe()
        context = multiprocessing.get_context("fork")
        place = str(Path(folder) / "serve.db")
        process = context.Process(target=serve, args=(place, listening, there), daemon=True)
        process.start()
        head = {"Authorization": f"Bearer {here.recv()}"}
        port = listening.getsockname()[1]
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers=head, timeout=30) as client:
            file = io.StringIO()
            save_model(fitted(), file)
            content = {"name": "fraud", "maturity": 7, "model": json.loads(file.getvalue())}
            assert client.post("/v1/models", json=content).status_code == 201
            for as_arrow in (False, True):
                rate, number = ingest(client, seconds, as_arrow=as_arrow)
                kind = "Arrow" if as_arrow else "JSON"
                print(f"{number:,} rows in batches of {BATCH:,}, {kind}: {rate:,.0f} a second")
            at = "/v1/models/fraud"
            one = {"score": 0.3, "at": DAY}
            said = latencies(
                lambda n: client.post(f"{at}/predictions", json={"id": f"one {n}", **one}), n_calls
            )
            print(f"one prediction: {said}")
            said = latencies(lambda n: client.post(f"{at}/calibrate", json={"score": 0.3}), n_calls)
            print(f"calibrate one score: {said}")
            body = arrow(score=np.random.default_rng(2).uniform(size=1_000_000))
            said = latencies(
                lambda n: client.post(f"{at}/calibrate", content=body, headers=ARROW), 5
            )
            print(f"calibrate 1,000,000 scores, Arrow: {said}")
        process.terminate()
        process.join()
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
