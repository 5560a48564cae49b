"""The default classifier: several models on most rows, one curve, and a proof by the rows that are
held out.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit, StratifiedKFold, TimeSeriesSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from calibrant import CalibratedClassifier, Calibrator
from calibrant.calibrators.hold_out import HoldOutCalibrator
from calibrant.classifier.arguments import read_task
from calibrant.classifier.bag import mean_probabilities
from calibrant.errors import InvalidValueError, PooledSegmentsWarning
from calibrant.guarantee.no_guarantee import NoGuarantee
from worlds.guarantees import assert_rare

X, Y = make_classification(
    n_samples=1_000, n_features=6, n_informative=4, flip_y=0.2, random_state=1
)


@pytest.fixture(scope="module")
def fitted():
    return CalibratedClassifier(LogisticRegression()).fit(X, Y)


def test_five_models_are_trained_and_a_tenth_proves(fitted):
    assert len(fitted.estimators_) == 5
    assert not hasattr(fitted, "estimator_")
    assert isinstance(fitted.calibrator_, HoldOutCalibrator)
    assert fitted.guarantee_.is_proved
    assert fitted.guarantee_.n_rows == 100


def test_predictions_are_the_mean_of_the_members_on_the_logit_scale(fitted):
    each = [fitted.curve_(member.predict_proba(X)[:, 1]) for member in fitted.estimators_]
    mean = expit(np.mean(logit(each), axis=0))
    np.testing.assert_allclose(
        fitted.predict_proba(X)[:, 1], fitted.calibrator_.predict(mean), rtol=1e-12
    )


class _Counting(LogisticRegression):
    """Counts how often it scores rows."""

    calls = 0

    def predict_proba(self, X):
        _Counting.calls += 1
        return super().predict_proba(X)


def test_each_model_scores_its_rows_and_those_held_out_in_one_call():
    _Counting.calls = 0
    CalibratedClassifier(_Counting()).fit(X, Y)
    assert _Counting.calls == 5


def test_limits_use_that_probabilities_end_where_their_curve_does(fitted):
    low, high = fitted.calibrator_.partition_.low, fitted.calibrator_.partition_.high
    assert 0.0 < fitted.curve_.values.min() - low < 0.01
    assert 0.0 < high - fitted.curve_.values.max() < 0.01
    far = 1e6 * np.sign(X)
    assert ((fitted.predict_proba(far) > 0.0) & (fitted.predict_proba(far) < 1.0)).all()


def test_the_ranking_is_that_of_the_mean(fitted):
    each = [fitted.curve_(member.predict_proba(X)[:, 1]) for member in fitted.estimators_]
    mean = np.mean(logit(each), axis=0)
    order = np.argsort(mean, kind="stable")
    assert (np.diff(fitted.predict_proba(X)[order, 1]) >= 0.0).all()


@pytest.mark.parametrize(
    ("rows", "rate", "expected"),
    [(60, 0.5, 20), (400, 0.5, 133), (1_000, 0.5, 100), (3_000, 0.5, 300), (3_000, 0.01, 750)],
)
def test_how_many_rows_are_held_out(rows, rate, expected):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(rows, 2))
    labels = np.arange(rows) < max(2, round(rate * rows))
    model = CalibratedClassifier(DecisionTreeClassifier(max_depth=2)).fit(features, labels)
    assert model.guarantee_.n_rows == expected


def test_the_size_of_the_hold_out_depends_on_no_label_that_may_be_held_out():
    """Exchange labels among held-out rows in any way: the size, and so the draw, stays."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(2_000, 2))
    labels = rng.uniform(size=2_000) < 0.03
    model = CalibratedClassifier(DecisionTreeClassifier(max_depth=2))
    task = read_task(features, labels, {}, model)
    from calibrant.classifier.folds import automatic_size, held_out

    _, rows = held_out(task, "auto")
    changed = task.labels.copy()
    changed[rows] = ~changed[rows]
    from dataclasses import replace

    assert automatic_size(replace(task, labels=changed)) == automatic_size(task) == rows.size


def test_without_a_hold_out_nothing_is_proved():
    model = CalibratedClassifier(LogisticRegression(), calibration_size=0).fit(X, Y)
    assert isinstance(model.guarantee_, NoGuarantee)
    assert model.calibrator_ is None
    assert not hasattr(model, "predict_interval")
    assert model.predict_proba(X).shape == (1_000, 2)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_one_model_is_trained_where_that_is_asked_for():
    model = CalibratedClassifier(LogisticRegression(), cv=None).fit(X, Y)
    assert isinstance(model.calibrator_, Calibrator)
    assert hasattr(model, "estimator_")
    assert not hasattr(model, "estimators_")
    with pytest.raises(InvalidValueError) as refused:
        CalibratedClassifier(LogisticRegression(), cv=None, calibration_size=0).fit(X, Y)
    assert refused.value.parameter == "calibration_size"


def test_a_second_fit_of_another_kind_leaves_nothing_of_the_first():
    model = CalibratedClassifier(LogisticRegression()).fit(X, Y)
    model.set_params(cv=None).fit(X, Y)
    assert not hasattr(model, "estimators_")
    assert model.predict_proba(X).shape == (1_000, 2)


@pytest.mark.parametrize("cv", [StratifiedKFold(3), TimeSeriesSplit(3)])
def test_a_splitter_divides_the_training_rows(cv):
    model = CalibratedClassifier(LogisticRegression(), cv=cv).fit(X, Y)
    assert len(model.estimators_) == 3
    assert model.guarantee_.is_proved


def test_one_split_is_a_hold_out_of_your_own():
    model = CalibratedClassifier(LogisticRegression(), cv=ShuffleSplit(1, random_state=0)).fit(X, Y)
    assert isinstance(model.calibrator_, Calibrator)


def test_string_labels_in_either_order_give_the_same_probabilities():
    plain = CalibratedClassifier(LogisticRegression()).fit(X, Y)
    words = np.where(Y == 1, "a yes", "no")  # sorts the positive class first
    named = CalibratedClassifier(LogisticRegression(), pos_label="a yes").fit(X, words)
    assert named.classes_.tolist() == ["a yes", "no"]
    np.testing.assert_allclose(
        named.predict_proba(X)[:, 0], plain.predict_proba(X)[:, 1], atol=1e-5
    )
    np.testing.assert_allclose(named.predict_interval(X), plain.predict_interval(X), atol=1e-5)
    assert named.guarantee_.positive_label == "a yes"


def test_decision_functions_follow_the_positive_class():
    words = np.where(Y == 1, "a yes", "no")
    model = CalibratedClassifier(LinearSVC(random_state=0), pos_label="a yes").fit(X, words)
    assert model.predict_proba(X)[Y == 1, 0].mean() > model.predict_proba(X)[Y == 0, 0].mean() + 0.2


def test_a_class_that_is_not_there_is_refused():
    with pytest.raises(InvalidValueError) as refused:
        CalibratedClassifier(LogisticRegression(), pos_label=2).fit(X, Y)
    assert refused.value.parameter == "pos_label"


def test_whole_groups_are_held_out_and_bet_on():
    groups = np.repeat(np.arange(200), 5)
    model = CalibratedClassifier(LogisticRegression()).fit(X, Y, groups=groups)
    facts = model.guarantee_.statement.groups
    assert facts.counted == 50
    assert facts.max_size <= 5
    assert model.guarantee_.n_rows == 250


def test_the_last_rows_prove():
    time = np.random.default_rng(0).permutation(1_000)
    model = CalibratedClassifier(LogisticRegression(), holdout="last").fit(X, Y, time=time)
    late = time >= 900
    assert model.calibrator_.tally_.n_rows == 100
    assert model.calibrator_.tally_.positives.sum() == Y[late].sum()


def test_segments_have_regions_of_their_own():
    rows = np.tile(np.arange(1_000), 4)
    segments = np.where(X[rows, 0] > 0, "a", "b")
    model = CalibratedClassifier(LogisticRegression(), calibration_size=0.4).fit(
        X[rows], Y[rows], segments=segments
    )
    assert len(model.estimators_) == 5
    assert sorted(model.calibrator_.partition_.segments) == ["a", "b"]
    assert model.predict_interval(X[rows], segments=segments).shape == (4_000, 2)


def test_small_segments_are_pooled_with_a_warning():
    segments = np.where(X[:, 0] > 0, "a", "b")
    with pytest.warns(PooledSegmentsWarning) as found:
        model = CalibratedClassifier(LogisticRegression(), calibration_size=0.4).fit(
            X, Y, segments=segments
        )
    assert [warning.message.segments for warning in found] == [("a", "b")]
    assert "(2 segments pooled)" in model.guarantee_.sentence


def test_missing_values_and_categories_reach_the_model():
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(
        kind=pd.Categorical(np.where(X[:, 0] > 0, "u", "v"))
    )
    frame.loc[::7, "a"] = np.nan
    boosting = HistGradientBoostingClassifier(
        max_iter=10, categorical_features="from_dtype", random_state=0
    )
    model = CalibratedClassifier(boosting).fit(frame, Y)
    assert model.predict_proba(frame[::-1]).shape == (1_000, 2)


def test_columns_are_taken_by_name_where_the_model_does():
    frame = pd.DataFrame(X, columns=list("abcdef"))
    by_name = make_pipeline(
        make_column_transformer(("passthrough", list("abc"))), LogisticRegression()
    )
    model = CalibratedClassifier(by_name).fit(frame, Y)
    other = frame[list("fedcba")].assign(more=1.0)
    # the model's own arithmetic may depend on how the columns lie in memory, in the last bits
    np.testing.assert_allclose(model.predict_proba(other), model.predict_proba(frame), rtol=1e-12)


def test_one_class_in_five_hundred_still_says_something():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(20_000, 3))
    labels = rng.uniform(size=20_000) < expit(features[:, 0] - 6.8)
    model = CalibratedClassifier(LogisticRegression()).fit(features, labels)
    assert model.guarantee_.epsilon < 0.02


def test_too_few_rows_of_a_class_are_refused():
    labels = np.arange(100) == 3
    with pytest.raises(InvalidValueError) as refused:
        CalibratedClassifier(LogisticRegression()).fit(X[:100], labels)
    assert refused.value.parameter == "y"


def test_threads_change_nothing():
    one = CalibratedClassifier(LogisticRegression()).fit(X, Y)
    two = CalibratedClassifier(LogisticRegression(), n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_a_fitted_classifier_can_be_cloned_and_pickled(fitted):
    import pickle

    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_interval(X), fitted.predict_interval(X))
    assert clone(fitted).get_params()["cv"] == "auto"


def _world(rng, kind, n):
    """Features, labels and the rate of each row."""
    features = rng.normal(size=(n, 2))
    if kind == "step":
        rate = np.where(features[:, 0] > 0.3, 0.95, 0.02)
    elif kind == "reversed":
        rate = expit(-2.0 * features[:, 0])
    elif kind == "lottery":
        rate = np.full(n, 0.3)
    else:
        features = np.round(features)
        rate = expit(features[:, 0] - 3.0)
    return features, rng.uniform(size=n) < rate, rate


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.9, 0.5])
@pytest.mark.parametrize("kind", ["step", "reversed", "lottery", "tied and rare"])
def test_the_guarantee_is_broken_at_most_as_often_as_stated(kind, level):
    """Also for a model that stores its labels: the nearest neighbour."""
    rng = np.random.default_rng(len(kind))
    truth_X, _, truth_rate = _world(rng, kind, 4_000)
    draws = 30
    broken = 0
    for _ in range(draws):
        features, labels, _ = _world(rng, kind, 240)
        estimator = KNeighborsClassifier(1) if kind == "step" else LogisticRegression()
        model = CalibratedClassifier(estimator, calibration_size=80, confidence_level=level).fit(
            features, labels
        )
        curves = (model.curve_,)
        (p,) = mean_probabilities(model.estimators_, curves, truth_X, model.classes_, "auto").T
        region = model.calibrator_.partition_.regions_of(p)
        size = model.calibrator_.partition_.n_regions
        rows = np.bincount(region, minlength=size)
        errors = truth_rate - model.predict_proba(truth_X)[:, 1]
        error = np.bincount(region, errors, size) / np.maximum(rows, 1)
        limits = model.guarantee_.errors
        missed = (error < limits.lower - 0.01) | (error > limits.upper + 0.01)
        broken += bool(missed[rows > 200].any())
    assert_rare(broken, draws, 1.0 - level)


def test_the_confidence_level_is_that_of_the_guarantee():
    sure = CalibratedClassifier(LogisticRegression(), confidence_level=0.99).fit(X, Y)
    assert sure.guarantee_.confidence_level == 0.99
    assert (
        sure.guarantee_.epsilon
        > CalibratedClassifier(LogisticRegression()).fit(X, Y).guarantee_.epsilon
    )
    one = CalibratedClassifier(LogisticRegression(), cv=None, confidence_level=0.5).fit(X, Y)
    assert one.guarantee_.confidence_level == 0.5
