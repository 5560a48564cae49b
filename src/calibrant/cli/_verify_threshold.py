"""`calibrant verify` for thresholds: find them again from the rows, and compare."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from calibrant.cli._comparison import Check, difference, fault_of, undecided
from calibrant.cli._errors import message_of
from calibrant.cli._model import settings_of
from calibrant.text.numbers import counted
from calibrant.text.sentences import shown

THRESHOLD_PROOF = ("thresholds", "counts", "limits", "sentence", "settings")
"""The parts of a guarantee for thresholds."""
SETTINGS = ("method", "start", "pilot", "max_group_size", "weight_bound")
"""Settings of `calibrant threshold` that are not in its result."""
_CHOSEN = ("segment", "target", "level", "threshold", "reason", "labels_needed")
_OF_ALL = ("seed", "n_rows", "n_drawn", "max_group_size", "above_cap", "positive_label")
_SHARES = ("selected", "precision", "recall", "specificity", "npv", "false_alarms")


def found_again(model: Any, data: Any) -> tuple[Any, list[Check]]:
    """The thresholds found again, if possible, and the comparisons with them."""
    from calibrant import threshold
    from calibrant.errors import CalibrantError

    saved = model.calibrator
    settings = settings_of(model)
    if (why := _why_not(saved, settings, data)) is not None:
        return None, _unchecked(why)
    try:
        again = threshold(data, **_arguments(saved, settings))
    except CalibrantError as error:
        if not settings:
            return None, _unchecked(message_of(error))
        failed = Check("thresholds", False, f"they cannot be found again: {message_of(error)}")
        return None, [failed, *_unchecked("nothing was found to compare with")[1:]]
    checks = _compared(saved, again)
    if not settings and any(check.stands is False for check in checks):
        return None, _unchecked(
            "the file does not say which settings found them, and other settings find others"
        )
    return again, [
        *checks,
        _same_sentence(model, again),
        _same_settings(model, data, again),
    ]


def _why_not(saved: Any, settings: Mapping[str, Any], data: Any) -> str | None:
    """Why thresholds cannot be found again from these rows; None if they can."""
    if saved.max_group_size is not None and data.columns.group is None:
        return "this needs the column of groups, --group"
    if settings.get("weight_bound") is not None and data.columns.weight is None:
        return "this needs the column of weights, --weight"
    if not settings and saved.method == "start":
        return "the file does not say where the tests began"
    return None


def _arguments(saved: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `threshold` that were used, according to the file."""
    targets = {cut.target: cut.level for cut in saved.cuts}
    given = {name: settings[name] for name in SETTINGS if settings.get(name) is not None}
    if not settings:
        given = {"method": saved.method, "max_group_size": saved.max_group_size}
    given["random_state"] = saved.seed
    labels = {"pos_label": saved.positive_label, "classes": settings.get("classes")}
    return {**targets, "confidence_level": saved.confidence_level, **given, **labels}


def _unchecked(why: str) -> list[Check]:
    return [Check(name, None, f"not checked: {why}") for name in THRESHOLD_PROOF]


def _compared(saved: Any, again: Any) -> list[Check]:
    """Compare thresholds, counts and limits for all targets and segments."""
    said = asdict(saved)
    found = asdict(again)
    thresholds = [_picked(part["cuts"], _CHOSEN) for part in (said, found)]
    limits = [_picked(part["cuts"], _SHARES) for part in (said, found)]
    counts = [
        [{name: part[name] for name in _OF_ALL}, *_picked(part["cuts"], ("counted",))]
        for part in (said, found)
    ]
    return [
        _check(
            "thresholds",
            thresholds,
            f"{counted(len(saved.cuts), 'threshold')}, found again in the rows",
        ),
        _check("counts", counts, f"{saved.n_rows:,} rows, {saved.n_drawn:,} of them drawn"),
        _check("limits", limits, "follow from the rows"),
    ]


def _picked(cuts: list[dict[str, Any]], names: tuple[str, ...]) -> list[dict[str, Any]]:
    return [{name: _number(cut[name]) for name in names} for cut in cuts]


def _number(value: Any) -> Any:
    """A share with NaN replaced by None, so that it can be compared."""
    if isinstance(value, dict):
        return {name: None if entry != entry else entry for name, entry in value.items()}
    return value


def _check(name: str, said_and_found: list[Any], text: str) -> Check:
    said, found = said_and_found
    other = difference(said, found)
    return Check(
        name,
        other is None,
        text if other is None else f"the rows give another {other}",
    )


def _same_sentence(model: Any, again: Any) -> Check:
    """Compare the texts that follow from the rows with those that the file holds in two places."""
    from calibrant._version import __version__

    said = replace(model.calibrator, read=())
    if (
        said.sentence != again.sentence
        or said.assumptions != again.assumptions
        or said.method != again.method
    ):
        return Check("sentence", False, f"the rows give: {again.sentence}")
    written = {model.written.get("sentence"), model.written.get("inner_sentence")} - {None}
    if written <= {again.sentence}:
        return Check("sentence", True, "follows from the rows")
    if model.written.get("created_by") != f"calibrant {__version__}":
        return Check(
            "sentence",
            None,
            "not checked: the file has the wording of another release",
        )
    return Check("sentence", False, "the one in the file does not follow from its own counts")


def _same_settings(model: Any, data: Any, again: Any) -> Check:
    """Check that settings have the right types and find the same thresholds."""
    if "settings" not in model.provenance:
        return Check(
            "settings", True, "the file has none; the default settings find the same thresholds"
        )
    settings = settings_of(model)
    rules = _rules()
    if (fault := fault_of(settings, rules)) is not None:
        return Check("settings", False, fault)
    for name, column in (
        ("max_group_size", data.columns.group),
        ("weight_bound", data.columns.weight),
    ):
        if settings.get(name) is not None and column is None:
            return Check("settings", False, f"{name} is set, but no column goes with it")
    if strange := sorted(set(settings) - set(rules)):
        return Check("settings", None, f"not checked: {', '.join(map(shown, strange))}")
    of_draw = () if again.n_drawn > 0 or data.columns.weight is not None else ("pilot",)
    return Check(
        "settings",
        True,
        f"they find the same thresholds{undecided(settings, data, of_draw)}",
    )


def _rules() -> dict[str, Any]:
    """The rule of each setting."""
    from calibrant.params.rules import (
        FRACTION_OR_COUNT,
        Choice,
        Flag,
        Integer,
        Names,
        Number,
        Only,
        Optional,
    )

    return {
        "method": Choice(("auto", "ranks", "look")),
        "start": Optional(Number()),
        "pilot": FRACTION_OR_COUNT | Only("auto"),
        "max_group_size": Optional(Integer(1)),
        "weight_bound": Optional(Number(low=0.0)),
        "classes": Optional(Names("two labels")),
        "skip_missing": Flag(),
    }
