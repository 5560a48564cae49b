"""The calibrators that are compared, all with their defaults, and how they are measured."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

import calibrant


class Passed(ClassifierMixin, BaseEstimator):
    """A classifier whose only input is its score."""

    classes_ = np.array([0, 1])

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Passed":
        """Learn nothing."""
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the score as a probability."""
        return np.column_stack([1 - np.ravel(X), np.ravel(X)])

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the likelier class."""
        return (np.ravel(X) > 0.5).astype(int)


class Decides(Passed):
    """A classifier whose only input is its decision value, which scikit-learn prefers."""

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Return the decision value."""
        return np.ravel(X)


Method = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Takes scores and labels to calibrate, and scores to test; returns probabilities."""


def scikit_learn(method: str, model: type[Passed] = Passed) -> Method:
    def run(s: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
        frozen = FrozenEstimator(model())
        fitted = CalibratedClassifierCV(frozen, method=method).fit(s[:, None], y)
        return fitted.predict_proba(test[:, None])[:, 1]

    return run


def probcal(name: str) -> Method:
    def run(s: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
        import probcal

        return getattr(probcal, f"{name}Calibrator")().fit(s, y).predict_proba(test)

    return run


def venn_abers(s: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
    from venn_abers import VennAbers

    fitted = VennAbers()
    fitted.fit(p_cal=np.column_stack([1 - s, s]), y_cal=y)
    return fitted.predict_proba(p_test=np.column_stack([1 - test, test]))[0][:, 1]


def betacal(s: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
    from betacal import BetaCalibration

    return BetaCalibration().fit(s[:, None], y).predict(test[:, None])


SCIKIT_LEARN = ("sigmoid", "isotonic", "temperature")
BY_DECISIONS = {f"scikit-learn {name}": scikit_learn(name, Decides) for name in SCIKIT_LEARN}
"""Those that take decision values, where a model has them."""
OURS: dict[str, Callable[[], Any]] = {
    "calibrant": (
        calibrant.Calibrator
    ),  # the default of `CalibratedClassifier` and of `calibrant fit`
    "calibrant binning": calibrant.BinningCalibrator,
}


def measure(p: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """How good probabilities are; ECE in ten bins of equal width."""
    p = np.clip(p, 0, 1)
    ece = np.abs(np.bincount(np.minimum((p * 10).astype(int), 9), p - y, 10)).sum() / len(y)
    return {
        "log_loss": log_loss(y, p, labels=[0, 1]),
        "brier": brier_score_loss(y, p),
        "auc": roc_auc_score(y, p),
        "ece": ece,
    }
