"""A hold-out of the most recent rows."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from calibrant import BinningCalibrator, CalibratedClassifier
from calibrant.errors import InvalidTypeError, InvalidValueError


class Recorder(LogisticRegression):
    """Keeps the rows that it was trained on: their numbers are the second feature."""

    def fit(self, X, y, sample_weight=None):
        self.rows_ = X[:, 1].astype(int)
        return super().fit(X[:, :1], y)

    def predict_proba(self, X):
        return super().predict_proba(X[:, :1])


def _rows(n=400):
    rng = np.random.default_rng([1, 2])
    x = rng.normal(size=n)
    return (
        rng,
        np.column_stack([x, np.arange(n)]),
        (rng.random(n) < 1 / (1 + np.exp(-x))).astype(int),
    )


def _fitted(X, y, size=0.25, **more):
    model = CalibratedClassifier(
        Recorder(), BinningCalibrator(2, partition="uniform"), holdout="last", calibration_size=size
    )
    return model.fit(X, y, **more)


def test_the_last_rows_calibrate_and_all_others_train():
    _, X, y = _rows()
    model = _fitted(X, y)
    assert model.estimator_.rows_.tolist() == list(range(300))
    assert model.guarantee_.n_rows == 100
    assert model.guarantee_.is_proved
    assert _fitted(X, y, size=10).estimator_.rows_.size == 390


def test_times_give_the_order_and_rows_of_one_day_stay_together():
    rng, X, y = _rows()
    days = np.datetime64("2024-01-01") + np.arange(400) // 30
    order = rng.permutation(400)
    model = _fitted(X[order], y[order], time=days[order])
    assert sorted(model.estimator_.rows_.tolist()) == list(range(300))
    # the 95th row from the end is in the middle of a day, which is held out whole
    model = _fitted(X[order], y[order], size=95, time=[str(day) for day in days[order]])
    assert sorted(model.estimator_.rows_.tolist()) == list(range(300))
    assert model.guarantee_.n_rows == 100


def test_groups_stay_whole_and_are_as_late_as_their_last_row():
    _, X, y = _rows()
    groups = np.arange(400) % 100
    groups[390:] = np.arange(200, 210)  # ten groups of one row at the end
    model = CalibratedClassifier(
        Recorder(), BinningCalibrator(2), holdout="last", calibration_size=30
    )
    trained = model.fit(X, y, groups=groups).estimator_.rows_
    held = np.setdiff1d(np.arange(400), trained)
    assert not np.isin(groups[trained], groups[held]).any()
    assert np.unique(groups[held]).size == 30
    assert set(range(390, 400)) <= set(held.tolist())


def test_rows_without_weight_take_their_times_with_them():
    _, X, y = _rows()
    weight = np.ones(400)
    weight[::2] = 0
    model = _fitted(X, y, time=np.arange(400)[::-1], sample_weight=weight)
    assert model.estimator_.rows_.tolist() == list(range(101, 400, 2))


def test_what_cannot_be_held_out_is_refused():
    _, X, y = _rows()
    with pytest.raises(InvalidValueError, match="holdout must be one of"):
        CalibratedClassifier(Recorder(), holdout="first").fit(X, y)
    with pytest.raises(InvalidTypeError, match="set holdout='last'"):
        CalibratedClassifier(Recorder()).fit(X, y, time=np.arange(400))
    with pytest.raises(
        InvalidValueError, match="holdout must be 'random' if no rows are held out; got cv=3"
    ):
        CalibratedClassifier(Recorder(), BinningCalibrator(2), holdout="last", cv=3).fit(X, y)
    frozen = FrozenEstimator(LogisticRegression().fit(X, y))
    with pytest.raises(InvalidValueError, match="a frozen estimator"):
        CalibratedClassifier(frozen, holdout="last").fit(X, y)
    with pytest.raises(InvalidValueError, match="no earlier moment"):
        _fitted(X, y, time=np.zeros(400))
    with pytest.raises(InvalidValueError, match="time must have no missing values"):
        _fitted(X, y, time=np.where(np.arange(400) == 3, np.nan, 1.0))
