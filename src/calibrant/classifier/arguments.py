"""Check the arguments of the classifier's `fit`, and decide which of them go where."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import indexable

from calibrant._typing import ArrayLike, FeatureRows, IndexArray, Seed
from calibrant.classifier.task import (
    Task,
    check_weights,
    class_labels,
    sums_of_features,
    without_weightless,
)
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.arrays import as_frequencies
from calibrant.params.random import RandomSource, RowSums
from calibrant.sample.groups import Groups
from calibrant.sample.time_order import read_times
from calibrant.text.sentences import shown

Routed: TypeAlias = Callable[[dict[str, Any]], tuple[dict[str, Any], dict[str, Any]]]
"""Split further arguments of `fit` into those for the model's `fit` and those for the calibrator's."""


@dataclass(frozen=True, slots=True, eq=False)
class FitSettings:
    """What the classifier's parameters say about the arguments of `fit`.

    Attributes
    ----------
    estimator : object or None
        An already fitted model, or None.
    calibrator : calibrator
        The calibrator that receives arguments.
    calibrator_takes : set of str
        The arguments of its `fit`.
    last : bool
        Whether the last rows are held out.
    several : bool
        Whether there may be more than two classes.
    pos_label : object
        The positive class, or None for the second of the sorted classes.
    random_state : Seed
        Seed of all random draws.
    """

    estimator: Any
    calibrator: Any
    calibrator_takes: set[str]
    last: bool
    several: bool
    pos_label: Hashable
    random_state: Seed


def read_task(
    X: FeatureRows, y: ArrayLike, params: dict[str, Any], settings: FitSettings, routed: Routed
) -> Task:
    """Check the arguments of `fit`; leave out rows of weight zero."""
    if y is None:
        raise InvalidValueError(
            None, "this CalibratedClassifier requires y to be passed, but the target y is None"
        )
    X, given = indexable(X, y)
    check_weights(params.get("sample_weight"), len(given))
    X, given, params = without_weightless(X, given, params)
    labels = class_labels(given, several=settings.several)
    weight = params.pop("calibration_weight", None)
    groups = params.pop("groups", None)
    time = params.pop("time", None)
    to_model, to_calibrator = routed(params)
    if settings.estimator is not None and to_model:
        raise InvalidTypeError(
            ", ".join(to_model), "be left out for a frozen estimator, which is not fitted again"
        )
    if groups is not None and "groups" in settings.calibrator_takes:
        to_calibrator["groups"] = groups
    if (
        "attributes" in settings.calibrator_takes
        and "attributes" not in to_calibrator
        and hasattr(X, "columns")
    ):
        to_calibrator["attributes"] = X
    if weight is not None:
        to_calibrator["sample_weight"] = _calibration_weight(weight, len(labels), settings)
    classes = _classes(labels, settings.estimator, settings.several)
    codes = np.searchsorted(classes, labels) if classes.size > 2 else labels == classes[1]
    drawn = settings.estimator is None or classes.size > 2
    sums = sums_of_features(X, codes) if drawn else RowSums()
    return Task(
        X,
        labels,
        classes,
        to_model,
        to_calibrator,
        groups=None if groups is None else Groups.of(groups, len(labels)).row_keys,
        moments=_moments(time, len(labels)) if settings.last else None,
        source=RandomSource.of(settings.random_state, "hold-out and folds", rows=sums.fingerprint),
        over_seed=drawn and sums.has_few_values,
        positive=_positive(classes, settings.pos_label),
    )


def _positive(classes: NDArray[Any], pos_label: Hashable) -> Any:
    """The positive class; None if there are more than two classes."""
    if classes.size > 2:
        if pos_label is not None:
            rule = "be None for more than two classes, each of which is calibrated"
            raise InvalidValueError("pos_label", rule, got=shown(pos_label))
        return None
    if pos_label is None:
        return classes[1]
    known = classes.tolist()
    if pos_label not in known:
        raise InvalidValueError("pos_label", f"be one of the classes {known}", got=shown(pos_label))
    return classes[known.index(pos_label)]


def _moments(time: ArrayLike | None, n_rows: int) -> IndexArray:
    """The rank of each row's time."""
    return (
        np.arange(n_rows)
        if time is None
        else np.unique(read_times(time, n_rows), return_inverse=True)[1]
    )


def _calibration_weight(weight: ArrayLike, n_rows: int, settings: FitSettings) -> ArrayLike:
    if "sample_weight" not in settings.calibrator_takes:
        rule = "be None for a calibrator whose fit takes no sample_weight"
        raise InvalidTypeError("calibration_weight", rule, got=shown(settings.calibrator))
    return as_frequencies(weight, n_rows, "calibration_weight")


def _classes(labels: NDArray[Any], frozen: Any, several: bool) -> NDArray[Any]:
    """The classes, sorted; those of an already fitted model if it knows them."""
    seen = np.unique(labels)
    known = np.asarray(getattr(frozen, "classes_", seen))
    if (known.size == 2 or (several and known.size > 2)) and np.isin(seen, known).all():
        return known
    if frozen is not None:
        rule = f"have the classes of the frozen estimator, {known.tolist()}"
        raise InvalidValueError("y", rule, got=f"{seen.tolist()}")
    advice = "add rows of the other class, without which no classifier can be fitted"
    raise InvalidValueError(
        "y", "have two classes", got=f"one class only, {seen.tolist()}", advice=advice
    )
