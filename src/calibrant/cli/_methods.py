"""The methods of `fit`: the calibrator of each, and the options that it takes."""

from collections.abc import Mapping
from dataclasses import fields
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

from calibrant.cli._errors import RefusedError
from calibrant.cli._input import typed_segments
from calibrant.cli._options import BOUNDS, arguments, check_needed
from calibrant.cli._words import options_of

if TYPE_CHECKING:
    from calibrant.sample.sources.arrow import ArrowData


class _Method(NamedTuple):
    """A calibrator by name, its fixed parameters, and what the method does not offer.

    The options of a method are the parameters of its calibrator; whether it takes segments, groups
    and weights is in the signature of `fit`. Both are read from there, and written nowhere else.
    """

    calibrator: str
    fixed: Mapping[str, Any] = {}
    without: tuple[str, ...] = ()


_METHODS = {
    "curve": _Method("Calibrator", {}, ("score_range",)),
    "binning": _Method("BinningCalibrator", {"partition": "quantile"}, ("score_range",)),
    "uniform": _Method("BinningCalibrator", {"partition": "uniform"}, ("pilot",)),
    "scaling-binning": _Method("ScalingBinningCalibrator"),
    "blend": _Method("BlendCalibrator"),
    "platt": _Method("PlattCalibrator"),
    "temperature": _Method("TemperatureCalibrator"),
    "beta": _Method("BetaCalibrator"),
    "isotonic": _Method("IsotonicCalibrator"),
    "venn-abers": _Method("VennAbersCalibrator"),
}
METHODS = tuple(_METHODS)
_BY_LABEL = {"target_prior": "--prior", "sampling_rates": "--sampling-rates"}
"""Options for rows that were sampled by their label."""
_BINS = ("binning", "uniform")
_COLUMNS = {"segment": "segments", "group": "groups", "weight": "importance_weight"}
"""The argument of `fit` for a column."""
_ABOUT_DATA = (*BOUNDS, *_BY_LABEL, "group_target", "score_range")
"""Parameters that are arguments of `fit`."""
_NEEDS = {
    "min_rows": "segment",
    "keep_segment": "segment",
    "interval betting": "weight",
    **BOUNDS,
    "group_target": "group",
    "time": "holdout",
    "calibration_size": "holdout",
}
"""The option that another one needs."""


def _kind(method: str) -> Any:
    """The class of a method's calibrator."""
    from calibrant import calibrators

    return getattr(calibrators, _METHODS[method].calibrator)


def _parameters(kind: Any) -> set[str]:
    """The parameters of a calibrator, and the arguments of its `fit`."""
    return {field.name for field in fields(kind)} | set(signature(kind.fit).parameters)


def methods_with(argument: str) -> tuple[str, ...]:
    """The methods whose calibrator can be fitted with this argument: "segments", "groups" or
    "importance_weight".
    """
    return tuple(one for one in METHODS if argument in signature(_kind(one).fit).parameters)


def method_making(calibrator: object) -> str | None:
    """The method that makes such a calibrator."""
    name = type(calibrator).__name__
    return next((one for one in METHODS if _METHODS[one].calibrator == name), None)


def method_of(options: Mapping[str, Any]) -> str:
    """The method that options ask for."""
    # rows sampled by label, and a --value, need one value per bin
    of_bins = any(options[name] is not None for name in (*_BY_LABEL, "value"))
    return options["method"] or ("binning" if of_bins else "curve")


def check_chosen(method: str, options: Mapping[str, Any]) -> None:
    """Reject options that the method does not have, or that exclude each other."""
    _check_parameters(method, options)
    uses = {
        f"--{column}": methods_with(argument)
        for column, argument in _COLUMNS.items()
        if options[column] is not None
    }
    uses |= {option: _BINS for name, option in _BY_LABEL.items() if options[name] is not None}
    for option, methods in uses.items():
        if method not in methods:
            *most, last = methods
            rule = f"be used with --method {', '.join(most)} or {last}"
            raise RefusedError(option, rule, got=f"--method {method}")
    _check_together(options)
    betting = True if options["interval"] == "betting" else None
    named = options["keep_segment"] or None
    check_needed({**options, "interval betting": betting, "keep_segment": named}, _NEEDS)


def _check_parameters(method: str, options: Mapping[str, Any]) -> None:
    """Reject options that are parameters of other methods."""
    # a seed has no effect if nothing is drawn; bounds and sampling are checked with their columns
    allowed = {None, "random_state", "weight_bound", *_BY_LABEL, *_parameters(_kind(method))}
    allowed.difference_update(_METHODS[method].without)
    for name, entry in sorted(options_of("fit").items()):
        parameter = entry.get("parameter")
        if name in ("min_rows", "keep_segment"):
            parameter = "segment_rule"
        is_given = options[name] not in (None, (), entry.get("default"))
        if is_given and parameter not in allowed:
            rule = f"be left out with --method {method}, which has no such option"
            raise RefusedError(entry["option"], rule)


def _check_together(options: Mapping[str, Any]) -> None:
    """Reject options that exclude each other."""
    weighted = options["weight"] is not None
    by_label = next((said for name, said in _BY_LABEL.items() if options[name] is not None), None)
    if by_label is not None and weighted:
        advice = "multiply the weights instead"
        raise RefusedError(by_label, "be left out with --weight", advice=advice)
    if options["group"] is not None and options["sampling_rates"] is not None:
        advice = "use --weight, one over the share of each row's class that was kept"
        raise RefusedError("--group", "be left out with --sampling-rates", advice=advice)
    for name in ("max_group_size", "group_target"):
        if by_label is not None and options[name] is not None:
            rule = f"be left out with {by_label}, for which one row of each group is drawn"
            raise RefusedError(f"--{name.replace('_', '-')}", rule)
    if weighted and options["interval"] not in (None, "betting"):
        rule = "be left out with --weight, for which limits always come from bets"
        raise RefusedError("--interval", rule)


def fitted(
    method: str, options: Mapping[str, Any], data: "ArrowData", labels: Mapping[str, Any]
) -> Any:
    """A calibrator fitted to the data."""
    import calibrant
    from calibrant.calibrators.regions.weakness import reported_by_caller

    by_label = any(options[name] is not None for name in _BY_LABEL)
    kind = calibrant.LabelShiftCalibrator if by_label else _kind(method)
    given = arguments("fit", options)
    if options["keep_segment"]:
        given["segment_rule"] = typed_segments(data, options["keep_segment"])
    elif options["min_rows"] is not None:
        given["segment_rule"] = None if options["min_rows"] == "none" else options["min_rows"]
    taken = _parameters(kind)
    if options["weight"] is not None:
        taken.discard("interval")  # limits always come from bets
    given = {name: value for name, value in given.items() if name in taken}
    about = {name: given.pop(name) for name in _ABOUT_DATA if name in given}
    calibrator = kind(**_METHODS[method].fixed, **given, pos_label=labels["pos_label"])
    with reported_by_caller():
        return calibrator.fit(calibrant.Sample(data), classes=labels["classes"], **about)
