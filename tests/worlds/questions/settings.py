"""What each parameter of each public estimator takes, at the values where rules change."""

import inspect
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

import calibrant
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.estimator import Estimator
from worlds.questions.base import QUESTIONS, Text

REQUIRED = {"estimator": LogisticRegression()}
TRIED = (
    *(-1, 0, 1, 2, 3, 10**9, 0.0, 1.0, 0.5, 1.5, -0.1, 1e-9, 1e9, np.inf, np.nan),
    *(None, True, False, "auto", "x", [0, 1], (0.0, 1.0), np.random.default_rng(0)),
)


def _estimators() -> dict[str, Any]:
    """Those of `calibrant` and its public modules, by name."""
    named = [getattr(calibrant, name) for name in dir(calibrant)]
    found = {}
    for module in (calibrant, *(one for one in named if isinstance(one, ModuleType))):
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.isclass(value) and issubclass(value, BaseEstimator | Estimator):
                found[name] = value
    return dict(sorted(found.items()))


def _verdict(estimator: Any, name: str, value: Any) -> str:
    """A letter: the value is taken, is of a wrong kind, or is a wrong one of this kind."""
    needed = {one: REQUIRED[one] for one in REQUIRED if one in estimator._get_param_names()}
    try:
        estimator(**needed | {name: value})._check_parameters()
    except InvalidTypeError:
        return "k"
    except InvalidValueError:
        return "w"
    return "t"


def _verdicts(estimator: Any) -> list[Text]:
    return [
        Text(f"{name} " + "".join(_verdict(estimator, name, value) for value in TRIED))
        for name in estimator._get_param_names()
    ]


for _name, _estimator in _estimators().items():
    if hasattr(_estimator, "_parameter_rules"):
        QUESTIONS[f"settings of {_name}"] = lambda one=_estimator: _verdicts(one)
