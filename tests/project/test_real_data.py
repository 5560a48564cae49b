"""On real data the default guarantees something, keeps the ranking, and is as sharp as other
calibrators.

`make study` asks the same of many more sets, beside more calibrators.
"""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from calibrant import Calibrator, PlattCalibrator
from calibrant.cli._replay import data_files

N_SPLITS = 5
MODELS = {
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "two decimals": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "forest": lambda: RandomForestClassifier(30, random_state=0),
    "tree": lambda: DecisionTreeClassifier(min_samples_leaf=20, random_state=0),
    "naive Bayes": GaussianNB,
}


@cache
def flights() -> tuple[np.ndarray, np.ndarray]:
    columns = ["month", "hour", "distance", "sched_arr_time", "carrier", "arr_delay"]
    (path,) = data_files("flights.csv.zip")
    rows = pd.read_csv(path, usecols=columns).dropna().sample(5_000, random_state=0)
    late = (rows.pop("arr_delay") > 30).to_numpy()
    return pd.get_dummies(rows).to_numpy(float), late


@cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    inputs, digit = load_digits(return_X_y=True)
    return inputs, digit == 8


def figures(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.array([log_loss(y, p), brier_score_loss(y, p), roc_auc_score(y, p)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "model"),
    [
        (flights, "logistic"),
        (flights, "two decimals"),
        (flights, "forest"),
        (flights, "tree"),
        (digits, "naive Bayes"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_the_default_serves(table, model):
    X, y = table()
    n = len(y) // 3
    raw, ours, sigmoid, isotonic = np.zeros((4, N_SPLITS, 3))
    for split in range(N_SPLITS):
        train, calibration, test = np.split(
            np.random.default_rng(split).permutation(len(y))[: 3 * n], 3
        )
        scores = MODELS[model]().fit(X[train], y[train]).predict_proba(X)[:, 1]
        if model == "two decimals":
            scores = scores.round(2)
        known = (scores[calibration], y[calibration])
        new = scores[test]
        fitted = Calibrator().fit(*known)
        assert not fitted.guarantee_.is_vacuous
        raw[split] = figures(new, y[test])
        ours[split] = figures(fitted.predict(new), y[test])
        sigmoid[split] = figures(PlattCalibrator().fit(*known).predict(new), y[test])
        isotonic[split] = figures(
            IsotonicRegression(out_of_bounds="clip").fit(*known).predict(new), y[test]
        )
    best = min(sigmoid[:, 0].mean(), isotonic[:, 0].mean())
    assert ours[:, 0].mean() <= 1.02 * best
    assert ours[:, 1].mean() <= 1.015 * raw[:, 1].mean()
    assert ours[:, 2].mean() >= raw[:, 2].mean() - 0.002
