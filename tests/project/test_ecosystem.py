"""Calibrators among other tools: boosters, functions, grids, weights, splitters, pipelines, frames."""

import pickle
from operator import itemgetter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    PredefinedSplit,
    RepeatedKFold,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant import BinningCalibrator, CalibratedClassifier, IsotonicCalibrator, OnlineCalibrator
from calibrant.classifier.arguments import read_task
from calibrant.classifier.folds import held_out
from calibrant.tripod import ConformalSets
from calibrator_checks import CALIBRATORS, INPUT_PATHS, fitted

X, Y = make_classification(n_samples=1200, n_features=5, flip_y=0.2, random_state=0)
SCORES = LogisticRegression().fit(X[:600], Y[:600]).predict_proba(X)[:, 1]
BINS = BinningCalibrator(n_bins=4, pilot=None)


class Booster:
    """What LightGBM's booster has: a fitted model whose `predict` gives scores.

    No `fit`, no `classes_`.
    """

    def __init__(self) -> None:
        self._model = LogisticRegression().fit(X[:600], Y[:600])

    def predict(self, rows):
        return self._model.predict_proba(rows)[:, 1]


class MatrixBooster(Booster):
    """What XGBoost's has: `predict` takes a matrix of its own kind, `inplace_predict` takes arrays."""

    def predict(self, rows):
        raise TypeError("Expecting data to be a DMatrix object")

    def inplace_predict(self, rows):
        return super().predict(rows)


def both_columns(rows):
    positive = Booster().predict(rows)
    return np.column_stack([1 - positive, positive])


@pytest.mark.parametrize("scorer", [Booster(), MatrixBooster(), Booster().predict, both_columns])
def test_boosters_and_functions_are_calibrated_on_all_rows(scorer) -> None:
    model = CalibratedClassifier(scorer, BINS).fit(X[600:], Y[600:])
    alone = clone(BINS).fit(SCORES[600:], Y[600:])
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(SCORES))
    np.testing.assert_array_equal(model.predict_interval(X), alone.predict_interval(SCORES))
    assert model.guarantee_.is_proved
    again = clone(model).fit(X[600:], np.where(Y[600:] == 1, "yes", "no"))
    assert set(again.predict(X)) == {"no", "yes"}
    with pytest.raises(ValueError, match="cv must be None for a frozen estimator"):
        CalibratedClassifier(scorer, BINS, cv=3).fit(X, Y)
    with pytest.raises(TypeError, match="sample_weight must be left out for a frozen estimator"):
        CalibratedClassifier(scorer, BINS).fit(X, Y, sample_weight=np.ones(1200))


def test_a_column_of_scores_is_calibrated() -> None:
    frame = pd.DataFrame({"age": 1.0, "score": SCORES})
    model = CalibratedClassifier(itemgetter("score"), BINS).fit(frame, Y)
    np.testing.assert_array_equal(
        model.predict_proba(frame), clone(BINS).fit(frame["score"], Y).predict_proba(SCORES)
    )
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(model)).predict(frame), model.predict(frame)
    )


def test_what_is_neither_a_model_nor_a_function_is_refused() -> None:
    for wrong in ("lightgbm", None):
        with pytest.raises(
            TypeError, match=r"estimator must be a classifier.*or a function from rows to scores"
        ):
            CalibratedClassifier(wrong).fit(X, Y)
    with pytest.raises(TypeError, match=r"write LogisticRegression\(\)"):
        CalibratedClassifier(LogisticRegression).fit(X, Y)


def test_a_grid_reaches_the_default_calibrator() -> None:
    model = CalibratedClassifier(LogisticRegression())
    search = GridSearchCV(model, {"calibrator__n_bins": [3, 6]}, scoring="neg_log_loss", cv=2).fit(
        X, Y
    )
    assert search.best_estimator_.calibrator.n_bins in (3, 6)
    assert model.calibrator is None
    assert (
        model.set_params(calibrator__confidence_level=0.8).fit(X, Y).guarantee_.confidence_level
        == 0.8
    )
    with pytest.raises(ValueError, match="Invalid parameter 'bins'"):
        CalibratedClassifier(LogisticRegression()).set_params(calibrator__bins=3)


def test_sample_weight_trains_and_calibration_weight_calibrates() -> None:
    weight = np.arange(1200) % 3 + 1
    plain = CalibratedClassifier(LogisticRegression(), BINS).fit(X, Y)
    trained = CalibratedClassifier(LogisticRegression(), BINS).fit(X, Y, sample_weight=weight)
    assert (trained.estimator_.coef_ != plain.estimator_.coef_).any()
    assert trained.calibrator_.tally_.n_rows == 300
    weighed = CalibratedClassifier(LogisticRegression(), BINS).fit(X, Y, calibration_weight=weight)
    np.testing.assert_array_equal(weighed.estimator_.coef_, plain.estimator_.coef_)
    rows = held_out(read_task(X, Y, {}, weighed), 0.25)[1]
    assert weighed.calibrator_.tally_.n_rows == weight[rows].sum() > 500
    frozen = FrozenEstimator(plain.estimator_)
    alone = clone(BINS).fit(plain.estimator_.predict_proba(X), Y, sample_weight=weight)
    assert (
        CalibratedClassifier(frozen, BINS).fit(X, Y, calibration_weight=weight).calibrator_.tally_
        == alone.tally_
    )


def test_weights_are_never_dropped_silently() -> None:
    with pytest.raises(
        TypeError,
        match="calibration_weight must be None for a calibrator whose fit takes no sample_w",
    ):
        CalibratedClassifier(LogisticRegression(), OnlineCalibrator(n_bins=3)).fit(
            X, Y, calibration_weight=np.ones(1200)
        )
    with pytest.raises(ValueError, match="calibration_weight must have one entry per score, 1200"):
        CalibratedClassifier(LogisticRegression(), BINS).fit(X, Y, calibration_weight=np.ones(7))
    with pytest.raises(
        ValueError, match=r"calibration_weight must be whole numbers .*; got 0.5 at row index 0"
    ):
        CalibratedClassifier(LogisticRegression(), BINS).fit(
            X, Y, calibration_weight=np.full(1200, 0.5)
        )


def test_later_rows_calibrate_where_time_splits() -> None:
    model = CalibratedClassifier(LogisticRegression(), BINS, cv=TimeSeriesSplit(3)).fit(X, Y)
    assert model.calibrator_.tally_.n_rows == 900  # the first fourth only trains
    assert not model.guarantee_.is_proved
    np.testing.assert_allclose(model.estimator_.coef_, LogisticRegression().fit(X, Y).coef_)


@pytest.mark.parametrize(
    "cv",
    [
        [(np.arange(800), np.arange(800, 1200))],
        PredefinedSplit(np.where(np.arange(1200) < 800, -1, 0)),
    ],
)
def test_one_split_is_a_hold_out_whose_guarantee_is_proved(cv) -> None:
    model = CalibratedClassifier(LogisticRegression(), BINS, cv=cv).fit(X, Y)
    earlier = LogisticRegression().fit(X[:800], Y[:800])
    np.testing.assert_array_equal(model.estimator_.coef_, earlier.coef_)
    expected = clone(BINS).fit(earlier.predict_proba(X[800:]), Y[800:])
    np.testing.assert_array_equal(
        model.predict_interval(X), expected.predict_interval(earlier.predict_proba(X))
    )
    assert model.guarantee_.is_proved


def test_groups_stay_together() -> None:
    groups = np.arange(1200) // 40
    fixed = BinningCalibrator(4, partition="uniform")
    together = {"groups": groups, "max_group_size": 40}  # all groups that are given are counted
    seen = []

    class Recorder(LogisticRegression):
        def fit(self, X, y):
            seen.append({*groups[X[:, 0].astype(int)].tolist()})
            return super().fit(X, y)

    rows = np.column_stack([np.arange(1200), X])
    model = CalibratedClassifier(Recorder(max_iter=5000), fixed, cv=GroupKFold(3)).fit(
        rows, Y, groups=groups, max_group_size=40
    )
    assert model.calibrator_.tally_.n_rows == 1200
    assert [len(one) for one in seen] == [20, 20, 20, 30]  # the last is fitted on all
    for cv, sizes in ((None, [22]), (3, [20, 20, 20, 30])):  # a quarter of 30 groups is 8
        seen.clear()
        model = CalibratedClassifier(Recorder(max_iter=5000), fixed, cv=cv).fit(
            rows, Y, groups=groups, max_group_size=40
        )
        assert [len(one) for one in seen] == sizes
    shuffled = np.random.default_rng(0).permutation(1200)
    names = [f"customer {group}" for group in groups]
    first, second = (
        CalibratedClassifier(LogisticRegression(), fixed).fit(
            X[order], Y[order], groups=[names[row] for row in order], max_group_size=40
        )
        for order in (np.arange(1200), shuffled)
    )
    assert repr(first.calibrator_.tally_) == repr(
        second.calibrator_.tally_
    )  # the same groups, in any order of rows
    numbered = CalibratedClassifier(LogisticRegression(), fixed, calibration_size=4).fit(
        X, Y, groups=groups, max_group_size=40
    )
    assert numbered.calibrator_.tally_.n_rows == 4 * 40
    for cv, rule in (
        ([(np.arange(630), np.arange(630, 1200))], "cv must keep groups whole"),
        (31, "cv must be at most the number of groups; got 31"),
    ):
        with pytest.raises(ValueError, match=rule):
            CalibratedClassifier(LogisticRegression(), fixed, cv=cv).fit(X, Y, **together)
    with pytest.raises(
        ValueError, match="calibration_size must leave rows to train on; got 30 of n_groups=30"
    ):
        CalibratedClassifier(LogisticRegression(), fixed, calibration_size=30).fit(
            X, Y, groups=groups, max_group_size=40
        )
    with pytest.raises(ValueError, match="groups must have one entry"):
        CalibratedClassifier(LogisticRegression(), fixed).fit(X, Y, groups=groups[1:])


def test_rows_never_calibrate_twice_nor_where_they_trained() -> None:
    with pytest.raises(ValueError, match="cv must use each row for calibration at most once"):
        CalibratedClassifier(
            LogisticRegression(), BINS, cv=RepeatedKFold(n_splits=2, n_repeats=2)
        ).fit(X, Y)
    with pytest.raises(ValueError, match="cv must keep training and calibration rows apart"):
        CalibratedClassifier(
            LogisticRegression(), BINS, cv=[(np.arange(900), np.arange(800, 1200))]
        ).fit(X, Y)


def test_a_pipeline_inside_the_classifier_has_intervals_sets_and_a_guarantee() -> None:
    inside = CalibratedClassifier(make_pipeline(StandardScaler(), LogisticRegression()), BINS).fit(
        X, Y
    )
    assert inside.predict_interval(X).shape == inside.predict_set(X).shape == (1200, 2)
    assert inside.guarantee_.is_proved
    outside = make_pipeline(
        StandardScaler(), CalibratedClassifier(LogisticRegression(), IsotonicCalibrator())
    ).fit(X, Y)
    assert outside.predict_proba(X).shape == (1200, 2)


def rows_of(library, values, names):
    frame = library.DataFrame(dict(zip(names, np.asarray(values).T, strict=True)))
    if library is pd:
        frame.index = pd.Index([f"row {n}" for n in range(len(frame))], name="key")
    return frame


def check_frame(found, rows, arrays, columns) -> None:
    """Of the same library, index and values."""
    assert type(found).__module__.partition(".")[0] == type(rows).__module__.partition(".")[0]
    np.testing.assert_array_equal(found.to_numpy(), arrays)
    if hasattr(rows, "index"):
        assert found.index.equals(rows.index)
    if columns is not None:
        assert list(found.columns) == list(columns)


@pytest.mark.parametrize("library", [pd, pl])
def test_frames_come_back_as_frames_where_that_is_set(library) -> None:
    labels = np.where(Y == 1, "yes", "no")
    rows = rows_of(library, X, "abcde")
    model = CalibratedClassifier(LogisticRegression(), BINS).fit(rows, labels)
    plain = {
        name: getattr(model, name)(rows)
        for name in ("predict", "predict_proba", "predict_interval")
    }
    assert all(isinstance(found, np.ndarray) for found in plain.values())
    assert model.set_output(predict="input") is model
    assert model.feature_names_in_.tolist() == list("abcde")
    named = {
        "predict": None,
        "predict_proba": ("no", "yes"),
        "predict_interval": ("lower", "upper"),
    }
    for name, columns in named.items():
        check_frame(getattr(model, name)(rows), rows, plain[name], columns)
    assert model.score(rows, labels) > 0.7
    assert isinstance(model.set_output(predict="default").predict(rows), np.ndarray)
    with pytest.raises(ValueError, match="predict must be one of 'default', 'input'; got 'pandas'"):
        model.set_output(predict="pandas")


def test_set_output_takes_what_scikit_learn_takes() -> None:
    calibrator = fitted(BINS)
    rows = pd.Series(SCORES[:9], index=list("abcdefghi"))
    plain = calibrator.predict_interval(rows)
    for library, given in ((pd, rows), (pd, SCORES[:9]), (pl, rows), (pl, SCORES[:9])):
        found = calibrator.set_output(transform=library.__name__).predict_interval(given)
        assert isinstance(found, library.DataFrame)
        assert list(found.columns) == ["lower", "upper"]
        np.testing.assert_array_equal(found.to_numpy(), plain)
        if library is pd and given is rows:
            assert found.index.equals(rows.index)
    assert isinstance(calibrator.set_output(transform="default").predict(rows), np.ndarray)
    with pytest.raises(
        ValueError, match="transform must be one of 'default', 'pandas', 'polars'; got 'arrow'"
    ):
        calibrator.set_output(transform="arrow")


@pytest.mark.parametrize("library", [pytest.param(pd, marks=pytest.mark.broad), pl])
@pytest.mark.parametrize(
    "kind",
    [
        *(
            pytest.param(name, marks=() if name in INPUT_PATHS else pytest.mark.broad)
            for name in CALIBRATORS
        ),
        "conformal",
    ],
)
def test_every_calibrator_gives_frames(kind, library) -> None:
    calibrator = (
        fitted(CALIBRATORS[kind]) if kind in CALIBRATORS else ConformalSets().fit(SCORES, Y)
    )
    rows = rows_of(library, SCORES[:50, None], ["p"])["p"]
    methods = [name for name in dir(calibrator) if name.startswith("predict")]
    plain = {name: getattr(calibrator, name)(rows) for name in methods}
    calibrator.set_output(predict="input")
    for name in methods:
        columns = ("lower", "upper") if name.endswith("interval") else None
        check_frame(getattr(calibrator, name)(rows), rows, plain[name], columns)
        np.testing.assert_array_equal(getattr(calibrator, name)(SCORES[:50]), plain[name])


def test_set_output_takes_scores_of_pandas_without_an_index() -> None:
    scores = np.linspace(0.0, 1.0, 100)
    calibrator = BinningCalibrator(2).fit(scores, np.arange(100) % 2)
    for setting in ({"transform": "pandas"}, {"predict": "input"}):
        calibrator.set_output(**setting)
        for given in (pd.Index(scores), pd.array(scores)):
            assert calibrator.predict_proba(given).index.equals(pd.RangeIndex(100))
