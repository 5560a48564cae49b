"""The ratio from a classifier that separates the two populations."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant._optional import pandas
from calibrant._typing import ArrayLike, FeatureRows, FloatArray, Predictor
from calibrant.errors import InvalidValueError
from calibrant.params.estimator import check_is_fitted
from calibrant.params.rules import Having, Optional, RuleTable
from calibrant.shift.ratios.density_ratio import (
    DensityRatio,
    RatioDiagnostics,
    as_matrix,
    row_count,
    share_outside,
)


@dataclass(eq=False, repr=False)
class LogisticRatio(DensityRatio):
    """Density ratio from any probabilistic classifier trained to separate target rows from source
    rows.

    Guarantee: if the classifier's probabilities tend to the true ones, the weights tend to the true
    ratio. A logistic regression is right if the logarithm of the ratio is linear in the features,
    as for two normal populations with the same covariance. A classifier that can separate the rows
    it was trained on, such as a deep forest, gives useless weights.

    Parameters
    ----------
    classifier : classifier with predict_proba, default=None
        None means a logistic regression on standardized columns. A pipeline may take any columns,
        including text.

    Attributes
    ----------
    classifier_ : classifier
        The fitted classifier; its class 1 is the target population.
    diagnostics_ : RatioDiagnostics
        What to look at before trusting the weights.

    Notes
    -----
    w(x) = (n_source / n_target) p(x) / (1 - p(x)), where p is the probability that x is a target
    row. p is kept away from 1 by half a row, 1 / (2 n_source + 2 n_target), so that weights stay
    finite.

    References
    ----------
    Bickel, Brueckner & Scheffer (2007), "Discriminative learning for differing training and test
    distributions", ICML.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> ratio = LogisticRatio().fit(rng.normal(size=(4000, 1)), rng.normal(0.5, 1, size=(4000, 1)))
    >>> ratio.predict([[0.25], [1.25]]).round(1)  # the truth is exp(x / 2 - 1 / 8)
    array([1. , 1.7])
    """

    _rules: ClassVar[RuleTable] = {
        "classifier": Optional(
            Having(
                ("fit", "predict_proba"),
                "a classifier with predict_proba, such as LogisticRegression()",
            )
        ),
    }

    classifier: Predictor | None = None

    def _rows(self, X: Any, name: str) -> Any:
        """Pass frames on unchanged."""
        if not hasattr(X, "iloc"):
            return super()._rows(X, name)
        if len(X) < 2:
            raise InvalidValueError(name, "have at least 2 rows", got=str(len(X)))
        return X

    def _fit(self, source: Any, target: Any) -> None:
        n_source = len(source)
        n_target = len(target)
        if hasattr(source, "iloc") and hasattr(target, "iloc"):
            rows = pandas().concat([source, target], ignore_index=True)
        else:
            rows = np.concatenate(_matrices(source, target))
        from sklearn.base import clone

        classifier = _default_classifier() if self.classifier is None else clone(self.classifier)
        self.classifier_ = classifier.fit(rows, np.repeat([0, 1], [n_source, n_target]))
        self._odds = n_source / n_target
        self._cap = 1.0 - 0.5 / (n_source + n_target)

    def _diagnose(self, source: Any, target: Any) -> None:
        outside = 0.0
        with suppress(TypeError, ValueError):  # support is measured only for numbers
            outside = share_outside(*_matrices(source, target))
        self._conclude(RatioDiagnostics.of(self.predict(source), len(target), outside))

    def predict(self, X: ArrayLike | FeatureRows) -> FloatArray:
        """Return the weight of each row, shape (n,)."""
        check_is_fitted(self)
        return self._weigh(X)

    def _weigh(self, rows: Any) -> FloatArray:
        if not row_count(rows):
            return np.empty(0)
        columns = list(self.classifier_.classes_)
        p = np.minimum(self.classifier_.predict_proba(rows)[:, columns.index(1)], self._cap)
        return np.asarray(self._odds * p / (1.0 - p))


def _default_classifier() -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def _matrices(source: Any, target: Any) -> tuple[FloatArray, FloatArray]:
    return as_matrix(source, "X_source", least=2), as_matrix(target, "X_target", least=2)
