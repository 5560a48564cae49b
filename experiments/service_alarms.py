"""False alarms of the service over the whole life of deployments in which nothing changes.

python experiments/service_alarms.py --deployments 500 --days 300
python experiments/service_alarms.py --deployments 10 --days 40      # a first impression

Each deployment is a model with a calibrator of its own, fitted to data of its own, in a new service.
Positive labels come after a day, negative ones after three; some never come. Everything goes over
HTTP, and the state is looked at after every batch. The share of deployments in which any look ever
found an alarm must be at most 5%.
"""

import argparse
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta

from calibrant import BinningCalibrator, save_model

LEVEL = 0.95
MATURITY = 4
ROWS_A_DAY = 30
FIRST_DAY = 10_000
NEVER = 0.1  # share of negative labels that never come: they count as negative, as in calibration


def model_file(rng: np.random.Generator) -> Any:
    """A calibrator of this deployment, as a client sends it."""
    scores = rng.uniform(size=2000)
    calibrator = BinningCalibrator(5).fit(scores, rng.uniform(size=2000) < scores**1.5)
    file = io.StringIO()
    save_model(calibrator, file)
    return json.loads(file.getvalue())


def has_alarm(client: Any, name: str, n_days: int, seed: int) -> bool:
    """Whether a deployment in which nothing changes ever has an alarm, looking after every batch."""
    rng = np.random.default_rng([seed, int(name)])
    content = {"name": name, "maturity": MATURITY, "model": model_file(rng)}
    client.post("/v1/models", json={**content, "confidence_level": LEVEL}).raise_for_status()
    known: dict[int, list[dict[str, Any]]] = {}
    for day in range(FIRST_DAY, FIRST_DAY + n_days):
        scores = rng.uniform(size=ROWS_A_DAY)
        labels = rng.uniform(size=ROWS_A_DAY) < scores**1.5
        lost = ~labels & (rng.uniform(size=ROWS_A_DAY) < NEVER)
        rows = [
            {"id": f"{day} {row}", "score": float(scores[row]), "at": day}
            for row in range(ROWS_A_DAY)
        ]
        client.post(f"/v1/models/{name}/predictions", json=rows).raise_for_status()
        for row in np.flatnonzero(~lost).tolist():
            when = day + (1 if labels[row] else 3)
            label = {"id": f"{day} {row}", "label": int(labels[row]), "at": when}
            known.setdefault(when, []).append(label)
        if day in known:
            client.post(f"/v1/models/{name}/labels", json=known.pop(day)).raise_for_status()
        if client.get(f"/v1/models/{name}").json()["headline"]["alarm"]:
            return True
    return False


def client_of(folder: str) -> Any:
    """A client of a new service in this process; requests and answers are HTTP."""
    from fastapi.testclient import TestClient

    from calibrant.monitor.serve.access import new_token
    from calibrant.monitor.serve.app import make_app
    from calibrant.monitor.serve.service import Service
    from calibrant.monitor.store import Store

    store = Store(Path(folder) / "serve.db", 30.0)
    head = {"Authorization": f"Bearer {new_token(store, 'write')}"}
    app = make_app(Service(store), each_second=1e9)
    return TestClient(app, "http://127.0.0.1:8000", headers=head)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--deployments", type=int, default=500)
    parser.add_argument("--days", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    alarms = 0
    with tempfile.TemporaryDirectory() as folder:
        client = client_of(folder)
        for number in range(given.deployments):
            alarms += has_alarm(client, str(number), given.days, given.seed)
            if (number + 1) % 10 == 0:
                print(f"{alarms} alarms in {number + 1} deployments", flush=True)
    upper = beta.ppf(LEVEL, alarms + 1, given.deployments - alarms)
    share = alarms / given.deployments
    print(f"false alarms: {share:.1%}, at most {upper:.1%} with 95% confidence; allowed: 5%")


if __name__ == "__main__":
    main()
