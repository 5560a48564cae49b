"""Estimators with scikit-learn's conventions that do not import scikit-learn.

Importing scikit-learn takes a second and 130 MB, which a saved model that only predicts does not
need. Parameters are read here. Everything else that scikit-learn's `BaseEstimator` offers is asked
of scikit-learn when it is first used: tags, metadata routing, texts for a terminal or a notebook.
"""

from __future__ import annotations

from functools import cache
from inspect import signature
from typing import Any, ClassVar, Self

_ROUTED = ("fit", "partial_fit", "predict", "predict_proba", "score")
"""The methods whose further arguments a pipeline can pass on."""


class Estimator:
    """An estimator whose parameters are the arguments of its constructor."""

    _rows_argument: ClassVar[str] = "scores"
    """The argument of `fit` and `predict` that scikit-learn calls X, which is not metadata."""

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """The names of the parameters, sorted as scikit-learn does."""
        return sorted(signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; if `deep`, also those of parameters that are estimators."""
        parameters: dict[str, Any] = {}
        for name in self._get_param_names():
            value = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                parameters |= {f"{name}__{inner}": one for inner, one in value.get_params().items()}
            parameters[name] = value
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name, `<parameter>__<name>` for those of a parameter."""
        self._in_scikit_learn.set_params(**parameters)
        return self

    @property
    def _in_scikit_learn(self) -> Any:
        """Return this estimator as one of scikit-learn's own, which shares all its attributes."""
        kind: Any = type(self)
        counterpart = _counterpart(kind)
        own = counterpart.__new__(counterpart)
        own.__dict__ = self.__dict__
        return own

    def __repr__(self) -> str:
        return repr(self._in_scikit_learn)

    def _repr_mimebundle_(self, **settings: Any) -> Any:
        return self._in_scikit_learn._repr_mimebundle_(**settings)

    def __sklearn_tags__(self) -> Any:
        return self._in_scikit_learn.__sklearn_tags__()

    def get_metadata_routing(self) -> Any:
        """Return which arguments of its methods a pipeline passes on; see scikit-learn."""
        return self._in_scikit_learn.get_metadata_routing()

    def __getattr__(self, name: str) -> Any:
        """The methods `set_fit_request` and so on, which scikit-learn makes from signatures."""
        if not (name.startswith("set_") and name.endswith("_request")):
            # again, for its own error: that of a property before a fit is an AttributeError, too
            return object.__getattribute__(self, name)
        set_request = getattr(self._in_scikit_learn, name)

        def set_own_request(**requests: bool | str | None) -> Estimator:
            set_request(**requests)
            return self

        return set_own_request


@cache
def _counterpart(kind: type[Estimator]) -> Any:
    """A scikit-learn estimator class with the same parameters and the same signatures."""
    from sklearn.base import BaseEstimator
    from sklearn.utils.metadata_routing import UNUSED

    methods = {name: getattr(kind, name) for name in _ROUTED if hasattr(kind, name)}
    unrouted = {
        f"__metadata_request__{name}": {kind._rows_argument: UNUSED}
        for name, method in methods.items()
        if kind._rows_argument in signature(method).parameters
    }
    same = {"__init__": kind.__init__, "__module__": kind.__module__, "__doc__": kind.__doc__}
    return type(kind.__name__, (BaseEstimator,), same | methods | unrouted)


def check_is_fitted(estimator: Any) -> None:
    """Raise scikit-learn's error if an estimator of this package has learned nothing yet."""
    if hasattr(estimator, "__sklearn_is_fitted__"):
        fitted = estimator.__sklearn_is_fitted__()
    else:
        fitted = any(name.endswith("_") and not name.startswith("__") for name in vars(estimator))
    if not fitted:
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(
            f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' with"
            " appropriate arguments before using this estimator."
        )
