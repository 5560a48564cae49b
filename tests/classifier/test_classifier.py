"""CalibratedClassifier in scikit-learn's world."""

import inspect
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from calibrant import BinningCalibrator, CalibratedClassifier, Calibrator
from calibrant.errors import InvalidTypeError, InvalidValueError
from worlds.guarantees import assert_kept

X, Y = make_classification(n_samples=3000, n_features=6, flip_y=0.2, random_state=0)


@pytest.mark.broad
@pytest.mark.filterwarnings(
    "ignore:scores go from:calibrant.errors.CalibrantWarning"
)  # a handful of rows held out
@parametrize_with_checks(
    [
        CalibratedClassifier(LogisticRegression()),
        CalibratedClassifier(DecisionTreeClassifier(max_depth=3, random_state=0)),
        CalibratedClassifier(LogisticRegression(), cv=3),
    ]
)
def test_scikit_learns_own_checks(estimator, check) -> None:
    check(estimator)


def rows_seen(model) -> int:
    """Rows that were counted, at an edge, or looked at for ties."""
    return model.calibrator_.tally_.n_rows + model.guarantee_.statement.looked


@pytest.mark.broad
def test_held_out_rows_are_those_counted_and_are_never_stratified() -> None:
    model = CalibratedClassifier(LogisticRegression(), calibration_size=0.2, random_state=0).fit(
        X, Y
    )
    assert rows_seen(model) == 600
    positives = [
        CalibratedClassifier(LogisticRegression(), random_state=seed)
        .fit(X, Y)
        .calibrator_.tally_.positives.sum()
        for seed in range(8)
    ]
    assert len(set(positives)) > 1  # a stratified draw would hold the same number each time


@pytest.mark.broad
def test_frozen_model_is_calibrated_on_all_rows_and_left_alone() -> None:
    fitted = LogisticRegression().fit(X[:1000], Y[:1000])
    coefficients = fitted.coef_.copy()
    model = CalibratedClassifier(FrozenEstimator(fitted)).fit(X[1000:], Y[1000:])
    assert rows_seen(model) == 2000
    np.testing.assert_array_equal(fitted.coef_, coefficients)
    alone = Calibrator().fit(fitted.predict_proba(X[1000:])[:, 1], Y[1000:])
    np.testing.assert_array_equal(
        model.predict_proba(X)[:, 1], alone.predict(fitted.predict_proba(X)[:, 1])
    )


@pytest.mark.broad
def test_predictions_intervals_and_sets_follow_the_classes() -> None:
    labels = np.where(Y == 1, "yes", "no")
    model = CalibratedClassifier(LogisticRegression(), random_state=0).fit(X, labels)
    numeric = CalibratedClassifier(LogisticRegression(), random_state=0).fit(X, Y)
    assert model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(model.predict_proba(X), numeric.predict_proba(X))
    np.testing.assert_array_equal(model.predict(X) == "yes", numeric.predict(X) == 1)
    interval = model.predict_interval(X)
    probability = model.predict_proba(X)[:, 1]
    assert ((interval[:, 0] <= probability) & (probability <= interval[:, 1])).all()
    assert model.predict_set(X, coverage=0.6).shape == (3000, 2)
    assert model.guarantee_.positive_label == "yes"


def test_decision_function_serves_where_there_are_no_probabilities() -> None:
    model = CalibratedClassifier(LinearSVC(random_state=0), random_state=0).fit(X, Y)
    assert ((model.predict_proba(X) >= 0) & (model.predict_proba(X) <= 1)).all()
    with pytest.raises(TypeError, match="must have predict_proba; got LinearSVC"):
        CalibratedClassifier(LinearSVC(), response_method="predict_proba").fit(X, Y)


@pytest.mark.broad
def test_out_of_fold_scores_come_without_a_proof() -> None:
    model = CalibratedClassifier(LogisticRegression(), Calibrator(), cv=5, random_state=0).fit(X, Y)
    assert rows_seen(model) == 3000
    assert not model.guarantee_.is_proved
    assert model.guarantee_.sentence.startswith(
        "Nothing is guaranteed: the scores come from models fitted on parts"
    )


@pytest.mark.broad
def test_works_in_pipeline_grid_search_and_cross_validation() -> None:
    model = CalibratedClassifier(LogisticRegression(), BinningCalibrator(n_bins=5), random_state=0)
    pipeline = make_pipeline(StandardScaler(), model).set_output(transform="pandas")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    pipeline.fit(frame, Y)
    assert pipeline[-1].feature_names_in_.tolist() == list("abcdef")
    grid = {"estimator__C": [0.1, 1.0], "calibrator__n_bins": [3, 6]}
    search = GridSearchCV(model, grid, scoring="neg_log_loss", cv=3).fit(X, Y)
    assert search.best_estimator_.calibrator_.partition_.n_regions in (3, 6)
    assert (cross_val_score(model, X, Y, cv=3) > 0.7).all()


@pytest.mark.broad
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_give_what_arrays_give(frame) -> None:
    columns = {name: X[:, i] for i, name in enumerate("abcdef")}
    tree = HistGradientBoostingClassifier(max_iter=10, random_state=0)
    from_array = CalibratedClassifier(tree, random_state=0).fit(X, Y)
    table = frame(columns)
    from_frame = CalibratedClassifier(tree, random_state=0).fit(table, Y)
    np.testing.assert_array_equal(from_frame.predict_proba(table), from_array.predict_proba(X))
    assert from_frame.feature_names_in_.tolist() == list("abcdef")


@pytest.mark.broad
def test_nan_and_sparse_are_taken_where_the_inner_model_takes_them() -> None:
    holes = X.copy()
    holes[::7, 0] = np.nan
    CalibratedClassifier(HistGradientBoostingClassifier(max_iter=5), random_state=0).fit(
        holes, Y
    ).predict(holes)
    with pytest.raises(ValueError, match="NaN"):
        CalibratedClassifier(LogisticRegression(), random_state=0).fit(holes, Y)
    matrix = sparse.csr_matrix(X)
    CalibratedClassifier(LogisticRegression(), random_state=0).fit(matrix, Y).predict(matrix)


def test_texts_reach_a_pipeline_untouched() -> None:
    texts = np.array(["good fine", "bad awful", "fine good good", "awful"] * 50)
    labels = np.array([1, 0, 1, 0] * 50)
    model = CalibratedClassifier(
        make_pipeline(CountVectorizer(), LogisticRegression()), random_state=0
    )
    assert model.fit(texts, labels).predict(["good fine", "awful"]).tolist() == [1, 0]


def test_clone_pickle_and_repr() -> None:
    model = CalibratedClassifier(LogisticRegression(), BinningCalibrator(n_bins=4), random_state=0)
    fitted = clone(model).fit(X, Y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_interval(X), fitted.predict_interval(X))
    assert not hasattr(model, "calibrator_")
    assert model.calibrator.n_bins == 4
    assert "CalibratedClassifier" in repr(model)
    assert "BinningCalibrator" in model._repr_html_()


@pytest.mark.broad
def test_two_runs_with_one_seed_are_identical_and_other_seeds_differ() -> None:
    runs = [
        CalibratedClassifier(RandomForestClassifier(20, random_state=0), random_state=seed)
        .fit(X, Y)
        .predict_proba(X)
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert (runs[0] != runs[2]).any()


def test_segments_reach_the_calibrator() -> None:
    segment = np.where(X[:, 0] > 0, "high", "low")
    own = BinningCalibrator(n_bins=3, segment_rule=None)
    model = CalibratedClassifier(LogisticRegression(), own, random_state=0)
    model.fit(X, Y, segments=segment)
    assert model.calibrator_.partition_.n_regions == 6
    assert model.predict_proba(X, segments=segment).shape == (3000, 2)
    with pytest.raises(TypeError, match="segments must be given"):
        model.predict_proba(X)


@pytest.mark.broad
def test_weights_go_to_the_model_and_rows_of_weight_zero_take_part_in_nothing() -> None:
    weight = np.where(np.arange(3000) % 3 == 0, 0.0, 1.5)
    model = CalibratedClassifier(LogisticRegression(), random_state=0).fit(
        X, Y, sample_weight=weight
    )
    kept = weight > 0
    without = CalibratedClassifier(LogisticRegression(C=1.5), random_state=0).fit(X[kept], Y[kept])
    assert rows_seen(model) == rows_seen(without) == 200
    for one, other in zip(model.estimators_, without.estimators_, strict=True):
        np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-3)
    frozen = FrozenEstimator(LogisticRegression().fit(X, Y))
    with pytest.raises(TypeError, match="frozen"):
        CalibratedClassifier(frozen).fit(X, Y, sample_weight=np.ones(3000))


def test_metadata_routing_follows_requests() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        model = CalibratedClassifier(
            LogisticRegression().set_fit_request(sample_weight=True),
            BinningCalibrator(n_bins=3, segment_rule=None).set_fit_request(
                segments=True, sample_weight=False
            ),
            random_state=0,
        )
        segment = np.where(X[:, 0] > 0, "high", "low")
        model.fit(X, Y, sample_weight=np.ones(3000), segments=segment)
        assert model.calibrator_.partition_.n_regions == 6


def test_frozen_model_with_other_classes_is_refused() -> None:
    frozen = FrozenEstimator(LogisticRegression().fit(X, np.where(Y == 1, "a", "b")))
    with pytest.raises(ValueError, match="classes of the frozen estimator"):
        CalibratedClassifier(frozen).fit(X, Y)


@pytest.mark.broad
def test_a_refused_fit_leaves_the_fitted_model_as_it_was() -> None:
    model = CalibratedClassifier(LogisticRegression(), random_state=0).fit(X, Y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        model.fit(X, X[:, 0])
    with pytest.raises(ValueError, match="Only binary"):
        model.set_params(calibrator=BinningCalibrator(n_bins=5)).fit(X, np.arange(3000) % 3)
    with pytest.raises(ValueError, match="n_bins"):
        model.set_params(calibrator=BinningCalibrator(n_bins=5000)).fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), before)


@pytest.mark.slow
def test_guarantee_holds_for_the_whole_classifier() -> None:
    # a world in which the truth is known: the label depends on the first feature, which takes 40
    # values
    rng = np.random.default_rng(0)
    values = np.linspace(-2, 2, 40)
    truth = 1 / (1 + np.exp(-3 * np.sin(values)))

    def simulate() -> Iterator[dict[str, bool]]:
        while True:
            kind = rng.integers(0, 40, 1500)
            labels = (rng.uniform(size=1500) < truth[kind]).astype(int)
            model = CalibratedClassifier(
                LogisticRegression(), BinningCalibrator(n_bins=4), random_state=rng
            )
            model.fit(values[kind, None], labels)
            region = model.calibrator_.partition_.assign(
                model.estimator_.predict_proba(values[:, None])[:, 1]
            )
            counts = np.bincount(region, minlength=model.calibrator_.partition_.n_regions)
            rate = np.bincount(region, truth, counts.size)[counts > 0] / counts[counts > 0]
            guarantee = model.guarantee_
            lower = guarantee.lower[counts > 0]
            upper = guarantee.upper[counts > 0]
            yield {"rates": bool(((rate < lower) | (rate > upper)).any())}

    assert_kept(simulate(), 0.1, caught=0.18)


@pytest.mark.broad
def test_response_method_names_the_scores_that_are_calibrated():
    fits = {
        name: (
            CalibratedClassifier(LogisticRegression(), response_method=name, random_state=0).fit(
                X, Y
            )
        )
        for name in ("predict_proba", "decision_function")
    }
    knots = {name: model.curve_.knots for name, model in fits.items()}
    assert ((knots["predict_proba"] > 0) & (knots["predict_proba"] < 1)).all()
    assert (knots["decision_function"] < 0).any()
    # `method` is the calibrator in scikit-learn: whoever passes it by habit is told so, and not
    # about responses
    with pytest.raises(TypeError, match="method"):
        CalibratedClassifier(LogisticRegression(), method="isotonic")
    with pytest.raises(InvalidTypeError, match="such as IsotonicCalibrator"):
        CalibratedClassifier(LogisticRegression(), "isotonic").fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    ("make", "parameter", "value", "instead"),
    [
        (lambda given: CalibratedClassifier(LogisticRegression(), **given), "ensemble", True, "cv"),
        (
            lambda given: CalibratedClassifier(LogisticRegression(), **given),
            "method",
            "sigmoid",
            "PlattCalibrator",
        ),
        (
            lambda given: CalibratedClassifier(**given),
            "base_estimator",
            LogisticRegression(),
            "estimator",
        ),
        (
            lambda given: CalibratedClassifier(LogisticRegression(), **given),
            "alpha",
            0.1,
            "confidence_level",
        ),
        (lambda given: BinningCalibrator(**given), "alpha", 0.1, "confidence_level"),
        (lambda given: Calibrator(**given), "alpha", 0.1, "confidence_level"),
    ],
)
def test_parameters_of_other_libraries_are_told_what_replaces_them(
    make: Any, parameter: str, value: object, instead: str
) -> None:
    with pytest.raises(InvalidTypeError) as refused:
        make({parameter: value})
    assert refused.value.parameter == parameter
    assert instead in str(refused.value.advice)


def test_parameters_of_other_libraries_are_in_no_signature() -> None:
    for kind in (CalibratedClassifier, BinningCalibrator):
        assert {"args", "parameters", "alpha", "ensemble", "method"}.isdisjoint(
            inspect.signature(kind).parameters
        )
    assert "estimator" in inspect.signature(CalibratedClassifier).parameters


def test_a_fitted_model_is_told_how_to_stay_as_it_is() -> None:
    model = LogisticRegression().fit(X, Y)
    with pytest.raises(InvalidValueError) as refused:
        CalibratedClassifier(model, cv="prefit").fit(X, Y)
    assert refused.value.parameter == "cv"
    assert "FrozenEstimator(model)" in str(refused.value.advice)


def test_a_single_class_is_told_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"one class only.*: add rows of the other class"):
        CalibratedClassifier(LogisticRegression()).fit(np.arange(8.0)[:, None], [1] * 8)


@pytest.mark.parametrize("routed", [False, True])
def test_groups_of_a_grid_search_reach_the_calibrator_by_metadata_routing_alone(
    routed: bool,
) -> None:
    generator = np.random.default_rng(0)
    customer = np.repeat(np.arange(300), 4)
    features = np.column_stack([generator.normal(size=1_200), generator.normal(size=300)[customer]])
    y = generator.uniform(size=1_200) < 1 / (1 + np.exp(-features.sum(axis=1)))
    with sklearn.config_context(enable_metadata_routing=routed):
        model = CalibratedClassifier(LogisticRegression(), BinningCalibrator(2))
        if routed:
            model.set_fit_request(groups=True)
        search = GridSearchCV(model, {"estimator__C": [0.1, 1.0]}, cv=GroupKFold(3)).fit(
            features, y, groups=customer
        )
    said = search.best_estimator_.guarantee_.sentence
    assert ("if new groups are like these" in said) is routed
