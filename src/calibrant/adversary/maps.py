"""What the adversary needs of a calibrator: an unfitted copy, its predictions, and whether it is fitted."""

from copy import deepcopy

import numpy as np
from sklearn.base import clone

from calibrant._typing import CodeArray, FloatArray, ScoreMap
from calibrant.errors import InvalidTypeError


def is_fitted(calibrator: ScoreMap) -> bool:
    """Whether it is fitted. Raises an error for an object without `fit` and `predict`."""
    if not all(callable(getattr(calibrator, method, None)) for method in ("fit", "predict")):
        raise InvalidTypeError("calibrator", "have fit and predict", got=type(calibrator).__name__)
    return any(name.endswith("_") and not name.startswith("_") for name in vars(calibrator))


def refitted(calibrator: ScoreMap, scores: FloatArray, y: CodeArray) -> ScoreMap:
    """A copy that is fitted on these rows."""
    copy = clone(calibrator) if hasattr(calibrator, "get_params") else deepcopy(calibrator)
    fitted: ScoreMap = copy.fit(scores, y)
    return fitted


def predict(fitted: ScoreMap, scores: FloatArray) -> FloatArray:
    """Its predictions, as doubles."""
    return np.asarray(fitted.predict(scores), dtype=np.float64)
