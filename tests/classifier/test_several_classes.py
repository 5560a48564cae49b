"""More than two classes: probabilities that add up to 1, and a proof of each class within one error
budget.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from calibrant import BinningCalibrator, CalibratedClassifier, decide, load_model, save_model
from calibrant.calibrators.class_wise_hold_out import ClassWiseHoldOut
from calibrant.errors import InvalidTypeError, InvalidValueError, WeakGuaranteeWarning
from calibrant.guarantee.no_guarantee import NoGuarantee
from calibrant.tripod import ConformalSets
from worlds.guarantees import assert_rare

X, Y = make_classification(
    n_samples=1_500,
    n_features=6,
    n_informative=4,
    n_classes=3,
    n_clusters_per_class=1,
    flip_y=0.2,
    random_state=1,
)
X = X.round(6)  # the last digits depend on the machine, and all digits decide which rows are drawn
WORDS = np.array(["owl", "cat", "dog"])[Y]
MODEL = LogisticRegression().fit(X[:300], WORDS[:300])


@pytest.fixture(scope="module")
def fitted():
    return CalibratedClassifier(LogisticRegression()).fit(X, WORDS)


@pytest.mark.parametrize(
    "classifier",
    [
        CalibratedClassifier(LogisticRegression()),
        CalibratedClassifier(LogisticRegression(), cv=3, calibration_size=200),
        CalibratedClassifier(LogisticRegression(), cv=None),
        CalibratedClassifier(LogisticRegression(), calibration_size=0),
        CalibratedClassifier(LinearSVC(random_state=0)),
        CalibratedClassifier(FrozenEstimator(MODEL)),
        CalibratedClassifier(MODEL.predict_proba),
        CalibratedClassifier(LogisticRegression(), holdout="last"),
    ],
    ids=[
        "default",
        "three",
        "one",
        "none held out",
        "decision function",
        "frozen",
        "function",
        "last",
    ],
)
def test_probabilities_add_up_to_1_and_follow_the_classes(classifier) -> None:
    classifier.fit(X, WORDS)
    assert classifier.classes_.tolist() == ["cat", "dog", "owl"]
    found = classifier.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(classifier.predict(X), classifier.classes_[found.argmax(axis=1)])
    assert (classifier.predict(X) == WORDS).mean() > 0.6
    assert log_loss(WORDS, found) < 0.9


def test_each_class_has_an_equal_part_of_the_error_budget(fitted) -> None:
    found = fitted.guarantee_
    assert isinstance(fitted.calibrator_, ClassWiseHoldOut)
    assert found.is_proved
    assert found.adds_up
    assert found.confidence_level == 0.9
    assert list(found.guarantees) == ["cat", "dog", "owl"]
    for label, one in found.guarantees.items():
        assert one.confidence_level == pytest.approx(1.0 - 0.1 / 3)
        assert one.positive_label == label
        assert one.n_rows == 150
    assert found.epsilon == max(one.epsilon for one in found.guarantees.values())
    assert "The probabilities of a row add up to 1." in found.details


def test_intervals_contain_the_probabilities_and_have_one_pair_for_each_class(fitted) -> None:
    p = fitted.predict_proba(X)
    limits = fitted.predict_interval(X)
    assert limits.shape == (1_500, 3, 2)
    assert fitted.predict_rate_interval(X).shape == (1_500, 3, 2)
    inside = (limits[:, :, 0] <= p) & (p <= limits[:, :, 1])
    assert inside.mean() > 0.95  # a probability that is proved off on average lies outside


def test_groups_stay_whole() -> None:
    groups = np.repeat(np.arange(500), 3)
    model = CalibratedClassifier(LogisticRegression()).fit(X, Y, groups=groups)
    for one in model.guarantee_.guarantees.values():
        assert one.statement.groups.counted == 100
    assert "a group counts as at most 3 rows" in model.guarantee_.notes[-1]


def test_without_a_hold_out_nothing_is_proved() -> None:
    model = CalibratedClassifier(LogisticRegression(), calibration_size=0).fit(X, Y)
    assert isinstance(model.guarantee_, NoGuarantee)


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda: CalibratedClassifier(LogisticRegression(), pos_label=1).fit(X, Y), "pos_label"),
        (lambda: CalibratedClassifier(LogisticRegression()).fit(X, Y, segments=Y % 2), "segments"),
        (lambda: CalibratedClassifier(LogisticRegression(), BinningCalibrator(2)).fit(X, Y), None),
        (lambda: CalibratedClassifier(MODEL.predict).fit(X, WORDS), "estimator"),
        (
            lambda: CalibratedClassifier(LogisticRegression()).fit(
                X[:40], [0] * 20 + [1] * 19 + [2]
            ),
            "y",
        ),
    ],
    ids=["pos_label", "segments", "calibrator", "no columns", "a class of one row"],
)
def test_what_more_than_two_classes_cannot_have_is_refused(call, parameter) -> None:
    with pytest.raises((InvalidValueError, InvalidTypeError)) as refused:
        call()
    assert refused.value.parameter == parameter


def test_segments_are_for_two_classes(fitted) -> None:
    with pytest.raises(InvalidTypeError) as refused:
        fitted.predict_proba(X, segments=Y)
    assert refused.value.parameter == "segments"
    with pytest.raises(InvalidTypeError) as refused:
        decide(fitted, X, cost_false_alarm=1, cost_miss=2, pos_label="owl", segments=Y)
    assert refused.value.parameter == "segments"


def test_sets_hold_the_likeliest_labels_and_grow_with_the_coverage(fitted) -> None:
    p = fitted.predict_proba(X)
    small = fitted.predict_set(X, coverage=0.6)
    large = fitted.predict_set(X, coverage=0.9)
    assert small.shape == large.shape == (len(X), 3)
    assert (small <= large).all()
    assert small[np.arange(len(X)), p.argmax(axis=1)].all()
    assert small.sum() < large.sum() < large.size
    assert np.where(large, p, -1.0).min(axis=1).max() > np.where(large, 0.0, p).max(axis=1).min()
    own = large[np.arange(len(X)), np.searchsorted(fitted.classes_, WORDS)]
    assert own.mean() >= 0.9


def test_sets_need_independent_rows() -> None:
    groups = np.arange(len(X)) // 3
    grouped = CalibratedClassifier(LogisticRegression()).fit(X, WORDS, groups=groups)
    with pytest.raises(InvalidTypeError) as refused:
        grouped.predict_set(X)
    assert refused.value.parameter == "groups"


def test_a_row_without_a_score_has_all_labels_in_its_set() -> None:
    def model(rows):
        p = MODEL.predict_proba(np.nan_to_num(rows))
        return np.where(np.isnan(rows).any(axis=1, keepdims=True), np.nan, p)

    fitted = CalibratedClassifier(model).fit(X[300:], WORDS[300:])
    fitted.set_output(missing_scores="nan")
    rows = X[:3].copy()
    rows[1] = np.nan
    assert fitted.predict_set(rows, coverage=0.5)[1].all()


def test_decisions_are_about_one_class_against_the_rest(fitted) -> None:
    found = decide(fitted, X, cost_false_alarm=1, cost_miss=3, pos_label="owl")
    place = fitted.classes_.tolist().index("owl")
    limits = fitted.predict_rate_interval(X)[:, place]
    assert (found.lower == limits[:, 0]).all()
    assert (found.action == "act").sum() == (limits[:, 0] > 0.25).sum() > 0
    assert found.confidence_level == fitted.guarantee_.confidence_level
    assert found.label == "owl"
    assert "'owl'" in found.notes[0]
    for wrong in (None, "cow"):
        with pytest.raises(InvalidValueError) as refused:
            decide(fitted, X, cost_false_alarm=1, cost_miss=2, pos_label=wrong)
        assert refused.value.parameter == "pos_label"


def test_the_proof_is_saved_and_read_back(fitted, tmp_path) -> None:
    save_model(fitted.calibrator_, tmp_path / "model.json")
    read = load_model(tmp_path / "model.json")
    p = fitted.predict_proba(X)
    assert np.array_equal(read.predict_interval(p), fitted.predict_interval(X))
    assert np.array_equal(read.predict_set(p, coverage=0.8), fitted.predict_set(X, coverage=0.8))
    assert read.guarantee_.epsilon == fitted.guarantee_.epsilon
    assert read.calibrator.classes_.tolist() == ["cat", "dog", "owl"]
    decided = decide(read, p, cost_false_alarm=1, cost_miss=1, pos_label="cat")
    assert (
        decided.counts == decide(fitted, X, cost_false_alarm=1, cost_miss=1, pos_label="cat").counts
    )
    for scores in (p[:, :2], p + 1.0):
        with pytest.raises(InvalidValueError) as refused:
            read.predict_interval(scores)
        assert refused.value.parameter == "scores"


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state["calibrators"].pop(),
        lambda state: state.update(confidence_level=0.99),
        lambda state: state.update(own_probabilities=[0.2, 1.5]),
        lambda state: state.update(classes=["cat", "cat", "owl"]),
    ],
    ids=["a class is missing", "another level", "no probability", "one class twice"],
)
def test_a_damaged_proof_is_refused(fitted, change) -> None:
    state = json.loads(json.dumps(fitted.calibrator_.to_dict()))
    assert ClassWiseHoldOut.from_dict(state).guarantee_.epsilon == fitted.guarantee_.epsilon
    change(state)
    with pytest.raises(InvalidValueError):
        ClassWiseHoldOut.from_dict(state)


def test_details_name_each_class_once(fitted) -> None:
    for name in ("cat", "dog", "owl"):
        assert fitted.guarantee_.details.count(name) == 1


def test_one_warning_for_all_classes_that_say_little() -> None:
    with pytest.warns(WeakGuaranteeWarning) as caught:
        CalibratedClassifier(LogisticRegression()).fit(X[:60], Y[:60])
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.broad
def test_it_works_in_cross_validation() -> None:
    scores = cross_val_score(
        CalibratedClassifier(LogisticRegression()), X, WORDS, cv=2, scoring="neg_log_loss"
    )
    assert (scores > -0.9).all()


@pytest.mark.slow
def test_the_guarantee_of_all_classes_is_broken_at_most_as_often_as_stated() -> None:
    """For a model that stores its labels: the nearest neighbour."""
    rng = np.random.default_rng(3)
    weights = np.array([[1.5, -1.0, 0.0], [0.0, 1.0, -2.0]])

    def world(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        features = rng.normal(size=(n, 2))
        rates = softmax(features @ weights + [0.0, 0.5, -1.5], axis=1)
        labels = (rng.uniform(size=(n, 1)) > rates.cumsum(axis=1)).sum(axis=1).clip(0, 2)
        return features, labels, rates

    everyone, _, truth = world(6_000)
    draws = 20
    level = 0.9
    broken = 0
    for _ in range(draws):
        features, labels, _ = world(400)
        model = CalibratedClassifier(
            KNeighborsClassifier(1), cv=2, calibration_size=120, confidence_level=level
        )
        p = model.fit(features, labels).predict_proba(everyone)
        missed = False
        for column, one in enumerate(model.calibrator_.calibrators_):
            size = one.partition_.n_regions
            region = one.partition_.regions_of(np.ascontiguousarray(p[:, column]))
            rows = np.bincount(region, minlength=size)
            error = np.bincount(region, truth[:, column] - p[:, column], size) / np.maximum(rows, 1)
            limits = one.guarantee_.errors
            off = (error < limits.lower - 0.01) | (error > limits.upper + 0.01)
            missed |= bool(off[rows > 200].any())
        broken += missed
    assert_rare(broken, draws, 1.0 - level)


def test_a_matrix_of_scores_gives_sets_that_cover() -> None:
    """Where there are only scores, a function that returns them stands for the model."""
    rng = np.random.default_rng(0)
    truth = softmax(rng.normal(size=(9_000, 3)) * 1.5, axis=1)
    drawn = (rng.random((9_000, 1)) < truth.cumsum(axis=1)).argmax(axis=1)
    names = np.array(["cat", "dog", "owl"])[drawn]
    scores = softmax(3.0 * np.log(truth), axis=1)  # far too sure
    fitted = CalibratedClassifier(lambda rows: rows).fit(scores[:4_000], names[:4_000])
    sets = fitted.predict_set(scores[4_000:], coverage=0.8)
    assert sets.shape == (5_000, 3)
    covered = truth[4_000:][sets].sum() / 5_000  # the probability, from the known rates
    assert 0.8 <= covered < 0.9
    assert sets.sum(axis=1).mean() < 2.0


def test_advice_for_several_classes_names_what_gives_sets() -> None:
    with pytest.raises(ValueError, match="CalibratedClassifier for sets of labels") as refused:
        ConformalSets().fit(X[:, 0], Y)
    assert "how-to guide: Multiclass calibration" in str(refused.value)
    page = Path(__file__).parents[2] / "docs" / "guides" / "multiclass.md"
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Multiclass calibration")
    assert "CalibratedClassifier(as_given)" in text


@pytest.mark.filterwarnings("ignore::calibrant.errors.WeakGuaranteeWarning")
def test_no_fold_is_empty_if_all_classes_are_small():
    """With four rows of each class, a fifth fold would be empty."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(15, 4))
    for seed in range(10):
        model = CalibratedClassifier(LogisticRegression(), random_state=seed)
        model.fit(X, np.repeat(np.arange(3), 5))
        assert len(model.estimators_) in (4, 5)
