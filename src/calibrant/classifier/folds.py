"""Rows to train on and rows to calibrate on: a hold-out, or cross-validation folds."""

from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from calibrant._typing import BoolArray, IndexArray, Keys
from calibrant.classifier.task import Task
from calibrant.errors import InvalidValueError
from calibrant.params.arrays import select_rows
from calibrant.params.random import folds_of, random_places
from calibrant.sample.row_keys import position_keys
from calibrant.text.numbers import counted

_N_MODELS = 5
_FEWEST = 100  # rows, or groups, held out if there are enough
_OF_RARER_CLASS = 20  # rows of the rarer class expected among them

Fold = tuple[IndexArray, IndexArray]
"""Rows to train on, and rows to calibrate on."""


def held_out(task: Task, calibration_size: float | str) -> Fold:
    """Rows to train on and rows to calibrate on; whole groups, if there are any.

    They are chosen without looking at their labels.

    They are drawn at random, or are the last ones. Rows with the same time stay together, and a
    group is dated by its last row, so more rows than requested may be held out.
    """
    n_units, units = units_of(task)
    if isinstance(calibration_size, str):
        size = automatic_size(task)
    elif isinstance(calibration_size, float | np.floating):
        size = max(1, round(calibration_size * n_units))
    else:
        size = int(calibration_size)
    if size >= n_units:
        advice = f"use more {units}, or a fitted model in a FrozenEstimator"
        got = f"{size} of n_{'samples' if task.groups is None else units}={n_units}"
        raise InvalidValueError(
            "calibration_size", "leave rows to train on", got=got, advice=advice
        )
    held = _drawn_or_last(task, size)
    if held.all():  # never if they are drawn
        rule = "leave rows to train on; rows with the same time are held out together"
        got = "no earlier moment"
        raise InvalidValueError(
            "calibration_size", rule, got=got, advice="hold out fewer rows, or give finer times"
        )
    return np.flatnonzero(~held), np.flatnonzero(held)


def automatic_size(task: Task) -> int:
    """How many rows or groups to hold out to bound the errors of several models: a tenth, at least
    100, but at most a quarter.

    More are held out if one class is rare, so that about 20 of its rows are expected among them.
    The class share is estimated from the half of the rows that is certain to be used for training,
    so the size depends on no label of a row that may be held out.
    """
    n_units, _ = units_of(task)
    half = n_units // 2
    trains = np.flatnonzero(~_drawn_or_last(task, max(half, 1)))
    rarer = int(task.class_counts(trains).min())
    per_unit = (rarer + 0.5) / (n_units - half + 1.0)
    wanted = max(n_units / 10, _FEWEST, _OF_RARER_CLASS / per_unit)
    return max(1, int(min(n_units / 4, wanted)))


def folds_within(
    task: Task, training: IndexArray, cv: Any, automatic: int = _N_MODELS
) -> list[Fold]:
    """Folds of the training rows; a model is trained on all rows outside its fold.

    Nothing is guaranteed with them, so labels may balance them. "auto" makes the `automatic` number,
    or as many as there are groups.
    """
    if isinstance(cv, str):
        cv = automatic
        if task.groups is not None:
            cv = min(cv, max(2, np.unique(task.groups[training]).size))
    if isinstance(cv, int | np.integer):
        return _balanced(task, training, int(cv))
    groups = None if task.groups is None else task.groups[training]
    found = cv.split(select_rows(task.X, training), task.labels[training], groups)
    folds = [(training[fit], training[others]) for fit, others in found]
    _check_folds(task, folds)
    return folds


def divided(task: Task, rows: IndexArray) -> Fold:
    """Two halves of some rows, in whole groups if there are any: random halves, or earlier and
    later rows.
    """
    groups = None if task.groups is None else task.groups[rows]
    if task.moments is not None:
        n_units = rows.size if groups is None else np.unique(groups).size
        late = of_latest(task.moments[rows], groups, max(1, n_units // 2))
        return rows[~late], rows[late]
    place = random_places(_keys(task)[rows], task.source.for_purpose("curves or proof"))
    return rows[place % 2 == 0], rows[place % 2 == 1]


def _balanced(task: Task, training: IndexArray, n_folds: int) -> list[Fold]:
    """Folds with about equal numbers of rows of each class; in whole groups, if there are any."""
    keys = _keys(task)[training]
    source = task.source.for_purpose("folds")
    counts = task.class_counts(training)
    fewest = int(counts.min())
    if fewest < 2:
        advice = "add rows of the rarer class"
        raise InvalidValueError(
            "y", "have two training rows of each class", got=f"{fewest} of one class", advice=advice
        )
    if task.groups is not None:
        n_groups = np.unique(keys).size
        if n_folds > n_groups:
            rule = "be at most the number of training groups"
            advice = "use more groups" if n_groups < 2 else f"use cv={n_groups}, or more groups"
            got = f"{n_folds} and {counted(n_groups, 'group')}"
            raise InvalidValueError("cv", rule, got=got, advice=advice)
        fold = random_places(keys, source) % n_folds
    else:
        # with two classes, each fold has rows of both; with more, no fold is empty
        n_folds = min(n_folds, fewest if task.classes.size == 2 else int(counts.max()))
        fold = np.empty(training.size, dtype=np.intp)
        labels = task.labels[training]
        for label in task.ordered_classes[::-1]:
            own = labels == label
            fold[own] = random_places(keys[own], source) % n_folds
    return [(training[fold != one], training[fold == one]) for one in range(n_folds)]


def of_latest(moments: IndexArray, groups: Keys | None, size: int) -> BoolArray:
    """Whether each row is one of the last ones, or its group one of the last groups."""
    if groups is None:
        return np.asarray(moments >= np.sort(moments)[-size])
    _, number = np.unique(groups, return_inverse=True)
    last = np.zeros(int(number.max()) + 1, dtype=np.intp)
    np.maximum.at(last, number, moments)
    return np.asarray(last >= np.sort(last)[-size])[number]


def _drawn_or_last(task: Task, size: int) -> BoolArray:
    """Whether each row is one of `size` rows drawn at random, or of the last ones, or its group one
    of these groups.
    """
    if task.moments is None:
        return np.asarray(random_places(_keys(task), task.source) < size)
    return of_latest(task.moments, task.groups, size)


def _keys(task: Task) -> Keys:
    """The key of each row's group, or the position of each row."""
    return position_keys(0, len(task.labels)) if task.groups is None else task.groups


def units_of(task: Task) -> tuple[int, str]:
    """The number of rows, or of groups if there are any, and the word for them."""
    return (
        (len(task.labels), "rows")
        if task.groups is None
        else (np.unique(task.groups).size, "groups")
    )


def parts(task: Task, cv: Any, calibration_size: float | str) -> list[Fold]:
    """Rows to train on and rows to calibrate on: a hold-out, or folds in which each row calibrates
    at most once.
    """
    if cv is None:
        return [held_out(task, calibration_size)]
    is_count = isinstance(cv, int | np.integer)
    if is_count:
        n_units, units = units_of(task)
        if cv > n_units:
            rule = f"be at most the number of {units}"
            raise InvalidValueError("cv", rule, got=f"{cv} and {n_units} {units}")
        cv = folds_of(_keys(task), task.source, int(cv))
    splitter = check_cv(cv, task.labels, classifier=True)
    found = splitter.split(task.X, task.labels, task.groups)
    folds = [(np.asarray(training), np.asarray(rows)) for training, rows in found]
    _check_folds(task, folds)
    return folds


def _check_folds(task: Task, folds: list[Fold]) -> None:
    """Raise an error if a row is both trained on and scored in a fold, or a group is split."""
    if any(np.isin(rows, training).any() for training, rows in folds):
        raise InvalidValueError(
            "cv", "keep training and calibration rows apart", got="rows in both"
        )
    if task.groups is not None and any(
        np.isin(task.groups[a], task.groups[b]).any() for a, b in folds
    ):
        rule = "keep groups whole"
        advice = "use GroupKFold(), or a number of parts"
        raise InvalidValueError(
            "cv", rule, got="groups with both training and calibration rows", advice=advice
        )
    if np.bincount(np.concatenate([rows for _, rows in folds])).max() > 1:
        rule = "use each row for calibration at most once"
        advice = "use KFold(), StratifiedKFold() or a number of parts"
        raise InvalidValueError("cv", rule, got="rows in several parts", advice=advice)
