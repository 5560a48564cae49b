"""Which further arguments of `fit` go to the model, and which to the calibrator."""

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import (
    MetadataRequest,
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
)

from calibrant.errors import warn_caller

_WEIGHT = "sample_weight"  # trains the model; `calibration_weight` calibrates it


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


def by_name(
    params: dict[str, Any], calibrator_takes: set[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments for the model's `fit`, and for the calibrator's, which gets those it names."""
    names = calibrator_takes - {_WEIGHT}
    to_model = {name: value for name, value in params.items() if name not in names}
    to_calibrator = {name: value for name, value in params.items() if name in names}
    return to_model, to_calibrator


def without_lost_weight(estimator: Any, to_model: dict[str, Any]) -> dict[str, Any]:
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
