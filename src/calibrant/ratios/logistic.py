"""The ratio from a classifier that tells the two populations apart."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from calibrant._params import Having, Optional, Rules
from calibrant._typing import ArrayLike, FloatArray
from calibrant.errors import InvalidValueError
from calibrant.ratios.base import (
    DensityRatio,
    RatioDiagnostics,
    as_matrix,
    check_same_columns,
    check_same_names,
    row_count,
    share_outside,
)


@dataclass(eq=False, repr=False)
class LogisticRatio(DensityRatio):
    """Density ratio from any probabilistic classifier trained to tell target rows from source rows.

    Claimed: if the classifier's probabilities tend to the true ones, the weights tend to the true ratio. A logistic
    regression is right when the logarithm of the ratio is linear in the features, as for two normal populations with
    one covariance. A classifier that can separate the rows it was trained on, such as a deep forest, gives useless
    weights.

    Parameters
    ----------
    classifier : classifier with predict_proba, default=None
        None is a logistic regression on standardized columns. A pipeline may take any columns, text too.

    Attributes
    ----------
    classifier_ : classifier
        The fitted classifier; its class 1 is the target population.
    diagnostics_ : RatioDiagnostics
        What to look at before trusting the weights.

    Notes
    -----
    w(x) = (n_source / n_target) p(x) / (1 - p(x)), p the probability that x is a target row. p is kept away from 1 by
    half a row, 1 / (2 n_source + 2 n_target), so that weights stay finite.

    References
    ----------
    Bickel, Brueckner & Scheffer (2007), "Discriminative learning for differing training and test distributions", ICML.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> ratio = LogisticRatio().fit(rng.normal(size=(4000, 1)), rng.normal(0.5, 1, size=(4000, 1)))
    >>> ratio.predict([[0.25], [1.25]]).round(1)  # the truth is exp(x / 2 - 1 / 8)
    array([1. , 1.7])
    """

    _parameter_rules: ClassVar[Rules] = {
        "classifier": Optional(
            Having(("fit", "predict_proba"), "a classifier with predict_proba, such as LogisticRegression()")
        )
    }

    classifier: Any = None

    def _fit(self, source: FloatArray, target: FloatArray) -> None:
        raise NotImplementedError  # `fit` hands rows to the classifier as they are

    def fit(self, X_source: ArrayLike, X_target: ArrayLike) -> Self:
        """Learn the ratio from unlabelled rows of both populations; frames are handed on as they are."""
        self._check_parameters()
        n_source, n_target = row_count(X_source), row_count(X_target)
        for name, number in (("X_source", n_source), ("X_target", n_target)):
            if number < 2:
                raise InvalidValueError(name, "have at least 2 rows", got=str(number))
        rows = _stacked(X_source, X_target)
        classifier = _default_classifier() if self.classifier is None else clone(self.classifier)
        self.classifier_ = classifier.fit(rows, np.repeat([0, 1], [n_source, n_target]))
        self._odds, self._cap = n_source / n_target, 1.0 - 0.5 / (n_source + n_target)
        self.n_features_in_ = int(rows.shape[1])
        weights = self.predict(X_source)
        numeric = _both_numeric(X_source, X_target)
        outside = 0.0 if numeric is None else share_outside(*numeric)
        self._conclude(RatioDiagnostics.of(weights, n_target, outside))
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """Return the weight of each row, shape (n,)."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        return self._weigh(X)

    def _weigh(self, rows: Any) -> FloatArray:
        if not row_count(rows):
            return np.empty(0)
        columns = list(self.classifier_.classes_)
        p = np.minimum(self.classifier_.predict_proba(rows)[:, columns.index(1)], self._cap)
        weights: FloatArray = self._odds * p / (1.0 - p)
        return weights


def _default_classifier() -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def _stacked(X_source: Any, X_target: Any) -> Any:
    """All rows of both, in a frame where both are pandas frames, in a matrix otherwise."""
    if hasattr(X_source, "iloc") and hasattr(X_target, "iloc"):
        import pandas as pd

        check_same_names(X_source, X_target)
        return pd.concat([X_source, X_target], ignore_index=True)
    source, target = as_matrix(X_source, "X_source", least=2), as_matrix(X_target, "X_target", least=2)
    check_same_columns(source, target)
    return np.concatenate([source, target])


def _both_numeric(X_source: Any, X_target: Any) -> tuple[FloatArray, FloatArray] | None:
    try:
        return as_matrix(X_source, "X_source", least=2), as_matrix(X_target, "X_target", least=2)
    except (TypeError, ValueError):
        return None
