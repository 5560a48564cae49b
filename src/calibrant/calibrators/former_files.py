"""Convert saved calibrators of earlier releases to the current form: parameters had other names
then.
"""

from collections.abc import Mapping
from typing import Any

_RENAMED = {"split": "pilot", "strategy": "partition"}
"""From a parameter's name in older files to its current name.

`min_rows` and `keep_segments` are now one, `segment_rule`.
"""

_STATED = {
    "weight_bound": None,
    "max_group_size": None,
    "group_target": "rows",
    "score_range": None,
    "weight_floor": 0.0,
    "weight_error": 0.0,
    "target_prior": None,
    "source_prior": None,
    "sampling_rates": None,
}
"""Former parameters that are now arguments of `fit`, stored as stated, and their usual values."""

_WITH_SEGMENTS = (
    "AnchoredCalibrator",
    "BinningCalibrator",
    "LabelShiftCalibrator",
    "ShiftCalibrator",
)


def current_form(saved: Mapping[str, Any]) -> dict[str, Any]:
    """The output of `to_dict`, from an earlier release or this one, under current names.

    >>> current_form({"type": "BinningCalibrator", "parameters": {"strategy": "uniform",
    ...     "min_rows": 500}})
    {'type': 'BinningCalibrator', 'parameters': {'partition': 'uniform', 'segment_rule': 500}}
    >>> current_form({"type": "PlattCalibrator", "parameters": {"smoothing": True}})
    {'type': 'PlattCalibrator', 'parameters': {'smoothing': True}}
    """
    found = {
        name: current_form(part) if isinstance(part, Mapping) else part
        for name, part in saved.items()
    }
    parameters = found.get("parameters")
    if not isinstance(parameters, dict):
        return found
    moved = {name: value for name, value in parameters.items() if name in _STATED}
    rest = {name: value for name, value in parameters.items() if name not in moved}
    if "strategy" in rest:
        rest = _current_names(rest, str(found.get("type")))
    found["parameters"] = rest
    if told := _told(moved):
        found["stated"] = {**found.get("stated", {}), **told}
    return found


def current_columns(saved: Mapping[str, Any]) -> dict[str, Any]:
    """The output of a multiclass calibrator, from an earlier release or this one, under current
    names.
    """
    parameters = dict(saved["parameters"])
    moved = {name: parameters.pop(name) for name in _STATED if name in parameters}
    told = _told(moved)
    return {**saved, "parameters": parameters, **({"stated": told} if told else {})}


def _told(moved: Mapping[str, Any]) -> dict[str, Any]:
    """The stated values that are not the usual ones."""
    return {name: value for name, value in moved.items() if value != _STATED[name]}


def _current_names(parameters: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The parameters of a calibrator that was saved when `partition` was called `strategy`.

    If such a file has no `min_rows`, every segment has its own regions. Its interval
    "clopper-pearson" stands for "auto": rows with weights or groups had the betting interval.
    """
    rest = {
        name: value
        for name, value in parameters.items()
        if name not in ("min_rows", "keep_segments")
    }
    found = {_RENAMED.get(name, name): value for name, value in rest.items()}
    if found["partition"] == "quantile":  # as now: usual values are not written
        del found["partition"]
    if found.get("interval") == "clopper-pearson":
        found["interval"] = "auto"
    if kind in _WITH_SEGMENTS:
        named = parameters.get("keep_segments")
        found["segment_rule"] = parameters.get("min_rows") if named is None else named
    return found
