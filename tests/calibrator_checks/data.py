"""The data that estimators are fitted to, and what of their answers is compared."""

from functools import cache
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from calibrant import (
    CalibratedClassifier,
    Calibrator,
    ClassWiseCalibrator,
    LabelShiftCalibrator,
    ShiftCalibrator,
    TopLabelCalibrator,
)
from calibrant.calibrators.regions.region_calibrator import RegionCalibrator
from calibrant.ratios import DensityRatio

LIMIT_ACCURACY = 1e-9  # what the package guarantees of its limits
N_ROWS = 300


class GivenScores(ClassifierMixin, BaseEstimator):
    """A classifier whose first column is its score.

    No solver and no matrix product has a say in its last bit.

    With it, bit equality is asked of calibrant alone: the scores of a logistic regression may
    differ in the last bit between one row and many, as the processor's kernels please.
    """

    def fit(self, X: Any, y: Any) -> "GivenScores":
        validate_data(self, X, reset=True)
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        scores = np.clip(validate_data(self, X, reset=False)[:, 0], 0.0, 1.0)
        return np.column_stack([1.0 - scores, scores])

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(np.int64)]


def make_data(n_rows: int = N_ROWS, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores with some ties, and labels that follow them.

    Many more rows than any calibrator here has bins.
    """
    scores, y = _made(n_rows, seed)
    return scores.copy(), y.copy()


@cache
def _made(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    scores = generator.beta(0.8, 0.8, size=n_rows)
    scores[::7] = np.round(scores[::7], 1)
    return scores, (generator.uniform(size=n_rows) < scores).astype(np.int64)


def data_for(
    estimator: Any, n_rows: int = N_ROWS, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """What `fit` takes: two arrays, and by name what else this estimator needs."""
    scores, y = make_data(n_rows, seed)
    generator = np.random.default_rng(seed + 100)
    if isinstance(estimator, ShiftCalibrator):
        bound = {"weight_bound": 2.0} if estimator.interval == "betting" else {}
        return scores, y, {"importance_weight": 2.0 * scores, **bound}
    if isinstance(estimator, LabelShiftCalibrator):
        return scores, y, _shift_of(estimator, n_rows, seed)
    if isinstance(estimator, TopLabelCalibrator | ClassWiseCalibrator):
        columns = generator.dirichlet([1.0, 1.0, 1.0], size=n_rows)
        return (
            columns,
            (generator.uniform(size=(n_rows, 1)) > columns.cumsum(axis=1)[:, :2]).sum(axis=1),
            {},
        )
    if isinstance(estimator, CalibratedClassifier):
        return np.column_stack([scores, generator.normal(size=n_rows)]), y, {}
    if isinstance(estimator, DensityRatio):
        return generator.normal(size=(n_rows, 2)), generator.normal(0.3, size=(n_rows // 2, 2)), {}
    return scores, y, {}


def _shift_of(estimator: LabelShiftCalibrator, n_rows: int, seed: int) -> dict[str, Any]:
    """What is known of the priors: nothing with five bins, both where bins have equal width."""
    if estimator.n_bins == 5:
        return {"target_scores": make_data(n_rows, seed + 50)[0]}
    if estimator.partition == "uniform":
        return {"target_prior": 0.4, "source_prior": 0.5}
    return {"target_prior": 0.4}


def probe(calibrator: Any) -> np.ndarray:
    """Rows to predict for: for scores calibration scores, edges if there are any, their neighbours,
    and others.
    """
    if (rows := data_for(calibrator)[0]).ndim == 2:
        return rows
    edges = np.asarray(
        getattr(getattr(calibrator, "partition_", None), "edges", []), dtype=np.float64
    )
    around = np.concatenate([np.nextafter(edges, -np.inf), edges, np.nextafter(edges, np.inf)])
    return np.clip(np.concatenate([make_data()[0], np.linspace(0, 1, 101), around]), 0.0, 1.0)


def answers(calibrator: Any, scores: Any = None) -> dict[str, np.ndarray]:
    """Everything that a fitted calibrator answers."""
    scores = probe(calibrator) if scores is None else scores
    return {name: getattr(calibrator, name)(scores) for name in predictions(calibrator)}


def predictions(calibrator: Any) -> list[str]:
    """The names of its methods that predict."""
    return [
        name
        for name in dir(type(calibrator))
        if name.startswith("predict") and hasattr(calibrator, name)
    ]


def rate_interval(calibrator: Any, scores: Any) -> np.ndarray:
    """Limits of the rate of each score's region.

    `predict_interval` moves them where predictions vary in a region.
    """
    limits = calibrator.predict_interval(scores)
    if not isinstance(calibrator, RegionCalibrator):
        return limits
    of_rates = calibrator.predict_rate_interval(scores)
    if not isinstance(calibrator, Calibrator):
        np.testing.assert_array_equal(of_rates, limits)
    return of_rates


def assert_same(left: dict[str, np.ndarray], right: dict[str, np.ndarray]) -> None:
    """Same answers, to the last bit."""
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)


def fit(model: Any, n_rows: int = N_ROWS, seed: int = 0) -> Any:
    """Fit to the data made for it."""
    rows, y, options = data_for(model, n_rows, seed)
    return model.fit(rows, y, **options)


def fitted(calibrator: Any, scores: Any = None, y: Any = None, **options: Any) -> Any:
    if scores is None and y is None and not options:
        return fit(clone(calibrator))
    default_scores, default_y = make_data()
    return clone(calibrator).fit(
        default_scores if scores is None else scores, default_y if y is None else y, **options
    )


def expected(calibrator: Any) -> dict[str, np.ndarray]:
    """What it answers when fitted to the data made for it.

    Fitted once for all checks that compare with it.
    """
    if id(calibrator) not in _EXPECTED:
        _EXPECTED[id(calibrator)] = answers(ready(calibrator))
    return _EXPECTED[id(calibrator)]


def ready(calibrator: Any) -> Any:
    """Fitted to the data made for it, once for all checks that only ask it."""
    if id(calibrator) not in _READY:
        _READY[id(calibrator)] = fitted(calibrator)
    return _READY[id(calibrator)]


# every calibrator of the lists lives as long as the tests
_EXPECTED: dict[int, dict[str, np.ndarray]] = {}
_READY: dict[int, Any] = {}


def assert_fits_same(calibrator: Any, *variants: tuple[Any, Any], **options: Any) -> None:
    """All variants of the data give one model."""
    models = [fitted(calibrator, scores, y, **options) for scores, y in variants]
    for model in models[1:]:
        assert_same(answers(models[0]), answers(model, probe(models[0])))
