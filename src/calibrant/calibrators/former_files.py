"""Saved calibrators of earlier releases, in the form of today: parameters had other names then."""

from collections.abc import Mapping
from typing import Any

_RENAMED = {"split": "pilot", "strategy": "partition"}
"""From a parameter's name in older files to its name now.

`min_rows` and `keep_segments` are one, `segment_rule`.
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
"""Parameters that are arguments of `fit` now, kept as what was stated; and what is usual."""

_WITH_SEGMENTS = (
    "AnchoredCalibrator",
    "BinningCalibrator",
    "LabelShiftCalibrator",
    "ShiftCalibrator",
)


def current_form(saved: Mapping[str, Any]) -> dict[str, Any]:
    """What `to_dict` wrote, in an earlier release or in this one, by the names of today.

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
    """What a multiclass calibrator wrote, in an earlier release or in this one, by the names of
    today.
    """
    parameters = dict(saved["parameters"])
    moved = {name: parameters.pop(name) for name in _STATED if name in parameters}
    told = _told(moved)
    return {**saved, "parameters": parameters, **({"stated": told} if told else {})}


def _told(moved: Mapping[str, Any]) -> dict[str, Any]:
    """What was stated, where it is not usual."""
    return {name: value for name, value in moved.items() if value != _STATED[name]}


def _current_names(parameters: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The parameters of a calibrator that was saved when `partition` was called `strategy`.

    If such a file has no `min_rows`, every segment has regions of its own. Its interval
    "clopper-pearson" stands for "auto": rows with weights or groups had the interval of betting.
    """
    rest = {
        name: value
        for name, value in parameters.items()
        if name not in ("min_rows", "keep_segments")
    }
    found = {_RENAMED.get(name, name): value for name, value in rest.items()}
    if found["partition"] == "quantile":  # as today: what is usual is not written
        del found["partition"]
    if found.get("interval") == "clopper-pearson":
        found["interval"] = "auto"
    if kind in _WITH_SEGMENTS:
        named = parameters.get("keep_segments")
        found["segment_rule"] = parameters.get("min_rows") if named is None else named
    return found
