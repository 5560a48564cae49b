"""Rows to train on and rows to calibrate on: a hold-out, or the parts of a cross-validation."""

from typing import Any

import numpy as np
from sklearn.model_selection import KFold, check_cv

from calibrant._typing import IndexArray
from calibrant.classifier.task import Task
from calibrant.errors import InvalidValueError

Fold = tuple[IndexArray, IndexArray]
"""Rows to train on, and rows to calibrate on."""


def held_out(task: Task, calibration_size: float) -> Fold:
    """Rows to train on and rows to calibrate on, drawn without the labels."""
    n_rows = len(task.labels)
    size = max(1, round(calibration_size * n_rows)) if is_share(calibration_size) else int(calibration_size)
    if size >= n_rows:
        advice = "use more rows, or a fitted model in a FrozenEstimator"
        got = f"{size} of n_samples={n_rows}"
        raise InvalidValueError("calibration_size", "leave rows to train on", got=got, advice=advice)
    order = task.generator.permutation(n_rows)
    return np.sort(order[size:]), np.sort(order[:size])


def is_share(size: float) -> bool:
    """Whether a size is a share of the rows, not a number of them."""
    return isinstance(size, float | np.floating)


def is_count(cv: Any) -> bool:
    """Whether `cv` is a number of parts."""
    return isinstance(cv, int | np.integer)


def parts(task: Task, cv: Any) -> list[Fold]:
    """Rows to train on and rows to calibrate on; each row calibrates once at most."""
    if is_count(cv):
        cv = KFold(int(cv), shuffle=True, random_state=int(task.generator.integers(2**31)))
    splitter = check_cv(cv, task.labels, classifier=True)
    found = splitter.split(task.X, task.labels, task.groups)
    folds = [(np.asarray(training), np.asarray(rows)) for training, rows in found]
    if any(np.isin(rows, training).any() for training, rows in folds):
        raise InvalidValueError("cv", "keep training and calibration rows apart", got="rows in both")
    if np.bincount(np.concatenate([rows for _, rows in folds])).max() > 1:
        raise InvalidValueError("cv", "let each row calibrate once at most", got="rows in several parts")
    return folds
