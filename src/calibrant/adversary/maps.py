"""Any object that learns from scores and labels and predicts: fresh copies of it, and whether it has learned."""

from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.base import clone

from calibrant._typing import FloatArray
from calibrant.errors import InvalidTypeError


def is_fitted(calibrator: Any) -> bool:
    """Whether it has learned; refuses what has no `fit` and `predict`."""
    for method in ("fit", "predict"):
        if not callable(getattr(calibrator, method, None)):
            raise InvalidTypeError(f"calibrator must have fit and predict; got {type(calibrator).__name__}")
    return any(name.endswith("_") and not name.startswith("_") for name in vars(calibrator))


def fresh(calibrator: Any) -> Any:
    """An unfitted copy."""
    return clone(calibrator) if hasattr(calibrator, "get_params") else deepcopy(calibrator)


def predict(fitted: Any, scores: FloatArray) -> FloatArray:
    """What it predicts, as doubles."""
    return np.asarray(fitted.predict(scores), dtype=np.float64)
