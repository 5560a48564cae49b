"""The calibrators that are compared, all with their defaults, and how they are measured."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import logit
from sets import Scored
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


def mapie_top_label(s: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
    from mapie.calibration import TopLabelCalibrator

    fitted = TopLabelCalibrator(Passed(), cv="prefit").fit(s[:, None], y)
    return np.where(
        test > 0.5, (top := np.nanmax(fitted.predict_proba(test[:, None]), axis=1)), 1 - top
    )


def mapie_venn_abers(s: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
    from mapie.calibration import VennAbersCalibrator

    return (
        VennAbersCalibrator(Passed(), cv="prefit")
        .fit(s[:, None], y)
        .predict_proba(test[:, None])[:, 1]
    )


PROBCAL = (
    "Platt",
    "Beta",
    "Temperature",
    "Isotonic",
    "CenteredIsotonic",
    "VennAbers",
    "CrossVennAbers",
    "ENIR",
    "BBQ",
    "HistogramBinning",
    "ScalingBinning",
    "Spline",
)
SCIKIT_LEARN = ("sigmoid", "isotonic", "temperature")
BY_DECISIONS = {f"scikit-learn {name}": scikit_learn(name, Decides) for name in SCIKIT_LEARN}
"""Those that take decision values, where a model has them."""
PEERS: dict[str, Method] = {
    **{f"scikit-learn {name}": scikit_learn(name) for name in SCIKIT_LEARN},
    **{f"probcal {name}": probcal(name) for name in PROBCAL},
    "venn-abers": venn_abers,
    "betacal": betacal,
    "MAPIE top label": mapie_top_label,
    "MAPIE Venn-Abers": mapie_venn_abers,
}
SLOW = ("probcal Spline", "probcal ENIR")
SLOW_ROWS = 1_000
"""Methods that are left out where there are more rows to calibrate."""
OURS: dict[str, Callable[[], Any]] = {
    "calibrant": (
        calibrant.Calibrator
    ),  # the default of `CalibratedClassifier` and of `calibrant fit`
    "calibrant binning": calibrant.BinningCalibrator,
}


def as_probability(rows: Scored) -> np.ndarray:
    """The scores; squashed into (0, 1) where they are no probabilities, for peers that take nothing
    else.
    """
    known = rows.scores[: rows.n]
    return (
        rows.scores
        if rows.is_probability
        else 1 / (1 + np.exp((known.mean() - rows.scores) / known.std()))
    )


def decision_values(rows: Scored, model: str) -> np.ndarray | None:
    """The decision values of a model that has them, as scikit-learn's calibrators would take them.

    Those of a logistic regression are the log odds of its probabilities.
    """
    if not rows.is_probability:
        return rows.scores
    if model == "logistic":
        smallest = np.finfo(float).eps
        return logit(np.clip(rows.scores, smallest, 1 - smallest))
    return None


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


def peer(method: str, rows: Scored, model: str) -> dict[str, float]:
    """The figures of the raw score or of a peer on the test rows; nothing if the peer fails."""
    n = rows.n
    scores = as_probability(rows)
    if method == "raw score":
        return measure(scores[n:], rows.y[n:])
    run = PEERS[method]
    decisions = decision_values(rows, model) if method in BY_DECISIONS else None
    if decisions is not None:
        scores = decisions
        run = BY_DECISIONS[method]
    try:
        return measure(run(scores[:n], rows.y[:n], scores[n:]), rows.y[n:])
    except Exception:  # whatever a peer raises, it is counted as a failure and told on the page
        return {}
