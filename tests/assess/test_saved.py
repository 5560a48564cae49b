"""Saved thresholds are checked as strictly as model files: the counts decide, and nothing is
ignored.
"""

import copy
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from calibrant import Threshold, scored, threshold
from calibrant.assess.threshold.proved_threshold import decision_columns
from calibrant.errors import CalibrantError
from worlds.model_files import read, refused, sealed, written

RNG = np.random.default_rng(0)
SCORES = RNG.uniform(size=3_000)
Y = (RNG.uniform(size=3_000) < SCORES).astype(int)
SEGMENT = np.where(np.arange(3_000) % 3 == 0, "a", "b")
GROUP = np.arange(3_000) // 2
FOUND = {
    "ranks": threshold(Y, SCORES, precision=0.8),
    "start": threshold(Y, SCORES, precision=0.8, start=0.9),
    "look": threshold(Y, SCORES, precision=0.8, method="look"),
    "recall": threshold(Y, SCORES, recall=0.9),
    "specificity": threshold(Y, SCORES, specificity=0.9, segments=SEGMENT),
    "both": threshold(Y, SCORES, precision=0.8, npv=0.8, segments=SEGMENT),
    "groups": threshold(Y, SCORES, precision=0.7, groups=GROUP),
    "tied": threshold(Y, np.round(SCORES, 1), precision=0.8),
    "weights": threshold(
        Y, SCORES, precision=0.7, importance_weight=0.5 + SCORES, weight_bound=1.5
    ),
    "unlabelled": threshold(Y, SCORES, precision=0.8, unlabelled_scores=SCORES[:50]),
    "nothing": threshold(Y, SCORES, precision=0.999),
    "one row": threshold([0, 1], [0.2, 0.8], recall=0.9),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_is_read_back(name: str) -> None:
    found = FOUND[name]
    again = read(written(found)).calibrator
    assert again.saved_state() == found.saved_state()
    assert Threshold.from_dict(found.to_dict()) == found
    assert found.read == ()
    assert again.read == ("counts", "thresholds")
    assert again.sentence == found.sentence
    assert "Read from a file, not recomputed from the rows: counts, thresholds." in again.notes


EDITS: dict[str, tuple[str, tuple[Any, ...], Any]] = {
    "confidence above one": ("ranks", ("confidence_level",), 7.0),
    "confidence of text": ("ranks", ("confidence_level",), "0.9"),
    "a higher confidence": ("ranks", ("confidence_level",), 0.9999),
    "level below zero": ("ranks", ("cuts", 0, "level"), -5),
    "a higher level": ("ranks", ("cuts", 0, "level"), 0.9),
    "a threshold that is true": ("ranks", ("cuts", 0, "threshold"), True),
    "a threshold of text": ("ranks", ("cuts", 0, "threshold"), "0.5"),
    "a threshold and a reason": ("ranks", ("cuts", 0, "reason"), "none"),
    "neither": ("ranks", ("cuts", 0, "threshold"), None),
    "no cuts": ("ranks", ("cuts",), []),
    "cuts that are no list": ("ranks", ("cuts",), {}),
    "a cut that is no object": ("ranks", ("cuts", 0), 3),
    "no counts": ("ranks", ("cuts", 0, "seen"), None),
    "counts of more rows": ("ranks", ("cuts", 0, "seen", "tn"), 3_000),
    "a negative count": ("ranks", ("cuts", 0, "seen", "fp"), -1),
    "a fraction of a row": ("ranks", ("cuts", 0, "seen", "fp"), 0.5),
    "a count that is true": ("ranks", ("cuts", 0, "seen", "fp"), True),
    "more in the counts": ("ranks", ("cuts", 0, "seen", "more"), 1),
    "shares beside counts": ("ranks", ("cuts", 0, "shares"), [0.5] * 5),
    "a share above one": ("groups", ("cuts", 0, "shares", 2), 1.5),
    "a share too few": ("groups", ("cuts", 0, "shares"), [0.5] * 4),
    "more selected than there are": ("unlabelled", ("cuts", 0, "unlabelled"), [9, 3]),
    "another target": ("ranks", ("cuts", 0, "target"), "recall"),
    "a target of no kind": ("ranks", ("cuts", 0, "target"), "accuracy"),
    "no labels needed": ("nothing", ("cuts", 0, "labels_needed"), 0),
    "more rows than there are": ("ranks", ("cuts", 0, "counted"), 4_000),
    "a fraction of rows": ("ranks", ("cuts", 0, "counted"), 0.5),
    "more rows than can be counted": ("ranks", ("n_rows",), 2**70),
    "more drawn than there are": ("ranks", ("n_drawn",), 4_000),
    "rows of text": ("ranks", ("n_rows",), "3000"),
    "another method": ("ranks", ("method",), "guess"),
    "a label that is a list": ("ranks", ("positive_label",), [1]),
    "no label": ("ranks", ("positive_label",), None),
    "no assumptions": ("ranks", ("assumptions",), []),
    "assumptions in one text": ("ranks", ("assumptions",), "none"),
    "assumptions that are numbers": ("ranks", ("assumptions",), [1]),
    "groups of no rows": ("groups", ("max_group_size",), 0),
    "rows as groups": ("ranks", ("max_group_size",), True),
    "a segment that is a list": ("both", ("cuts", 0, "segment"), ["a"]),
    "a segment twice": ("both", ("cuts", 0, "segment"), "b"),
    "another level in one segment": ("both", ("cuts", 0, "level"), 0.85),
    "too many missed": ("recall", ("cuts", 0, "level"), 0.93),
    "an unknown entry": ("ranks", ("certified",), True),
    "an unknown entry of a cut": ("ranks", ("cuts", 0, "certified"), True),
    "a sentence that is a number": ("ranks", ("sentence",), 3),
    "another schema": ("ranks", ("schema",), "calibrant.threshold/2"),
}


def edited(name: str, path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    content = copy.deepcopy(json.loads(written(FOUND[name])))
    place = content["calibrator"]
    for key in path[:-1]:
        place = place[key]
    assert place.get(path[-1]) != value if isinstance(place, dict) else True
    place[path[-1]] = value
    if path == ("confidence_level",) and isinstance(value, float):
        content["guarantee"]["confidence_level"] = value
    return content


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_by_hand_is_refused(name: str) -> None:
    refused(sealed(edited(*EDITS[name])), "calibrator of the model file must be valid")


def test_a_look_that_tried_more_thresholds_has_wider_limits() -> None:
    tried = FOUND["look"].only.n_tried
    assert tried > 1
    state = edited("look", ("cuts", 0, "n_tried"), 10 * tried)["calibrator"]
    wider = Threshold.from_dict(state).recall
    assert wider.lower < FOUND["look"].recall.lower < FOUND["look"].recall.upper < wider.upper


def test_states_of_other_kinds_are_refused() -> None:
    for state in (None, [], 3, "x", {}, {"schema": "calibrant.threshold/1"}):
        with pytest.raises(CalibrantError):
            Threshold.from_dict(state)  # type: ignore[arg-type]


def test_apply_selects_as_predict_does() -> None:
    scores = [0.1, 0.5, None, 0.95, float("nan"), float("inf"), 0.99]
    names = ["a", "b", "a", "b", "a", "b", "new"]
    table = pa.table({"p": pa.array(scores, pa.float64()), "s": names})
    found = FOUND["both"]
    added = found.apply(scored(table, score="p", segment="s", progress=False)).read_all()
    usable = [
        place for place, score in enumerate(scores) if score is not None and np.isfinite(score)
    ]
    values = [scores[place] for place in usable]
    segments = [names[place] for place in usable]
    for column, expected in (
        ("selected", found.predict(values, segments)),
        ("referred", found.refer(values, segments)),
    ):
        got = added[column].to_pylist()
        assert [got[place] for place in usable] == expected.tolist()
        assert all(got[place] is None for place in range(7) if place not in usable)
    one = FOUND["ranks"].apply(scored(table, score="p", progress=False), prefix="t_").read_all()
    assert one.column_names == ["p", "s", "t_selected"]
    with pytest.raises(CalibrantError, match="segment"):
        found.apply(scored(table, score="p", progress=False))


@pytest.mark.parametrize("name", ["both", "specificity", "ranks", "nothing"])
def test_steps_of_a_threshold_select_and_refer_as_its_methods_do(name: str) -> None:
    found = FOUND[name]
    segments = None
    columns = {"score": "p"}
    if name in ("both", "specificity"):
        segments = np.array(["a", "b", "new"])[np.arange(900) % 3]
        columns["segment"] = "s"
    ends = [end for pair in found.ends.values() for end in pair if np.isfinite(end)]
    near = [np.nextafter(end, side) for end in ends for side in (-1.0, 2.0)]
    scores = np.concatenate([np.linspace(-0.5, 1.5, 900 - 3 * len(ends)), ends, near])
    table = pa.table({"p": scores, "s": ["a"] * 900})
    data = scored(table, progress=False, **columns)
    steps = decision_columns(found, data.columns, "t_")
    given = (scores,) if segments is None else (scores, segments)
    regions = steps.partition.assign(*given)
    assert np.asarray(steps.table["t_selected"])[regions].tolist() == found.predict(*given).tolist()
    assert list(steps.table) == (["t_selected", "t_referred"] if name == "both" else ["t_selected"])
    if name == "both":
        referred = np.asarray(steps.table["t_referred"])[regions]
        assert referred.tolist() == found.refer(*given).tolist()
