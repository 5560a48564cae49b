"""The parameters of `CalibratedClassifier`, their rules, and the kind of fit that they imply; and
which further arguments of `fit` go to the model, and which to the calibrator.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import KW_ONLY, dataclass
from inspect import signature
from typing import Any, ClassVar

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import (
    MetadataRequest,
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.validation import check_is_fitted

from calibrant._typing import ArrayLike, Predictor, ScoreMap, Seed, Splitter
from calibrant.calibrators.curve.estimator import Calibrator
from calibrant.classifier.responses import RESPONSE_METHODS
from calibrant.errors import InvalidTypeError, InvalidValueError, warn_caller
from calibrant.params.rules import (
    SIZE_OF_HOLD_OUT,
    CheckedParameters,
    Choice,
    Having,
    Integer,
    Only,
    Optional,
    RuleTable,
)
from calibrant.text.sentences import shown

_WEIGHT = "sample_weight"  # trains the model; `calibration_weight` calibrates it
_CV = (
    Integer(2)
    | Only("auto")
    | Having(("split",), "a splitter")
    | Having(("__iter__",), "a list of splits")
)

_CALIBRATOR = Having(
    ("predict_proba", "get_params"),
    "a calibrator of scores, such as IsotonicCalibrator(), PlattCalibrator() or BinningCalibrator()",
)


@dataclass(eq=False, repr=False)
class ClassifierParameters(CheckedParameters):
    """The parameters; `CalibratedClassifier` documents them."""

    _rules: ClassVar[RuleTable] = {
        "estimator": (
            Having(("fit",), "a classifier, such as LogisticRegression()")
            | Having(("predict",), "a fitted model with predict")
            | Having(("__call__",), "a function from rows to scores")
        ),
        "calibrator": Optional(_CALIBRATOR),
        "cv": Optional(_CV),
        "calibration_size": SIZE_OF_HOLD_OUT,
        "holdout": Choice(("random", "last")),
        "response_method": Choice(RESPONSE_METHODS),
    }

    estimator: Predictor | Callable[[Any], ArrayLike]
    calibrator: ScoreMap | None = None
    _: KW_ONLY
    cv: int | str | Splitter | Iterable[tuple[ArrayLike, ArrayLike]] | None = "auto"
    calibration_size: float | str = "auto"
    confidence_level: float = 0.9
    holdout: str = "random"
    response_method: str = "auto"
    pos_label: Hashable = None
    n_jobs: int | None = None
    random_state: Seed = 0

    def _check_parameters(self) -> None:
        if isinstance(self.estimator, type):
            name = self.estimator.__name__
            write = f"write {name}() in place of {name}"
            raise InvalidTypeError("estimator", "be an object", got="a class", advice=write)
        super()._check_parameters()
        parameters = self._calibrator().get_params(deep=False)
        if "classes" not in self._fit_arguments() or "pos_label" not in parameters:
            rule = "have the parameter pos_label, and a fit that takes classes"
            raise InvalidTypeError("calibrator", rule, shown(self.calibrator))
        if isinstance(self.estimator, FrozenEstimator):
            check_is_fitted(self.estimator)
        if isinstance(self.cv, str) and self.cv != "auto":
            advice = (
                "use FrozenEstimator(model), from sklearn.frozen" if self.cv == "prefit" else None
            )
            raise InvalidValueError("cv", f"be {_CV.words}", got=shown(self.cv), advice=advice)
        given = None if isinstance(self.cv, str) else self.cv
        divides = given is not None and not self._bags()
        if self.holdout == "last" and (self._is_frozen() or divides):
            rule = "be 'random' if no rows are held out"
            got = "a frozen estimator" if self._is_frozen() else f"cv={shown(self.cv)}"
            raise InvalidValueError(
                "holdout", rule, got=got, advice="pass the rows to calibrate on yourself"
            )
        if self._is_frozen() and given is not None:
            rule = "be None for a frozen estimator, which is not fitted again"
            raise InvalidValueError("cv", rule, got=shown(self.cv))
        if self.calibration_size == 0 and not self._bags():
            rule = "be more than 0 if one model is calibrated on held-out rows"
            advice = "leave it out" if self._is_frozen() else "use cv=5 without a calibrator"
            raise InvalidValueError("calibration_size", rule, got="0", advice=advice)

    def _check_size_is_used(self) -> None:
        """Raise an error if a hold-out size is given for two classes and no rows are held out."""
        if isinstance(self.calibration_size, str) or self._bags():
            return
        if self._is_frozen():
            rule = (
                "be 'auto' for a fitted model with two classes: all rows passed to fit calibrate it"
            )
            advice = "pass fit only the rows to calibrate on"
        elif self.cv is not None and not isinstance(self.cv, str):
            rule = "be 'auto' if cv determines the calibration rows"
            advice = "leave out one of the two"
        else:
            return
        got = shown(self.calibration_size)
        raise InvalidValueError("calibration_size", rule, got=got, advice=advice)

    def _is_frozen(self) -> bool:
        """Whether the estimator is used as it is, without fitting."""
        return isinstance(self.estimator, FrozenEstimator) or not hasattr(self.estimator, "fit")

    def _bags(self) -> bool:
        """Whether several models are averaged."""
        if self.calibrator is not None or self._is_frozen() or self.cv is None:
            return False
        splits = getattr(self.cv, "get_n_splits", None)
        if hasattr(self.cv, "split") and not isinstance(self.cv, str):
            return splits is None or _n_splits(splits) != 1
        return isinstance(self.cv, str | int | np.integer)

    def _calibrator(self) -> Any:
        if self.calibrator is not None:
            return self.calibrator
        return Calibrator(confidence_level=self.confidence_level)

    def _fit_arguments(self) -> set[str]:
        """The arguments of the calibrator's `fit`."""
        return set(signature(self._calibrator().fit).parameters)

    def _routed(self, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arguments for the model's `fit`, and for the calibrator's."""
        from sklearn import get_config

        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **params)
            return dict(routed.estimator.fit), dict(routed.calibrator.fit)
        names = self._fit_arguments() - {_WEIGHT}
        to_model = {name: value for name, value in params.items() if name not in names}
        to_calibrator = {name: value for name, value in params.items() if name in names}
        if not self._is_frozen():
            to_model = _without_lost_weight(self.estimator, to_model)
        return to_model, to_calibrator


def _n_splits(count: Callable[..., int]) -> int | None:
    """The number of splits of a splitter; None if that depends on the rows."""
    try:
        return count()
    except (TypeError, ValueError):
        return None


def router_of(owner: Any, estimator: Any, calibrator: Any) -> MetadataRouter:
    """The routes if scikit-learn's metadata routing is enabled.

    Requests decide. Arguments neither requested nor refused go where they would go without metadata
    routing, so that no inner request is needed.
    """
    to_fit = MethodMapping().add(caller="fit", callee="fit")
    router = MetadataRouter(owner=owner).add_self_request(owner)
    router.add(estimator=_decided(estimator, {}), method_mapping=to_fit)
    return router.add(calibrator=_decided(calibrator, {_WEIGHT: False}), method_mapping=to_fit)


def _decided(consumer: Any, exceptions: dict[str, bool]) -> Any:
    """The requests of an estimator, with none left open.

    Requests of a meta-estimator are unchanged.
    """
    requests = get_routing_for_object(consumer)
    if not isinstance(requests, MetadataRequest):
        return requests
    for name, request in list(requests.fit.requests.items()):
        if request is None:
            requests.fit.add_request(param=name, alias=exceptions.get(name, True))
    return requests


def _without_lost_weight(estimator: Any, to_model: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the model's `fit`, without a `sample_weight` that a pipeline would refuse.

    Like `CalibratedClassifierCV`, warn and train without weights.
    """
    pipeline = getattr(estimator, "estimator", estimator)  # perhaps inside a search
    if _WEIGHT not in to_model or not isinstance(pipeline, Pipeline):
        return to_model
    last = f"{pipeline.steps[-1][0]}__{_WEIGHT}"
    warn_caller(
        f"a Pipeline takes no {_WEIGHT}, so the model is trained without weights, as in"
        f" CalibratedClassifierCV; to use them, give {last} instead"
    )
    return {name: value for name, value in to_model.items() if name != _WEIGHT}
