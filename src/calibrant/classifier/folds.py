"""Rows to train on and rows to calibrate on: a hold-out, or the parts of a cross-validation."""

from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from calibrant._typing import BoolArray, IndexArray, Keys
from calibrant.classifier.task import Task
from calibrant.errors import InvalidValueError
from calibrant.rows.draw import folds_of, position_keys, random_places

Fold = tuple[IndexArray, IndexArray]
"""Rows to train on, and rows to calibrate on."""


def held_out(task: Task, calibration_size: float) -> Fold:
    """Rows to train on and rows to calibrate on, whole groups where there are any; chosen without the labels.

    They are drawn at random, or the last ones. Rows of one moment stay together, and a group comes as late as its last
    row, so that more than the wanted number may be held out.
    """
    n_units, units = _units(task)
    share = isinstance(calibration_size, float | np.floating)
    size = max(1, round(calibration_size * n_units)) if share else int(calibration_size)
    if size >= n_units:
        advice = f"use more {units}, or a fitted model in a FrozenEstimator"
        got = f"{size} of n_{'samples' if task.groups is None else units}={n_units}"
        raise InvalidValueError("calibration_size", "leave rows to train on", got=got, advice=advice)
    if task.moments is None:
        place = _random_order(task)
        return np.flatnonzero(place >= size), np.flatnonzero(place < size)
    late = of_latest(task.moments, task.groups, size)
    if late.all():
        rule, got = "leave rows to train on, with all rows of one moment held out together", "no earlier moment"
        raise InvalidValueError("calibration_size", rule, got=got, advice="hold out fewer rows, or give finer times")
    return np.flatnonzero(~late), np.flatnonzero(late)


def of_latest(moments: IndexArray, groups: Keys | None, size: int) -> BoolArray:
    """Whether each row is one of the last ones, or its group one of the last groups."""
    if groups is None:
        return np.asarray(moments >= np.sort(moments)[-size])
    _, number = np.unique(groups, return_inverse=True)
    last = np.zeros(int(number.max()) + 1, dtype=np.intp)
    np.maximum.at(last, number, moments)
    return np.asarray(last >= np.sort(last)[-size])[number]


def _random_order(task: Task) -> IndexArray:
    """The place of each row, or of its group, in a random order that is drawn for these rows."""
    return random_places(_keys(task), task.source)


def _keys(task: Task) -> Keys:
    """The key of each row's group, or the position of each row."""
    return position_keys(0, len(task.labels)) if task.groups is None else task.groups


def _units(task: Task) -> tuple[int, str]:
    """How many rows there are, or groups."""
    return (len(task.labels), "rows") if task.groups is None else (np.unique(task.groups).size, "groups")


def parts(task: Task, cv: Any, calibration_size: float) -> list[Fold]:
    """Rows to train on and rows to calibrate on: a hold-out, or parts in which each row calibrates once at most."""
    if cv is None:
        return [held_out(task, calibration_size)]
    is_count = isinstance(cv, int | np.integer)
    if is_count:
        n_units, units = _units(task)
        if cv > n_units:
            rule = f"be at most the number of {units}"
            raise InvalidValueError("cv", rule, got=f"{cv} and {n_units} {units}")
        cv = folds_of(_keys(task), task.source, int(cv))
    splitter = check_cv(cv, task.labels, classifier=True)
    found = splitter.split(task.X, task.labels, task.groups)
    folds = [(np.asarray(training), np.asarray(rows)) for training, rows in found]
    if any(np.isin(rows, training).any() for training, rows in folds):
        raise InvalidValueError("cv", "keep training and calibration rows apart", got="rows in both")
    if task.groups is not None and any(np.isin(task.groups[a], task.groups[b]).any() for a, b in folds):
        rule, advice = "keep groups whole", "use GroupKFold(), or a number of parts"
        raise InvalidValueError("cv", rule, got="groups with rows to train on and to calibrate on", advice=advice)
    if np.bincount(np.concatenate([rows for _, rows in folds])).max() > 1:
        raise InvalidValueError("cv", "let each row calibrate once at most", got="rows in several parts")
    return folds
