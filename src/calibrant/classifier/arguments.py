"""Check the arguments of the classifier's `fit`, and decide which of them go where."""

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import indexable

from calibrant._typing import ArrayLike, FeatureRows, IndexArray
from calibrant.classifier.parameters import ClassifierParameters
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


def read_task(
    X: FeatureRows, y: ArrayLike, params: dict[str, Any], classifier: ClassifierParameters
) -> Task:
    """Check the arguments of `fit`; leave out rows of weight zero."""
    frozen = classifier.estimator if classifier._is_frozen() else None
    several = classifier.calibrator is None
    calibrator_takes = classifier._fit_arguments()
    if y is None:
        raise InvalidValueError(
            None, "this CalibratedClassifier requires y to be passed, but the target y is None"
        )
    X, given = indexable(X, y)
    check_weights(params.get("sample_weight"), len(given))
    X, given, params = without_weightless(X, given, params)
    labels = class_labels(given, several=several)
    weight = params.pop("calibration_weight", None)
    groups = params.pop("groups", None)
    time = params.pop("time", None)
    to_model, to_calibrator = classifier._routed(params)
    if frozen is not None and to_model:
        raise InvalidTypeError(
            ", ".join(to_model), "be left out for a frozen estimator, which is not fitted again"
        )
    if groups is not None and "groups" in calibrator_takes:
        to_calibrator["groups"] = groups
    if (
        "attributes" in calibrator_takes
        and "attributes" not in to_calibrator
        and hasattr(X, "columns")
    ):
        to_calibrator["attributes"] = X
    if weight is not None:
        to_calibrator["sample_weight"] = _calibration_weight(weight, len(labels), classifier)
    classes = _classes(labels, frozen, several)
    codes = np.searchsorted(classes, labels) if classes.size > 2 else labels == classes[1]
    drawn = frozen is None or classes.size > 2
    sums = sums_of_features(X, codes) if drawn else RowSums()
    return Task(
        X,
        labels,
        classes,
        to_model,
        to_calibrator,
        groups=None if groups is None else Groups.of(groups, len(labels)).row_keys,
        moments=_moments(time, len(labels)) if classifier.holdout == "last" else None,
        source=RandomSource.of(
            classifier.random_state, "hold-out and folds", rows=sums.fingerprint
        ),
        over_seed=drawn and sums.has_few_values,
        positive=_positive(classes, classifier.pos_label),
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


def _calibration_weight(
    weight: ArrayLike, n_rows: int, classifier: ClassifierParameters
) -> ArrayLike:
    if "sample_weight" not in classifier._fit_arguments():
        rule = "be None for a calibrator whose fit takes no sample_weight"
        raise InvalidTypeError("calibration_weight", rule, got=shown(classifier._calibrator()))
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
