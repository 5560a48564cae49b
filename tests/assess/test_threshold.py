"""Thresholds: segments, groups, files of any size, saving and exports."""

import contextlib
import json
import math
import sqlite3

import numpy as np
import pytest

from calibrant import Threshold, load_model, save_model, scored, threshold
from calibrant.assess.threshold.cut import compared
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.export import to_onnx, to_python, to_sql
from worlds.thresholds import draws, in_groups


def test_segments_share_the_budget_and_keep_their_own_thresholds():
    rng = np.random.default_rng(3)
    scores = rng.uniform(size=6_000)
    group = rng.integers(2, size=6_000)
    y = rng.uniform(size=6_000) < np.where(group == 0, scores, scores**3)
    names = np.array(["a", "b"])[group]
    found = threshold(y, scores, precision=0.7, segments=names)
    first, second = found.cuts
    assert (first.segment, second.segment) == ("a", "b")
    assert first.threshold < second.threshold
    assert found.predict([0.6, 0.6, 0.6], ["a", "b", "c"]).tolist() == [True, False, False]
    assert "In segment 'a', at least 70%" in found.details
    assert "; in segment 'b', at least 70%" in found.details
    assert "confidence, all together" in found.sentence
    assert "all together" not in threshold(y, scores, precision=0.7).sentence
    with pytest.raises(InvalidTypeError, match=r"use \.cuts"):
        _ = found.threshold
    with pytest.raises(InvalidTypeError, match="segments must be given"):
        found.predict([0.5])


def test_two_sides_leave_a_middle_to_a_person():
    _, scores, y = next(draws(lambda s: s, 5_000, 1))
    found = threshold(y, scores, precision=0.9, npv=0.9)
    act, leave = found.cuts
    assert leave.threshold < 0.5 < act.threshold
    assert found.predict([0.1, 0.5, 0.95]).tolist() == [False, False, True]
    assert found.refer([0.1, 0.5, 0.95]).tolist() == [False, True, False]
    easy = threshold(y, scores, precision=0.55, npv=0.55)
    assert easy.cuts[0].threshold == easy.cuts[1].threshold
    assert not easy.refer(scores).any()


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("target", ["precision", "npv", "recall", "specificity"])
def test_scored_data_agree_with_arrays(target, segments):
    pa = pytest.importorskip("pyarrow")
    _, scores, y = next(draws(lambda s: s, 4_000, 1))
    group = np.arange(4_000) % 2 if segments else None
    columns = {"p": scores, "y": y, **({"g": group} if segments else {})}
    data = scored(pa.table(columns), score="p", label="y", **({"segment": "g"} if segments else {}))
    kept = threshold(data, **{target: 0.8})
    exact = threshold(y, scores, segments=group, **{target: 0.8})
    for one, other in zip(kept.cuts, exact.cuts, strict=True):
        assert one == other


@pytest.mark.parametrize("target", ["precision", "npv", "recall", "specificity"])
def test_more_rows_than_are_sorted_are_counted_at_drawn_thresholds(target, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    _, scores, y = next(draws(lambda s: s, 4_000, 1))
    data = scored(pa.table({"p": scores, "y": y}), score="p", label="y")
    exact = threshold(y, scores, **{target: 0.8})
    monkeypatch.setattr("calibrant.assess.threshold.threshold._MOST_RANKED", 3_999)
    drawn = threshold(data, **{target: 0.8})
    assert (exact.n_drawn, exact.method, drawn.method) == (0, "ranks", "look")
    assert 500 < drawn.n_drawn < 700
    assert drawn.threshold == pytest.approx(exact.threshold, abs=0.05)


def test_saved_and_read_back(tmp_path):
    _, scores, y = next(draws(lambda s: s, 2_000, 1))
    for found in (
        threshold(y, scores, precision=0.8),
        threshold(y, scores, precision=0.999, npv=0.8),
    ):
        state = json.loads(json.dumps(found.to_dict()))
        assert Threshold.from_dict(state) == found
        save_model(found, tmp_path / "t.json", columns={"score": "p"}, overwrite=True)
        model = load_model(tmp_path / "t.json")
        assert model.calibrator == found
        assert model.columns == {"score": "p"}
        assert model.predict(scores).tolist() == found.predict(scores).tolist()
    with pytest.raises(InvalidValueError, match="schema"):
        Threshold.from_dict({"schema": "other"})
    with pytest.raises(InvalidValueError, match="target must be one of"):
        Threshold.from_dict({**state, "cuts": [{**state["cuts"][0], "target": "luck"}]})


@pytest.mark.parametrize(
    "arguments", [{"precision": 0.8}, {"precision": 0.9, "npv": 0.9}, {"precision": 0.9999}]
)
@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.broad
def test_exports_agree_with_predict_and_refer(arguments, segments):
    _, scores, y = next(draws(lambda s: s, 4_000, 1))
    group = np.array(["a", "b"])[np.arange(4_000) % 2] if segments else None
    found = threshold(y, scores, segments=group, **arguments)
    edges = [cut.threshold for cut in found.cuts if cut.threshold is not None]
    tried = np.array([0.0, 0.5, 1.0, *edges, *np.nextafter(edges, -1)])
    where = None if group is None else np.array(["a"] * tried.size)
    selected = found.predict(tried, where)
    referred = found.refer(tried, where)
    expected = [
        None if refer else float(select) for select, refer in zip(selected, referred, strict=True)
    ]
    namespace = {}
    exec(to_python(found, name="choose"), namespace)
    given = [(score,) if group is None else (score, "a") for score in tried.tolist()]
    assert [namespace["choose"](*row)["selected"] for row in given] == expected
    text = to_sql(found, dialect="sqlite", table="t", segment=None if group is None else "g")
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE t (score REAL, g TEXT)")
        database.executemany(
            "INSERT INTO t VALUES (?, 'a')", [(score,) for score in tried.tolist()]
        )
        assert [row[-1] for row in database.execute(text)] == expected
    onnxruntime = pytest.importorskip(
        "onnxruntime"
    )  # which needs the extra onnx, unlike the rest of this file
    session = onnxruntime.InferenceSession(
        to_onnx(found).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    feed = {"score": tried} | ({} if where is None else {"segment": where.astype(object)})
    (chosen,) = session.run(["selected"], feed)
    assert [None if np.isnan(value) else value for value in chosen.tolist()] == expected


@pytest.mark.broad
def test_groups_are_counted_whole_in_segments_and_in_scored_data():
    pa = pytest.importorskip("pyarrow")
    groups, scores, y = in_groups(2_000, 3, 0)
    segments = np.arange(6_000) % 2
    found = threshold(y, scores, precision=0.7, npv=0.7, groups=groups, segments=segments)
    assert (
        found.limits_confidence_level == found.confidence_level == 0.9
    )  # only the targets have limits
    assert found.max_group_size == 3
    assert found.assumptions == ("groups are independent draws from one population",)
    assert found.seed == 0
    assert "A group counts as at most 3 rows." in found.details
    assert all(cut.threshold is not None for cut in found.cuts)
    assert Threshold.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    table = pa.table({"p": scores, "y": y, "g": groups, "s": segments})
    data = scored(table, score="p", label="y", group="g", segment="s")
    assert threshold(data, precision=0.7, npv=0.7) == found
    for wrong in ({"precision": 0.9, "method": "ranks"}, {"precision": 0.9, "start": 0.9}):
        with pytest.raises(
            InvalidTypeError, match="groups must be used with method='look', without start"
        ):
            threshold(y, scores, groups=groups, **wrong)


def test_the_next_number_above_a_short_score_is_told_by_that_score():
    for short in (0.85, -0.3, 85.0, 0.0, 1e-05):
        cut = math.nextafter(short, math.inf)
        assert compared(cut) == {"above": f"> {short!r}", "below": f"<= {short!r}"}
        assert compared(short) == {"above": f">= {short!r}", "below": f"< {short!r}"}
    long = np.random.default_rng(0).uniform(size=1_000)
    assert all(compared(cut)["above"] == f">= {cut!r}" for cut in long.tolist())
    scores = np.random.default_rng(1).integers(0, 100, 5_000) / 100
    y = np.random.default_rng(2).uniform(size=5_000) < scores
    for target, sign in (("precision", ">"), ("specificity", "<=")):
        found = threshold(y, scores, **{target: 0.8})
        under = math.nextafter(found.threshold, 0.0)
        assert under in scores
        assert f"score {sign} {under!r}" in found.sentence
        assert found.tables()[0].columns["score"] == [f"> {under!r}"]
        assert found.to_dict()["cuts"][0]["threshold"] == found.threshold > under
