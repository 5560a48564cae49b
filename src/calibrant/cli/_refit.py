"""Refit what a model file contains from the rows that it was made of, and compare the two."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calibrant.cli._errors import RefusedError, message_of
from calibrant.cli._input import ROLES
from calibrant.cli._latest import latest
from calibrant.cli._model import (
    FIT_SETTINGS,
    THRESHOLD_SETTINGS,
    columns_for,
    key_types,
    settings_of,
    text_types,
)
from calibrant.cli.verify import Verification
from calibrant.errors import CalibrantError
from calibrant.params.labels import UnexpectedLabelsError
from calibrant.text.sentences import shown

if TYPE_CHECKING:
    from calibrant.cli._input import Files

_BY_HAND = (
    "the file does not say how its regions were cut; if they were chosen by looking at labels,"
    " nothing is guaranteed"
)
_OTHER_ORDER = (
    "these are its rows, but in a different order, and rows are drawn by position: give them in the"
    " same order as in fit, or fit with --id"
)
_HELD_OUT = (
    "the order in which the held-out rows were bet on is in no file; only the classifier that made"
    " it can find these limits again"
)
_SEVERAL = "it has a score for each class; fit it again in Python, and compare what to_dict() gives"
# far larger than the differences in the last bits between linear algebra kernels and math libraries
_RELATIVE = 1e-9
_ABSOLUTE = 1e-12  # for probabilities: a difference of two nearly equal ones keeps rounding errors
_ON_SCORES = re.compile(
    r"(lower_|upper_)?knots|edges|low|high|cuts|thresholds?|score_range_seen|window|bound"
    r"|smallest|largest"
)
"""Entries that are scores or weights of rows, or lie between two of them: no library rounds them,
at any scale.
"""
_OF_ANY_SCALE = ("slope", "temperature")
"""Entries without a natural scale, for which only the ratio matters."""


@dataclass(frozen=True, slots=True)
class Difference:
    """An entry of a file that the rows do not give: where it is, and both values."""

    path: str
    file: Any
    rows: Any


def differences(file: Any, rows: Any, path: str = "") -> Iterator[Difference]:
    """The entries in which two plain values differ by more than rounding.

    The last bits of probabilities, limits and other computed numbers may differ between machines; a
    relative 1e-9 and an absolute 1e-12 are allowed. Scores must be equal: they may have any scale,
    and are only copied.

    >>> [one.path for one in differences({"curve": {"left": [0.3, 0.1]}, "knots": [1e-11]},
    ...     {"curve": {"left": [0.3 + 1e-13, 0.2]}, "knots": [1e-11 + 1e-20]})]
    ['curve.left[1]', 'knots[0]']
    """
    if isinstance(file, Mapping) and isinstance(rows, Mapping):
        for key in {**file, **rows}:
            inner = f"{path}.{key}".lstrip(".")
            yield from differences(file.get(key), rows.get(key), inner)
    elif all(isinstance(one, list | tuple) for one in (file, rows)) and len(file) == len(rows):
        for place, pair in enumerate(zip(file, rows, strict=True)):
            yield from differences(*pair, f"{path}[{place}]")
    elif not _is_same(file, rows, re.sub(r"\[\d+\]", "", path).rpartition(".")[2]):
        yield Difference(path, file, rows)


def _is_same(one: Any, other: Any, name: str) -> bool:
    if not isinstance(one, float):
        return one == other and (type(one) is type(other) or isinstance(one, str))
    if one == other or not isinstance(other, float):
        return isinstance(other, float)
    if _ON_SCORES.fullmatch(name) or not math.isfinite(one - other):
        return math.isnan(one) and math.isnan(other)
    absolute = 0.0 if name in _OF_ANY_SCALE else _ABSOLUTE
    return abs(one - other) <= absolute + _RELATIVE * max(abs(one), abs(other))


def refit(model: Any, source: "Files", options: Mapping[str, Any]) -> Verification:
    """Fit a model again from the rows of the files, and compare the two."""
    saved = model.calibrator
    if hasattr(saved, "moves"):
        return Verification(model.fingerprint, unclear=_HELD_OUT)
    if hasattr(saved, "classes_") and not hasattr(saved, "positive_index_"):
        return Verification(model.fingerprint, unclear=_SEVERAL)
    columns = columns_for(model, source, options, *ROLES)
    data = _rows(model, source, columns, options)
    found, notes, other_order = _compared_rows(model, data, columns)
    again = None
    problem = ""
    unclear = _lacking(model, data)
    if not unclear:
        try:
            again = _threshold(model, data) if hasattr(saved, "cuts") else _calibrator(model, data)
        except CalibrantError as error:
            if isinstance(error, UnexpectedLabelsError) and hasattr(saved, "assumptions_"):
                rule = f"be those that the model was fitted on, {saved.classes_.tolist()}"
                raise RefusedError("the labels", rule, got=error.got) from None
            why = f"the rows cannot be fitted as the file says: {message_of(error)}"
            if "settings" in model.provenance:
                problem = f"The guarantee does not stand: {why}."
            else:  # the file may be right, and just not say enough
                unclear = why
    if again is not None:
        others = _compared(model, again)
        unclear = _why_unclear(model, data, again, others, other_order) if others else ""
        found += [] if unclear else others
    return Verification(
        model.fingerprint, problem, unclear, tuple(found), again, tuple(notes), other_order
    )


def _rows(model: Any, source: "Files", columns: dict[str, Any], options: Mapping[str, Any]) -> Any:
    """The rows that the model was made from, according to its settings."""
    settings = settings_of(model)
    types = text_types(model, label=columns["label"], segment=columns["segment"])
    skip = options["skip_missing"] or settings.get("skip_missing") is True
    data = source.scored(columns, types=types, skip_missing=skip)
    if settings.get("holdout") == "last":
        data, _ = latest(data, settings.get("time"), settings.get("calibration_size"))
    return data


def _compared_rows(
    model: Any, data: Any, columns: Mapping[str, Any]
) -> tuple[list[Difference], list[str], bool]:
    """Where the rows differ from what the file says about them; notes on entries that no rows can
    confirm, and on columns of another type; and whether the rows are in another order.
    """
    from calibrant.sample.fingerprint import fingerprint

    seen = fingerprint(data, ordered=True)
    in_file = model.provenance
    here = {"rows": seen.rows, "fingerprint": str(seen)}
    if data.columns.group is not None:
        here["groups"] = data.n_groups()
    provenance = {name: in_file[name] for name in here if name in in_file}
    found = differences(provenance, {name: here[name] for name in provenance}, "provenance")
    types = key_types(data)
    changed = [name for name in types if name in in_file and in_file[name] != types[name]]
    known = {*here, "settings", "order", *(types.keys() - changed)}
    in_order = seen.in_order
    other_order = in_file.get("order") is not None and in_order not in (None, in_file["order"])
    unordered = other_order or ("order" in in_file and in_order is None)
    not_checked = [
        *(f"provenance.{name}" for name in sorted(set(in_file) - known)),
        *(f"columns.{part}" for part, name in model.columns.items() if columns.get(part) != name),
        *(["provenance.order"] if unordered else []),
        "created_by",
    ]
    notes = [f"not checked: {', '.join(not_checked)}"]
    # with ids or groups of another type, other rows may be drawn
    notes += [
        f"{name.removesuffix('_type')}s were {shown(in_file[name])} in fit and are {types[name]} here"
        for name in changed
    ]
    return list(found), notes, other_order


def _lacking(model: Any, data: Any) -> str:
    """What a new fit needs and does not have, in words; empty if it has everything."""
    saved = model.calibrator
    settings = settings_of(model)
    if hasattr(saved, "partial_fit"):
        return "a stream depends on when its rows arrived, which the data do not show"
    if hasattr(saved, "cuts") and saved.method == "start" and "settings" not in model.provenance:
        return "the file does not say where the tests began"
    state = saved.to_dict()
    tally = getattr(saved, "tally_", None)
    statement = getattr(getattr(saved, "guarantee_", None), "statement", None)
    weighted = (settings, state, {"weight_bound": getattr(tally, "weights", None)})
    grouped = (
        settings.get("max_group_size"),
        state.get("max_group_size"),
        state.get("groups", (0, 0))[0] or None,
        getattr(tally, "groups", None),
        getattr(statement, "groups", None),
        getattr(statement, "of_groups", None) or None,
    )
    needed = {
        "weight": any(one.get("weight_bound") is not None for one in weighted),
        "group": any(one is not None for one in grouped),
    }
    for role, is_needed in needed.items():
        if is_needed and role not in data.columns.named:
            return f"the file does not name the column of {role}s, which it needs"
    return ""


def _calibrator(model: Any, data: Any) -> Any:
    """Fit with the parameters and the assumptions in the file."""
    from sklearn.base import clone

    from calibrant.calibrators.regions.weakness import reported_by_caller

    saved = model.calibrator
    classes = saved.classes_.tolist()
    made = clone(saved).set_params(pos_label=classes[saved.positive_index_])
    parameters = made.get_params(deep=False)
    if hasattr(saved, "is_refuted_"):  # a band
        stated = {"weight_bound": saved.to_dict().get("weight_bound") or None}
    else:
        stated = saved.assumptions_.to_dict()
    if "attributes" in parameters:  # they may have come as a frame
        made.set_params(attributes=list(getattr(saved, "_attribute_names", ())) or None)
    if "settings" in model.provenance:
        settings = _checked_settings(model, FIT_SETTINGS)
        rule = parameters.get("segment_rule", "auto")
        if rule != "auto" and "segment" not in model.columns:
            raise RefusedError("segment_rule", 'be "auto" without segments', got=shown(rule))
        if "random_state" in parameters:  # which no file of a calibrator has
            made.set_params(random_state=settings.get("random_state", 0))
    with reported_by_caller():
        return made.fit(data, classes=tuple(classes), **stated)


def _checked_settings(model: Any, settings: Sequence[str]) -> Mapping[str, Any]:
    """The settings in the file, if a command with these settings can have written them."""
    from calibrant.params import rules

    saved = settings_of(model)
    strange = next((name for name in saved if name not in settings), None)
    if not saved or strange is not None:
        got = "none" if strange is None else shown(strange)
        raise RefusedError("the settings", "be those of a command", got=got)
    known: dict[str, rules.Rule[Any]] = {
        "method": rules.Choice(("auto", "ranks", "look")),
        "skip_missing": rules.Flag(),
        "random_state": rules.Integer(0),
        "holdout": rules.Optional(rules.Only("last")),
        "time": rules.Optional(rules.TEXT),
        "calibration_size": rules.Optional(rules.FRACTION_OR_COUNT),
    }
    for name in known.keys() & saved.keys():
        known[name].check(name, saved[name])
    for name in ("time", "calibration_size"):
        if saved.get(name) is not None and saved.get("holdout") is None:
            raise RefusedError(name, "be null without a hold-out", got=shown(saved[name]))
    return saved


def _threshold(model: Any, data: Any) -> Any:
    """Find the thresholds again, with the settings of the file or those of the result."""
    from calibrant import threshold

    saved = model.calibrator
    settings = settings_of(model)
    given = {"method": saved.method, "max_group_size": saved.max_group_size}
    if "settings" in model.provenance:
        _checked_settings(model, (*THRESHOLD_SETTINGS, "classes", "skip_missing"))
        given = {name: settings.get(name) for name in THRESHOLD_SETTINGS}
    # a command always writes the pilot: without it the file was edited, and threshold refuses it
    known: dict[str, Any] = {
        name: value for name, value in given.items() if value is not None or name == "pilot"
    }
    return threshold(
        data,
        **{cut.target: cut.level for cut in saved.cuts},
        **known,
        confidence_level=saved.confidence_level,
        random_state=saved.seed,
        pos_label=saved.positive_label,
        classes=settings.get("classes"),
    )


def _compared(model: Any, again: Any) -> list[Difference]:
    """Where the file and a file of the new fit differ."""
    from calibrant.answers.model_file import Model

    found = differences(_content(model), _content(Model(again)))
    # what the caller said, and the state has: the classes, and the names of attributes
    given = ("calibrator.parameters.pos_label", "calibrator.parameters.attributes")
    return [one for one in found if not one.path.startswith(given)]


def _content(model: Any) -> dict[str, Any]:
    """What a file says about its rows: what was fitted, and the texts about it as they were
    written.
    """
    from calibrant.answers.model_file import content_of

    content = content_of(model)
    parts = {name: content[name] for name in ("guarantee", "calibrator")}
    for name in ("sentence", "details"):
        if name in model.written:
            parts["guarantee"][name] = model.written[name]
    if "inner_sentence" in model.written:
        parts["calibrator"]["sentence"] = model.written["inner_sentence"]
    return parts


def _why_unclear(
    model: Any, data: Any, again: Any, others: Sequence[Difference], other_order: bool
) -> str:
    """Why a fit that differs does not show that the file is wrong; empty if it does."""
    saved = model.calibrator
    columns = data.columns
    if other_order:
        return _OTHER_ORDER
    if _has_other_wording(model, others):
        return "the file has the wording of another release; rely on what is printed here"
    if hasattr(saved, "is_refuted_"):
        drawn = columns.group is not None or columns.weight is not None
        return "the file has no seed, and another seed gives other limits" if drawn else ""
    if "settings" in model.provenance:
        return ""
    if hasattr(saved, "cuts"):
        return "the file does not say which settings found its thresholds"
    if not hasattr(saved, "partition_"):
        return ""
    if saved.partition_.fingerprint == again.partition_.fingerprint:
        return ""
    if getattr(saved.guarantee_, "draws_rows", False):
        return "the file does not say which rows cut its regions"
    return _BY_HAND


def _has_other_wording(model: Any, others: Sequence[Difference]) -> bool:
    """Whether only texts differ, and another release may have written them."""
    from calibrant._version import __version__

    texts = ("guarantee.sentence", "guarantee.details", "calibrator.sentence")
    is_of_this = model.written.get("created_by") == f"calibrant {__version__}"
    is_whole = "details" in model.written or hasattr(model.calibrator, "cuts")
    return all(one.path in texts for one in others) and not (is_of_this and is_whole)
