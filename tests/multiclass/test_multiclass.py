"""Top-label and class-wise calibration: reductions to binning, within one error budget."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from calibrant import (
    BinningCalibrator,
    Calibrator,
    ClassWiseCalibrator,
    TopLabelCalibrator,
    scored,
)
from calibrant.errors import CalibrantError, WeakGuaranteeWarning
from read_marks import unmarked


def data(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.dirichlet([1.0, 1.0, 1.0], size=n)
    return scores, (rng.uniform(size=(n, 1)) > scores.cumsum(axis=1)).sum(axis=1)


def test_top_label_is_binning_with_the_predicted_class_as_segment():
    scores, y = data()
    top = scores.argmax(axis=1)
    ours = TopLabelCalibrator(n_bins=4, method="binning").fit(scores, y)
    plain = BinningCalibrator(n_bins=4, segment_rule=None).fit(
        scores.max(axis=1), (top == y).astype(int), segments=top
    )
    np.testing.assert_array_equal(
        ours.predict_confidence(scores), plain.predict(scores.max(axis=1), segments=top)
    )
    np.testing.assert_array_equal(
        ours.predict_interval(scores), plain.predict_interval(scores.max(axis=1), segments=top)
    )
    np.testing.assert_array_equal(ours.predict(scores), top)
    assert ours.guarantee_.epsilon == plain.guarantee_.epsilon < 0.2


@pytest.mark.broad
def test_top_label_with_groups_and_weights_is_binning_with_the_predicted_class_as_segment():
    scores, y = data()
    rng = np.random.default_rng(1)
    top = scores.argmax(axis=1)
    beside = {
        "groups": rng.integers(0, 1000, y.size),
        "importance_weight": rng.uniform(0.2, 2.0, y.size),
    }
    for sizes in ({}, {"max_group_size": 8}):
        ours = TopLabelCalibrator(2, method="binning").fit(
            scores, y, **beside, weight_bound=2.0, **sizes
        )
        plain = BinningCalibrator(2, segment_rule=[0, 1, 2])
        given = {**beside, **sizes, "weight_bound": 2.0}
        plain.fit(scores.max(axis=1), (top == y).astype(int), segments=top, **given)
        for limits in (ours.guarantee_, TopLabelCalibrator.from_dict(ours.to_dict()).guarantee_):
            np.testing.assert_array_equal(limits.lower, plain.guarantee_.lower)
            np.testing.assert_array_equal(limits.value, plain.guarantee_.value)
    ours = TopLabelCalibrator(2).fit(scores, y, **beside, weight_bound=2.0)
    plain = Calibrator(n_bins=2, segment_rule=[0, 1, 2])
    plain.fit(scores.max(axis=1), (top == y).astype(int), segments=top, **beside, weight_bound=2.0)
    for limits in (ours.guarantee_, TopLabelCalibrator.from_dict(ours.to_dict()).guarantee_):
        np.testing.assert_array_equal(limits.lower, plain.guarantee_.lower)
        np.testing.assert_array_equal(limits.radius, plain.guarantee_.radius)


@pytest.mark.parametrize("method", [pytest.param("curve", marks=pytest.mark.broad), "binning"])
def test_tied_scores_are_served(method):
    scores, y = data(6000)
    rounded = np.round(20 * scores) / 20
    tied, untied = (
        TopLabelCalibrator(method=method).fit(given, y).guarantee_ for given in (rounded, scores)
    )
    assert tied.epsilon < 2 * untied.epsilon < 0.3
    assert tied.statement.cutting > 0
    assert "because scores are tied" in tied.details


@pytest.mark.parametrize("kind", [TopLabelCalibrator, ClassWiseCalibrator])
def test_a_guarantee_that_says_little_is_a_warning(kind):
    scores, y = data(60)
    with pytest.warns(WeakGuaranteeWarning, match="says almost nothing so far") as found:
        kind(n_bins=5).fit(scores, y)
    assert [warning.filename for warning in found] == [__file__]


@pytest.mark.parametrize("method", ["curve", "binning"])
def test_class_that_was_never_predicted_guarantees_nothing(method):
    scores = np.array([[0.7, 0.2, 0.1], [0.2, 0.7, 0.1]] * 50)
    y = np.array([0, 1] * 50)
    calibrator = TopLabelCalibrator(n_bins=2, method=method).fit(scores, y, classes=(0, 1, 2))
    assert calibrator.predict_confidence([[0.1, 0.1, 0.8]]).tolist() == [0.5]
    assert calibrator.predict_interval([[0.1, 0.1, 0.8]]).tolist() == [[0.0, 1.0]]
    unseen = [name.startswith("2: ") for name in calibrator.guarantee_.regions]
    assert calibrator.guarantee_.radius[unseen] == [0.5]
    assert calibrator.guarantee_.is_vacuous


def test_class_with_few_rows_has_few_bins():
    scores = np.array([[0.7, 0.2, 0.1]] * 50 + [[0.1, 0.2, 0.7]] * 2)
    calibrator = TopLabelCalibrator(n_bins=10, method="binning").fit(
        scores, [0] * 50 + [2, 0], classes=(0, 1, 2)
    )
    assert calibrator.predict_confidence([[0.1, 0.2, 0.7]]).tolist() == [0.5]


def test_class_wise_shares_the_error_budget():
    scores, y = data()
    ours = ClassWiseCalibrator(n_bins=4, method="binning", confidence_level=0.94).fit(scores, y)
    for k, one in enumerate(ours.calibrators_):
        plain = BinningCalibrator(n_bins=4, confidence_level=0.98).fit(
            scores[:, k], (y == k).astype(int)
        )
        np.testing.assert_allclose(
            one.predict_interval(scores[:, k]),
            plain.predict_interval(scores[:, k]),
            rtol=0,
            atol=1e-9,
        )
    assert ours.guarantee_.epsilon == max(one.guarantee_.epsilon for one in ours.calibrators_)
    assert "For each of 3 classes, in each score range, its true rate is within" in (
        ours.guarantee_.sentence
    )
    assert ours.guarantee_.is_proved


@pytest.mark.broad
def test_default_is_a_curve_for_each_class():
    scores, y = data()
    top = scores.argmax(axis=1)
    ours = TopLabelCalibrator(n_bins=4).fit(scores, y)
    plain = Calibrator(n_bins=4, segment_rule=None).fit(
        scores.max(axis=1), (top == y).astype(int), segments=top
    )
    np.testing.assert_array_equal(
        ours.predict_confidence(scores), plain.predict(scores.max(axis=1), segments=top)
    )
    assert ours.guarantee_.epsilon == plain.guarantee_.epsilon < 0.3
    each = ClassWiseCalibrator(n_bins=4, confidence_level=0.94).fit(scores, y)
    one = Calibrator(n_bins=4, confidence_level=0.98).fit(scores[:, 1], (y == 1).astype(int))
    np.testing.assert_array_equal(each.predict_proba(scores)[:, 1], one.predict(scores[:, 1]))
    assert "of the average prediction" in each.guarantee_.sentence
    for model in (ours, each):
        again = type(model).from_dict(json.loads(json.dumps(model.to_dict())))
        np.testing.assert_array_equal(
            again.predict_interval(scores), model.predict_interval(scores)
        )


@pytest.mark.broad
def test_class_wise_probabilities_are_not_forced_to_add_up():
    scores, y = data()
    found = ClassWiseCalibrator(n_bins=4).fit(scores, y).predict_proba(scores)
    assert found.shape == scores.shape
    assert np.abs(found.sum(axis=1) - 1).max() > 0.01


@pytest.mark.parametrize("kind", [TopLabelCalibrator, ClassWiseCalibrator])
@pytest.mark.parametrize(
    "names",
    [
        ["c", "a", "b"],
        *(pytest.param(names, marks=pytest.mark.broad) for names in ([0, 1, 2], [2.5, -1.0, 7.0])),
    ],
)
def test_json_round_trip_with_any_labels(kind, names):
    scores, y = data(800)
    calibrator = kind(n_bins=3).fit(scores, np.array(names)[y], classes=names)
    restored = kind.from_dict(json.loads(json.dumps(calibrator.to_dict())))
    np.testing.assert_array_equal(restored.predict(scores), calibrator.predict(scores))
    np.testing.assert_array_equal(
        restored.predict_interval(scores), calibrator.predict_interval(scores)
    )
    assert unmarked(restored.guarantee_) == str(calibrator.guarantee_)
    assert restored.guarantee_.read[:1] == ("counts",)
    assert set(calibrator.predict(scores).tolist()) <= set(names)


@pytest.mark.broad
@pytest.mark.parametrize("kind", [TopLabelCalibrator, ClassWiseCalibrator])
def test_frames_lists_and_clones(kind):
    scores, y = data(300)
    plain = kind(n_bins=3).fit(scores, y)
    framed = clone(plain).fit(pd.DataFrame(scores, index=np.zeros(300)), pd.Series(y, index=y))
    listed = kind(n_bins=3).fit(scores.tolist(), y.tolist())
    np.testing.assert_array_equal(framed.predict(scores), plain.predict(scores))
    np.testing.assert_array_equal(listed.predict(scores.tolist()), plain.predict(scores))
    assert plain.predict(np.empty((0, 3))).shape == (0,)


@pytest.mark.parametrize("kind", [TopLabelCalibrator, ClassWiseCalibrator])
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda s, y: (s[:, 0], y), ValueError, "scores must have shape"),
        (
            lambda s, y: (s[:, :2], y),
            ValueError,
            "classes must have one label for each of the 2 columns",
        ),
        (lambda s, y: (s, y[:-1]), ValueError, "scores and y must have the same number of rows"),
        (lambda s, y: (np.where(s == s.max(), np.nan, s), y), ValueError, "scores must be finite"),
        (lambda s, y: (s.astype(str), y), TypeError, "scores must be real numbers"),
        (lambda s, y: (s[:0], y[:0]), ValueError, "at least one row"),
        (
            lambda s, y: (s, np.where(y == 2, np.nan, y)),
            ValueError,
            "y must have no missing values.*: fix or remove",
        ),
        (
            lambda s, y: (s, np.array(["a", "b", None])[y]),
            ValueError,
            "y must have no missing values; got None at row",
        ),
        (
            lambda s, y: (s, np.array(["a", "b", 3], dtype=object)[y]),
            TypeError,
            "y must contain one kind of entry",
        ),
    ],
)
def test_bad_data_are_refused(kind, change, error, message):
    with pytest.raises(error, match=message) as caught:
        kind().fit(*change(*data(200)))
    assert "skip" not in str(caught.value)  # which only data with one score per row can do


@pytest.mark.parametrize("kind", [TopLabelCalibrator, ClassWiseCalibrator])
def test_unknown_label_and_wrong_width_are_refused(kind):
    scores, y = data(200)
    with pytest.raises(ValueError, match="y must contain only labels of classes"):
        kind().fit(scores, y, classes=(0, 1, 5))
    with pytest.raises(ValueError, match="scores must have 3 columns; got 4"):
        kind().fit(scores, y).predict(np.ones((2, 4)))


@pytest.mark.broad
def test_class_wise_predicts_the_most_probable_class_and_breaks_ties_by_the_score():
    scores, y = data()
    calibrator = ClassWiseCalibrator(n_bins=4).fit(scores, y)
    found = calibrator.predict(scores)
    probabilities = calibrator.predict_proba(scores)
    assert probabilities.shape == scores.shape
    np.testing.assert_array_equal(
        probabilities[np.arange(len(y)), found], probabilities.max(axis=1)
    )
    one_bin = ClassWiseCalibrator(n_bins=1).fit(
        np.tile(np.eye(3), (100, 1)), np.tile([0, 1, 2], 100)
    )
    assert one_bin.predict(np.eye(3)).tolist() == [0, 1, 2]


def changed(state, *path, to):
    """A copy of the state with one entry changed."""
    state = json.loads(json.dumps(state))
    place = state
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return state


TOP = TopLabelCalibrator(n_bins=2).fit(*data(300)).to_dict()
EACH = ClassWiseCalibrator(n_bins=2).fit(*data(300)).to_dict()
OTHER = (
    BinningCalibrator(n_bins=2)
    .fit(*(part[:300] for part in (data()[0][:, 0], data()[1] == 0)))
    .to_dict()["state"]
)
FORGED = {
    "not a dict": (TopLabelCalibrator, [TOP]),
    "other schema": (TopLabelCalibrator, changed(TOP, "schema", to="calibrant.multiclass/9")),
    "other type": (TopLabelCalibrator, EACH),
    "no classes": (
        TopLabelCalibrator,
        {key: value for key, value in TOP.items() if key != "classes"},
    ),
    "class twice": (TopLabelCalibrator, changed(TOP, "classes", to=[0, 1, 1])),
    "other classes": (TopLabelCalibrator, changed(TOP, "classes", to=[0, 1, 5])),
    "two classes of three": (TopLabelCalibrator, changed(TOP, "classes", to=[0, 1])),
    "mixed classes": (ClassWiseCalibrator, changed(EACH, "classes", to=[0, "1", 2])),
    "NaN as a class": (ClassWiseCalibrator, changed(EACH, "classes", to=[0.0, 1.0, float("nan")])),
    "classes as text": (ClassWiseCalibrator, changed(EACH, "classes", to="abc")),
    "level": (TopLabelCalibrator, changed(TOP, "parameters", "confidence_level", to=1.5)),
    "NaN as a level": (
        ClassWiseCalibrator,
        changed(EACH, "parameters", "confidence_level", to=float("nan")),
    ),
    "bins": (ClassWiseCalibrator, changed(EACH, "parameters", "n_bins", to=-3)),
    "interval": (ClassWiseCalibrator, changed(EACH, "parameters", "interval", to="wald")),
    "unknown parameter": (ClassWiseCalibrator, changed(EACH, "parameters", "cv", to=3)),
    "parameters of another kind": (ClassWiseCalibrator, changed(EACH, "parameters", to=[])),
    "negative counts": (
        TopLabelCalibrator,
        changed(TOP, "calibrator", "tally", "counts", 0, to=-5),
    ),
    "more positives than rows": (
        TopLabelCalibrator,
        changed(TOP, "calibrator", "tally", "positives", 0, to=10**6),
    ),
    "fewer counts than regions": (
        TopLabelCalibrator,
        changed(TOP, "calibrator", "tally", "counts", to=[5]),
    ),
    "partition without classes": (TopLabelCalibrator, changed(TOP, "calibrator", to=OTHER)),
    "no partition": (
        TopLabelCalibrator,
        changed(TOP, "calibrator", to={"tally": TOP["calibrator"]["tally"]}),
    ),
    "calibrator of another kind": (TopLabelCalibrator, changed(TOP, "calibrator", to=3)),
    "fewer calibrators": (
        ClassWiseCalibrator,
        changed(EACH, "calibrators", to=EACH["calibrators"][:2]),
    ),
    "calibrators of another kind": (
        ClassWiseCalibrator,
        changed(EACH, "calibrators", to={"0": 1, "1": 1, "2": 1}),
    ),
    "calibrator with segments": (
        ClassWiseCalibrator,
        changed(EACH, "calibrators", 0, to=TOP["calibrator"]),
    ),
    "tally of other bins": (
        ClassWiseCalibrator,
        changed(EACH, "calibrators", 0, "partition", to=EACH["calibrators"][1]["partition"]),
    ),
    "NaN in the counts": (
        ClassWiseCalibrator,
        changed(EACH, "calibrators", 0, "tally", "counts", 0, to=float("nan")),
    ),
}


@pytest.mark.parametrize(("kind", "state"), FORGED.values(), ids=FORGED)
def test_forged_states_raise(kind, state):
    assert kind.from_dict(TOP if kind is TopLabelCalibrator else EACH)
    with pytest.raises(CalibrantError):
        kind.from_dict(state)


@pytest.mark.parametrize("kind", [TopLabelCalibrator, ClassWiseCalibrator])
def test_scored_data_have_one_score_and_are_refused_with_the_reason(kind) -> None:
    data = scored({"p": [0.1, 0.9], "y": [0, 1]}, score="p", label="y")
    with pytest.raises(
        TypeError,
        match=r"scores must have one column per class; got scored\(...\) data, which have one",
    ):
        kind().fit(data)
