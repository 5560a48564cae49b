"""What users of scikit-learn's calibrated classifier expect to work."""

from operator import itemgetter

import numpy as np
import pandas as pd
import pytest
import sklearn
from matplotlib.figure import Figure
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant import (
    BinningCalibrator,
    CalibratedClassifier,
    ReliabilityDisplay,
    decide,
)
from calibrant.errors import (
    CalibrantWarning,
    InvalidTypeError,
    InvalidValueError,
    WeakGuaranteeWarning,
)

X, Y = make_classification(
    n_samples=1_000, n_features=6, n_informative=4, flip_y=0.2, random_state=1
)


@pytest.fixture(scope="module")
def fitted():
    return CalibratedClassifier(LogisticRegression()).fit(X, Y)


# Rows without a score

SCORES = pd.DataFrame({"score": np.random.default_rng(0).uniform(size=1_000)})
LABELS = np.random.default_rng(1).uniform(size=1_000) < SCORES["score"]


def by_score(**options) -> CalibratedClassifier:
    return CalibratedClassifier(itemgetter("score"), **options).fit(SCORES, LABELS)


def test_rows_without_a_score_get_answers_that_say_so() -> None:
    model = by_score().set_output(missing_scores="nan")
    rows = pd.DataFrame({"score": [0.2, np.nan, 0.8]})
    found = model.predict_proba(rows)
    assert np.isnan(found[1]).all()
    np.testing.assert_array_equal(found[[0, 2]], model.predict_proba(rows.iloc[[0, 2]]))
    assert model.predict_interval(rows)[1].tolist() == [0.0, 1.0]
    assert model.predict_rate_interval(rows)[1].tolist() == [0.0, 1.0]
    assert model.predict_set(rows)[1].tolist() == [True, True]
    assert not model.predict_set(rows, coverage=0.6)[[0, 2]].all()
    assert model.predict_set(rows, coverage=0.6)[1].all()
    with pytest.raises(InvalidValueError) as refused:
        model.predict(rows)
    assert refused.value.parameter == "X"
    np.testing.assert_array_equal(model.predict(rows.iloc[[0, 2]]), [False, True])


def test_rows_without_a_score_are_refused_by_default_and_in_fit() -> None:
    rows = pd.DataFrame({"score": [0.2, np.nan, 0.8]})
    with pytest.raises(InvalidValueError) as unscored:
        by_score().predict_proba(rows)
    assert unscored.value.parameter == "X"
    assert "row index 1" in unscored.value.got
    assert "set_output" in unscored.value.advice
    strange = SCORES.assign(score=SCORES["score"].where(SCORES.index != 7))
    plain = CalibratedClassifier(itemgetter("score")).set_output(missing_scores="nan")
    with pytest.raises(ValueError, match="score"):
        plain.fit(strange, LABELS)
    with pytest.raises(InvalidValueError) as refused:
        by_score().set_output(missing_scores="drop")
    assert refused.value.parameter == "missing_scores"
    with pytest.raises(TypeError) as told:
        CalibratedClassifier(itemgetter("score"), missing_scores="nan")
    assert "set_output" in str(told.value)


def test_rows_without_a_score_are_beside_the_library_of_predictions() -> None:
    rows = pd.DataFrame({"score": [0.2, np.nan, 0.8]})
    model = by_score().set_output(missing_scores="nan").set_output(transform="pandas")
    found = model.predict_proba(rows)
    assert isinstance(found, pd.DataFrame)
    assert found.isna().all(axis=1).tolist() == [False, True, False]
    with pytest.raises(ValueError, match="score"):
        model.set_output(missing_scores="raise").predict_proba(rows)


def test_the_classifier_has_ten_parameters() -> None:
    assert len(CalibratedClassifier(LogisticRegression()).get_params(deep=False)) == 10


class Forgetful(LogisticRegression):
    """A model that has no score for rows far to the left."""

    def predict_proba(self, X):
        found = super().predict_proba(X)
        found[np.asarray(X)[:, 0] < -50.0] = np.nan
        return found


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("size", ["auto", 0])
def test_several_models_and_classes_without_a_score(n_classes: int, size) -> None:
    labels = Y if n_classes == 2 else Y + (X[:, 0] > 0)
    strange = X[:3].copy()
    strange[1, 0] = -99.0
    plain = CalibratedClassifier(Forgetful(), calibration_size=size).fit(X, labels)
    with pytest.raises(ValueError, match="score"):
        plain.predict_proba(strange)
    model = plain.set_output(missing_scores="nan")
    assert np.isnan(model.predict_proba(strange)).all(axis=1).tolist() == [False, True, False]


# Metadata routing


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), LogisticRegression().set_params(C=0.5)]
)
def test_routing_needs_no_inner_requests(estimator) -> None:
    weights = np.linspace(0.5, 2.0, 1_000)
    plain = CalibratedClassifier(estimator).fit(X, Y, sample_weight=weights)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = CalibratedClassifier(estimator).fit(X, Y, sample_weight=weights)
        model = CalibratedClassifier(estimator).set_score_request(sample_weight=False)
        search = GridSearchCV(model, {"estimator__C": [0.1]}, cv=2)
        search.fit(X, Y, sample_weight=weights)
    np.testing.assert_array_equal(routed.predict_proba(X), plain.predict_proba(X))
    unweighted = CalibratedClassifier(estimator).fit(X, Y)
    assert np.abs(unweighted.predict_proba(X) - plain.predict_proba(X)).max() > 1e-4
    alone = CalibratedClassifier(LogisticRegression(C=0.1)).fit(X, Y, sample_weight=weights)
    np.testing.assert_array_equal(search.best_estimator_.predict_proba(X), alone.predict_proba(X))


def test_requests_still_decide() -> None:
    weights = np.linspace(0.5, 2.0, 1_000)
    with sklearn.config_context(enable_metadata_routing=True):
        refuses = LogisticRegression().set_fit_request(sample_weight=False)
        with pytest.raises(TypeError, match="sample_weight"):
            CalibratedClassifier(refuses).fit(X, Y, sample_weight=weights)
        segments = np.where(X[:, 0] > 0.0, "high", "low")
        own = BinningCalibrator(2, segment_rule=None)
        model = CalibratedClassifier(LogisticRegression(), own).fit(X, Y, segments=segments)
    assert model.calibrator_.partition_.has_segments


# Decisions


@pytest.mark.parametrize("names", [None, "a yes"], ids=["sorted", "positive class first"])
def test_decisions_of_averaged_models(names: str | None) -> None:
    labels = Y if names is None else np.where(Y == 1, names, "no")
    # enough rows to prove on which side of 1/2 a rate is, whichever are drawn
    several = CalibratedClassifier(LogisticRegression(), pos_label=names, calibration_size=0.3)
    model = several.fit(X, labels)
    found = decide(model, X, cost_false_alarm=1.0, cost_miss=1.0)
    lower, upper = model.predict_rate_interval(X).T
    np.testing.assert_array_equal(found.lower, lower)
    np.testing.assert_array_equal(found.action == "act", lower > 0.5)
    np.testing.assert_array_equal(found.action == "do not act", upper < 0.5)
    assert found.cost_lower <= found.cost <= found.cost_upper
    assert set(found.action) >= {"act", "do not act"}


def test_decisions_of_a_frozen_model_and_of_frames() -> None:
    frame = pd.DataFrame(X, columns=[f"x{place}" for place in range(6)])
    model = CalibratedClassifier(FrozenEstimator(LogisticRegression().fit(frame, Y))).fit(frame, Y)
    found = decide(model, frame, cost_false_alarm=1.0, cost_miss=3.0)
    assert found.action.shape == (1_000,)


def test_a_weak_guarantee_says_what_a_user_of_the_classifier_can_do() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 2))
    labels = rng.uniform(size=300) < 0.5
    held_out = CalibratedClassifier(LogisticRegression(), calibration_size=75)
    with pytest.warns(WeakGuaranteeWarning, match="calibration_size") as caught:
        held_out.fit(features, labels)
    assert "bins" not in str(caught[0].message)
    assert len(caught) == 1
    assert "calibration_size" in held_out.guarantee_.weakness
    with pytest.warns(WeakGuaranteeWarning, match="Use more rows") as caught:
        model = CalibratedClassifier(LogisticRegression()).fit(features, labels)
    assert "calibration_size" not in str(caught[0].message)  # no larger one would help
    assert len(caught) == 1
    assert "fewer bins" not in str(model.guarantee_)
    with pytest.warns(WeakGuaranteeWarning, match="Use more groups"):
        model.fit(features, labels, groups=np.arange(300) // 20)


def test_a_row_without_a_label_is_named() -> None:
    features = np.arange(80.0).reshape(-1, 1)
    labels = np.array(["no", "yes"] * 40, dtype=object)
    labels[[5, 9]] = None
    numbers = np.arange(80) % 2.0
    numbers[[5, 9]] = np.nan
    whole = pd.Series(np.arange(80) % 2, dtype="Int64").mask(np.isnan(numbers))
    for given in (labels, numbers, whole):
        with pytest.raises(InvalidValueError) as refused:
            CalibratedClassifier(LogisticRegression()).fit(features, given)
        assert refused.value.parameter == "y"
        assert "row index 5, and 2 such rows" in refused.value.got


def test_weights_of_another_length_are_refused_before_rows_are_split() -> None:
    features = np.arange(80.0).reshape(-1, 1)
    with pytest.raises(InvalidValueError) as refused:
        CalibratedClassifier(LogisticRegression()).fit(
            features, np.arange(80) % 2, sample_weight=np.ones(5)
        )
    assert refused.value.parameter == "sample_weight"
    assert "80" in refused.value.rule


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_a_weight_that_is_negative_or_not_finite_is_refused_and_its_row_named(bad) -> None:
    features = np.arange(80.0).reshape(-1, 1)
    weights = np.ones(80)
    weights[7] = bad
    model = CalibratedClassifier(LogisticRegression(), BinningCalibrator(n_bins=1))
    for given in (weights, weights.tolist(), pd.Series(weights)):
        with pytest.raises(InvalidValueError) as refused:
            model.fit(features, np.arange(80) % 2, sample_weight=given)
        assert refused.value.parameter == "sample_weight"
        assert "row index 7" in refused.value.got


def test_one_weight_for_all_rows_is_checked_too() -> None:
    features = np.arange(80.0).reshape(-1, 1)
    model = CalibratedClassifier(LogisticRegression(), BinningCalibrator(n_bins=1))
    model.fit(features, np.arange(80) % 2, sample_weight=2.0)
    with pytest.raises(InvalidValueError) as refused:
        model.fit(features, np.arange(80) % 2, sample_weight=-2.0)
    assert refused.value.parameter == "sample_weight"


# Errors say what to do


def test_a_method_that_needs_a_proof_says_how_to_get_one() -> None:
    model = CalibratedClassifier(LogisticRegression(), calibration_size=0).fit(X, Y)
    with pytest.raises(AttributeError) as refused:
        model.predict_interval(X)
    assert refused.value.__cause__.parameter == "calibration_size"
    assert "auto" in refused.value.__cause__.advice


def test_a_class_in_place_of_a_model_is_told() -> None:
    with pytest.raises(InvalidTypeError) as refused:
        CalibratedClassifier(LogisticRegression).fit(X, Y)
    assert "LogisticRegression()" in refused.value.advice


@pytest.mark.parametrize(
    ("classifier", "advice"),
    [
        (CalibratedClassifier(LogisticRegression(), cv=None, calibration_size=0), "cv=5"),
        (CalibratedClassifier(itemgetter(0), calibration_size=0), "leave it out"),
        (CalibratedClassifier(itemgetter(0), calibration_size=0.5), "rows to calibrate on"),
        (
            CalibratedClassifier(
                LogisticRegression(), BinningCalibrator(), cv=3, calibration_size=0.5
            ),
            "one of the two",
        ),
    ],
)
def test_a_size_of_the_hold_out_that_cannot_be_used_is_refused(classifier, advice) -> None:
    with pytest.raises(InvalidValueError) as refused:
        classifier.fit(X, Y)
    assert refused.value.parameter == "calibration_size"
    assert advice in refused.value.advice


def test_few_groups_give_as_many_models() -> None:
    groups = np.arange(1_000) // 250  # of four groups, one is held out
    model = CalibratedClassifier(LogisticRegression()).fit(X, Y, groups=groups)
    assert len(model.estimators_) == 3
    with pytest.raises(InvalidValueError) as refused:
        CalibratedClassifier(LogisticRegression(), cv=5).fit(X, Y, groups=groups)
    assert "cv=3" in refused.value.advice
    with pytest.raises(InvalidValueError) as refused:
        CalibratedClassifier(LogisticRegression()).fit(X, Y, groups=np.arange(1_000) // 500)
    assert refused.value.got == "2 and 1 group"


# Scores that fall with the rate


class Reversed(LogisticRegression):
    """A model whose columns are in the wrong order."""

    def predict_proba(self, X):
        return super().predict_proba(X)[:, ::-1]


def test_models_whose_scores_fall_with_the_rate_are_told(fitted) -> None:
    model = CalibratedClassifier(Reversed()).fit(X, Y)
    told = "Predictions fall as the score rises"
    assert told in model.guarantee_.details
    assert told not in fitted.guarantee_.details
    assert roc_auc_score(Y, model.predict_proba(X)[:, 1]) > 0.8


# Diagrams of a fitted classifier


def test_a_diagram_is_about_the_positive_class_of_the_classifier() -> None:
    words = np.where(Y == 1, "bad", "good")
    model = CalibratedClassifier(LogisticRegression(), pos_label="bad").fit(X, words)
    drawn = ReliabilityDisplay.from_estimator(model, X, words, ax=Figure().add_subplot())
    same = ReliabilityDisplay.from_predictions(
        Y, model.predict_proba(X)[:, 0], ax=Figure().add_subplot()
    )
    np.testing.assert_array_equal(drawn.observed.rate, same.observed.rate)


def test_a_diagram_of_one_of_several_classes_is_against_the_rest() -> None:
    labels = np.array(["low", "middle", "top"])[Y + (X[:, 0] > 0)]
    model = LogisticRegression().fit(X, labels)
    drawn = ReliabilityDisplay.from_estimator(
        model, X, labels, pos_label="middle", ax=Figure().add_subplot()
    )
    same = ReliabilityDisplay.from_predictions(
        labels == "middle", model.predict_proba(X)[:, 1], ax=Figure().add_subplot()
    )
    np.testing.assert_array_equal(drawn.observed.rate, same.observed.rate)
    with pytest.raises(InvalidValueError) as refused:
        ReliabilityDisplay.from_estimator(model, X, labels)
    assert refused.value.parameter == "pos_label"
    assert refused.value.got == "None"


def test_weights_with_a_pipeline_are_as_in_scikit_learn():
    """Both warn and train without weights; the weights of a step train with them."""
    X, y = make_classification(n_samples=2_000, random_state=0)
    weight = np.where(y == 1, 5.0, 1.0)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    with pytest.warns(UserWarning, match="Pipeline does not appear to accept sample_weight"):
        CalibratedClassifierCV(pipeline).fit(X, y, sample_weight=weight)
    for estimator in (pipeline, GridSearchCV(pipeline, {"logisticregression__C": [0.1, 1.0]})):
        with pytest.warns(CalibrantWarning, match="logisticregression__sample_weight instead"):
            found = CalibratedClassifier(estimator).fit(X, y, sample_weight=weight)
        plain = CalibratedClassifier(estimator).fit(X, y)
        np.testing.assert_array_equal(found.predict_proba(X), plain.predict_proba(X))
    weighted = CalibratedClassifier(pipeline).fit(X, y, logisticregression__sample_weight=weight)
    plain = CalibratedClassifier(pipeline).fit(X, y)
    assert not np.array_equal(weighted.predict_proba(X), plain.predict_proba(X))


def test_a_search_over_a_model_that_takes_weights_still_gets_them():
    X, y = make_classification(n_samples=2_000, random_state=0)
    weight = np.where(y == 1, 5.0, 1.0)
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]})
    weighted = CalibratedClassifier(search).fit(X, y, sample_weight=weight)
    plain = CalibratedClassifier(search).fit(X, y)
    assert not np.array_equal(weighted.predict_proba(X), plain.predict_proba(X))
