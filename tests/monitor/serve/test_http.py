"""What the service takes and answers: each row once, each error as a problem object."""

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from calibrant.errors import StoreError
from calibrant.monitor import Monitor
from calibrant.monitor.serve.access import new_token
from calibrant.monitor.store import Store

from .conftest import CALIBRATOR, World, model_file

ROWS = "/v1/models/fraud/predictions"
LABELS = "/v1/models/fraud/labels"
ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}
LINES = {"Content-Type": "application/x-ndjson"}


def arrow(**columns: Any) -> bytes:
    batch = pa.record_batch(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue().to_pybytes()


def counts(answer: Any) -> dict[str, int]:
    assert answer.status_code == 200, answer.text
    return {name: number for name, number in answer.json().items() if number}


def test_each_row_counts_once_in_whatever_form_it_comes(world: World) -> None:
    client = world.writer()
    one = {"id": "a", "score": 0.3, "at": 100.0}
    assert counts(client.post(ROWS, json=one)) == {"recorded": 1}
    assert counts(client.post(ROWS, json=[one, {**one, "id": "b"}])) == {
        "recorded": 1,
        "duplicate": 1,
    }
    lines = "\n".join(json.dumps({**one, "id": name}) for name in "bc")
    assert counts(client.post(ROWS, content=lines, headers=LINES)) == {
        "recorded": 1,
        "duplicate": 1,
    }
    body = arrow(id=["c", "d"], score=[0.3, 0.9], at=[100.0, 100.0])
    assert counts(client.post(ROWS, content=body, headers=ARROW)) == {
        "recorded": 1,
        "duplicate": 1,
    }
    assert counts(client.post(ROWS, json={**one, "score": 0.4})) == {"conflicting": 1}


def test_the_answer_says_what_happened_to_labels(world: World) -> None:
    client = world.writer()
    client.post(ROWS, json=[{"id": name, "score": 0.5, "at": 100.0} for name in "abc"])
    labels = [{"id": name, "label": 1, "at": 101.0} for name in "ax"]
    assert counts(client.post(LABELS, json=labels)) == {"recorded": 1, "waiting": 1}
    other = [{"id": "a", "label": 0, "at": 101.0}, {"id": "x", "label": 1, "at": 101.0}]
    assert counts(client.post(LABELS, json=other)) == {"conflicting": 1, "duplicate": 1}
    late = {"id": "b", "label": 1, "at": 104.5}
    assert counts(client.post(LABELS, json=late)) == {"expired": 1}
    body = arrow(id=["c"], label=[1], at=[101.0])
    assert counts(client.post(LABELS, content=body, headers=ARROW)) == {"expired": 1}
    found = client.get("/v1/models/fraud/snapshot").json()
    assert (found["n_mature"], found["n_labels"], found["n_conflicting"]) == (3, 1, 1)


@pytest.mark.parametrize(
    ("body", "parameter"),
    [
        ({"id": "a"}, "score"),
        ({"score": 0.5}, "id"),
        ({"id": "a", "score": "high"}, "scores"),
        ({"id": "a", "score": 0.5, "at": "yesterday"}, "time"),
        ({"id": "a", "score": 0.5, "at": 1e9}, "at"),
        ({"id": "\x00", "score": 0.5}, "id"),
        ({"id": ["a"], "score": 0.5}, "id"),
        ([{"id": "a", "score": 0.5, "at": 1}, {"id": "b", "score": 0.5}], "at"),
        ([], "the body"),
        ([1], "a row"),
    ],
)
def test_a_wrong_value_is_told_with_the_fields_of_the_library(
    world: World, body: Any, parameter: str
) -> None:
    answer = world.writer().post(ROWS, json=body)
    problem = answer.json()
    assert answer.status_code == problem["status"] == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["parameter"] == parameter, problem
    assert problem["rule"] in problem["detail"]


def test_a_batch_is_taken_as_a_whole_or_not_at_all(world: World) -> None:
    client = world.writer()
    bad = [{"id": "a", "score": 0.5}, {"id": "b", "score": None}]
    assert client.post(ROWS, json=bad).status_code == 422
    assert client.get("/v1/models/fraud/snapshot").json()["n_recorded"] == 0


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"{", {}, 422),
        (b'{"id": "a", "score": NaN}', {}, 422),
        (b"{}\n{", LINES, 422),
        (b"no stream", ARROW, 422),
        (b"id,score", {"Content-Type": "text/csv"}, 415),
        (b"\xff", {}, 422),
    ],
)
def test_a_body_that_cannot_be_read_is_a_problem(
    world: World, content: bytes, headers: dict[str, str], status: int
) -> None:
    answer = world.writer().post(ROWS, content=content, headers=headers)
    assert answer.status_code == answer.json()["status"] == status


def test_models_are_made_once_and_the_same_again(world: World) -> None:
    client = world.writer()
    content = {"name": "fraud", "maturity": 3, "model": model_file()}
    assert client.post("/v1/models", json=content).status_code == 200
    other = client.post("/v1/models", json={**content, "maturity": 4})
    assert (other.status_code, other.json()["parameter"]) == (409, "maturity")
    assert client.post("/v1/models", json={**content, "name": "a/b"}).status_code == 422
    damaged = {**model_file(), "created_by": "somebody"}
    answer = client.post("/v1/models", json={**content, "name": "new", "model": damaged})
    assert answer.json()["parameter"] == "the model file"
    assert [one["name"] for one in client.get("/v1/models").json()["models"]] == ["fraud"]
    assert client.get("/v1/models/other").status_code == 404


def test_an_unknown_setting_of_a_model_is_refused(world: World) -> None:
    content = {"name": "other", "maturity": 3, "model": model_file(), "alpha": 0.1}
    answer = world.writer().post("/v1/models", json=content)
    assert answer.status_code == 422
    assert answer.json()["got"] == "'alpha'"
    assert "confidence_level" in answer.json()["advice"]


def test_calibrating_stores_nothing_and_agrees_with_the_library(world: World) -> None:
    client = world.client()
    scores = [0.1, 0.4, 0.95]
    found = client.post("/v1/models/fraud/calibrate", json=[{"score": one} for one in scores])
    assert found.json()["probability"] == CALIBRATOR.predict(scores).tolist()
    assert found.json()["upper"] == CALIBRATOR.predict_interval(scores)[:, 1].tolist()
    body = arrow(score=scores)
    answer = client.post("/v1/models/fraud/calibrate", content=body, headers=ARROW)
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table.column("lower").to_pylist() == CALIBRATOR.predict_interval(scores)[:, 0].tolist()


def test_a_prediction_can_be_erased_until_it_is_mature(world: World) -> None:
    client = world.writer()
    client.post(ROWS, json=[{"id": name, "score": 0.5, "at": 100.0} for name in "abc"])
    client.post(LABELS, json={"id": "a", "label": 1, "at": 100.5})
    assert client.delete(f"{ROWS}/a").status_code == 204
    assert client.delete(f"{ROWS}/a").status_code == 404
    client.post(ROWS, json={"id": "late", "score": 0.5, "at": 104.0})
    assert client.delete(f"{ROWS}/b").status_code == 409
    found = client.get("/v1/models/fraud/snapshot").json()
    assert (found["n_recorded"], found["n_mature"], found["n_labels"]) == (3, 2, 0)


def test_a_snapshot_that_has_not_changed_is_not_sent_again(world: World) -> None:
    client = world.writer()
    first = client.get("/v1/models/fraud/snapshot")
    same = {"If-None-Match": first.headers["etag"]}
    assert client.get("/v1/models/fraud/snapshot", headers=same).status_code == 304
    client.post(ROWS, json={"id": "a", "score": 0.5})
    assert client.get("/v1/models/fraud/snapshot", headers=same).status_code == 200


READS = (
    "/v1/models",
    "/v1/models/fraud",
    "/v1/models/fraud/guarantee",
    "/v1/models/fraud/drift",
    "/v1/models/fraud/snapshot",
    "/metrics",
    "/",
    "/models/fraud",
    "/models/fraud/report.html",
)


def test_reading_is_open_on_this_machine_only_and_without_a_read_token(world: World) -> None:
    here, elsewhere = world.client(), world.client(host="0.0.0.0")
    read = new_token(world.store, "read")
    closed, reader, writer = world.client(), world.client(read), world.writer()
    for path in READS:
        assert here.get(path).status_code == 200, path
        assert elsewhere.get(path).status_code == closed.get(path).status_code == 401, path
        if path.startswith(("/v1", "/metrics")):
            assert reader.get(path).status_code == writer.get(path).status_code == 200, path
    assert reader.post(ROWS, json={"id": "a", "score": 0.5}).status_code == 403
    assert here.post(ROWS, json={"id": "a", "score": 0.5}).status_code == 401
    for path in ("/healthz", "/readyz"):
        assert closed.get(path).status_code == 200


def test_a_browser_reads_with_a_cookie_and_never_writes_with_it(world: World) -> None:
    new_token(world.store, "read")
    client = world.client()
    sent = client.post("/login", data={"token": world.token}, follow_redirects=False)
    cookie = sent.headers["set-cookie"]
    assert sent.status_code == 303
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert client.get("/").status_code == 200
    assert client.post(ROWS, json={"id": "a", "score": 0.5}).status_code == 401
    assert client.post("/login", data={"token": "wrong"}).status_code == 401


def test_another_site_cannot_lead_a_browser_here(world: World) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example:8000", ""):
        assert world.client().get("/v1/models", headers={"Host": host}).status_code == 421
    for host in ("localhost:8000", "127.0.0.1", "[::1]:8000"):
        assert world.client().get("/v1/models", headers={"Host": host}).status_code == 200


def test_tokens_are_kept_as_hashes_and_a_new_one_replaces_the_last(world: World) -> None:
    old = world.token
    content = Path(world.store.place).read_bytes() + Path(f"{world.store.place}-wal").read_bytes()
    assert old.encode() not in content
    world.token = new_token(world.store, "write")
    row = {"id": "a", "score": 0.5}
    assert world.client(old).post(ROWS, json=row).status_code == 401
    assert world.writer().post(ROWS, json=row).status_code == 200


def test_bodies_and_rates_have_limits(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calibrant.monitor.serve.access.MOST_BYTES", 1000)
    client = world.writer()
    assert client.post(ROWS, content=b" " * 1001).status_code == 413
    assert client.post(ROWS, content=iter([b" " * 600] * 2)).status_code == 413
    slow = world.client(each_second=1e-6)
    assert slow.get("/healthz").status_code == 429
    some = world.client(each_second=1e-6 + 1.5)  # three at once
    statuses = [some.get("/healthz").status_code for _ in range(50)]
    assert statuses[:3] == [200] * 3
    assert 429 in statuses


def test_pages_run_only_their_own_script_and_ask_nobody_else(world: World) -> None:
    import base64
    import hashlib
    import re

    client = world.writer()
    client.post(ROWS, json=[{"id": str(one), "score": one / 40, "at": 100.0} for one in range(40)])
    client.post(ROWS, json={"id": "last", "score": 0.5, "at": 104.0})
    for path in ("/", "/models/fraud"):
        answer = client.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        for kind in ("script", "style"):
            for text in re.findall(f"<{kind}>(.*?)</{kind}>", answer.text, re.DOTALL):
                digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
                assert f"'sha256-{digest}'" in policy, (path, kind)
        assert not re.findall(r"(?:src|href|action)=\"(?:https?:)?//", answer.text)
        assert not re.findall(r" (?:style|on[a-z]+)=\"", answer.text)
        assert answer.headers["x-frame-options"] == "DENY"
    assert "40 predictions" in client.get("/models/fraud").text


def test_a_name_of_a_model_cannot_write_html(world: World) -> None:
    with Monitor(world.store, CALIBRATOR, maturity=3, name="<script>alert(1)</script>"):
        page = world.client().get("/").text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_metrics_have_the_names_that_dashboards_use(world: World) -> None:
    client = world.writer()
    client.post(ROWS, json=[{"id": str(one), "score": 0.9, "at": 100.0} for one in range(40)])
    client.post(LABELS, json=[{"id": str(one), "label": 1, "at": 101.0} for one in range(36)])
    client.post(ROWS, json={"id": "last", "score": 0.5, "at": 104.0})
    answer = client.get("/metrics")
    lines = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if line[0] != "#")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert lines['calibrant_alarm{model="fraud"}'] == "0.0"
    assert lines['calibrant_pending{model="fraud"}'] == "1"
    assert lines['calibrant_labels_total{model="fraud",outcome="resolved"}'] == "36"
    assert lines['calibrant_rate{model="fraud",bin="[0.75, 1]"}'] == "0.9"
    assert float(lines['calibrant_alpha_spent{model="fraud"}']) == pytest.approx(0.04)
    assert float(lines['calibrant_last_event_timestamp_seconds{model="fraud"}']) == 104 * 86_400
    assert {'calibrant_epsilon{model="fraud"}'} < set(lines)
    for test in ("rates", "guarantee"):
        assert f'calibrant_log_evidence{{model="fraud",test="{test}"}}' in lines


def test_a_store_that_is_away_is_told_and_may_come_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = world.writer()

    def away(*_: object, **__: object) -> Any:
        raise StoreError("store", "be read", got="no connection")

    with monkeypatch.context() as patched:
        patched.setattr(Store, "_transaction", away)
        for answer in (
            client.post(ROWS, json={"id": "a", "score": 0.5}),
            client.get("/readyz"),
            client.get("/v1/models"),
        ):
            assert answer.status_code == answer.json()["status"] == 503
            assert int(answer.headers["retry-after"]) > 0
    assert client.get("/healthz").status_code == client.get("/readyz").status_code == 200


def test_what_was_sent_is_never_logged(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Any:
        raise RuntimeError("patient 7 has a fault")

    monkeypatch.setattr("calibrant.monitor.serve.service.Service.record", fails)
    said: list[str] = []
    kept = logging.Handler()
    kept.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("calibrant")
    log.addHandler(kept)
    try:
        answer = world.writer().post(ROWS, json={"id": "patient 7", "score": 0.5})
    finally:
        log.removeHandler(kept)
    assert answer.status_code == 500
    assert "patient" not in answer.text
    assert any("RuntimeError" in text for text in said)
    assert not any("patient" in text for text in said)


def test_a_service_finds_models_of_the_library_and_of_other_services(world: World) -> None:
    with Monitor(world.store, CALIBRATOR, maturity=0, name="by hand") as monitor:
        monitor.record("a", 0.5, at=100.0)
    first, second = world.writer(), world.writer()
    assert counts(first.post("/v1/models/by hand/predictions", json={"id": "a", "score": 0.5}))
    content = {"name": "another", "maturity": 0, "model": model_file()}
    assert first.post("/v1/models", json=content).status_code == 201
    row = {"id": "a", "score": 0.5}
    assert counts(second.post("/v1/models/another/predictions", json=row)) == {"recorded": 1}


def test_library_watch_and_service_find_the_same_evidence(world: World, tmp_path: Path) -> None:
    from calibrant import load_model
    from calibrant.cli._app import app

    rng = np.random.default_rng(3)
    model = tmp_path / "model.json"
    model.write_text(json.dumps(model_file()))
    seed = 5
    stream = []
    for day in range(100, 140):
        scores = rng.uniform(size=80)
        y = rng.uniform(size=80) < scores ** (1 + (day > 120))
        stream += [
            {"id": f"{day} {row}", "score": float(scores[row]), "label": int(y[row]), "at": day}
            for row in range(80)
        ]
    how = {"maturity": 3, "random_state": seed}
    content = load_model(model)
    with Monitor(tmp_path / "library.db", content, **how) as monitor:
        for start in range(0, len(stream), 80):
            part = stream[start : start + 80]
            ids, at = [row["id"] for row in part], [float(row["at"]) for row in part]
            monitor.record_many(ids, [row["score"] for row in part], at)
            monitor.resolve_many(ids, [row["label"] for row in part], at)
        by_library = monitor.snapshot()
    with Monitor(tmp_path / "watch.db", content, **how):
        pass
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in stream))
    store = str(tmp_path / "watch.db")
    options = ["--model", str(model), "--store", store, "--maturity", "3", "--once", "--quiet"]
    with pytest.raises(SystemExit):
        app.main(["watch", str(lines), *options])
    with Monitor.resume(tmp_path / "watch.db", "model") as monitor:
        by_watch = monitor.snapshot()
    with Monitor(world.store, content, name="same", **how):
        pass
    client = world.writer()
    for start in range(0, len(stream), 80):
        part = stream[start : start + 80]
        assert counts(client.post("/v1/models/same/predictions", json=part)) == {"recorded": 80}
        assert counts(client.post("/v1/models/same/labels", json=part)) == {"recorded": 80}
    by_service = client.get("/v1/models/same/snapshot").json()
    assert by_library.alarm
    assert by_service == json.loads(json.dumps(by_library.to_dict()))
    assert by_watch.to_dict() == by_library.to_dict()
