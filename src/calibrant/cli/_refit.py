"""Refit what a model file contains from the rows that it was made of, and compare the two."""

import math
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from calibrant.cli._errors import RefusedError, message_of
from calibrant.cli._latest import latest
from calibrant.cli._methods import METHODS, Settings
from calibrant.cli._model import (
    THRESHOLD_SETTINGS,
    columns_for,
    key_types,
    settings_of,
    text_types,
)
from calibrant.cli._records import read_columns
from calibrant.cli._words import in_options
from calibrant.cli.verify import Verification
from calibrant.errors import CalibrantError
from calibrant.params.labels import UnexpectedLabelsError
from calibrant.text.numbers import counted
from calibrant.text.sentences import render, shown

if TYPE_CHECKING:
    from calibrant.cli._input import Files
    from calibrant.params.rules import Rule

_ARGUMENTS = {"group": "groups", "weight": "importance_weight"}
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


class _CannotRefitError(Exception):
    """Why a model cannot be fitted again from these rows."""


def _verification(
    model: Any,
    again: Any = None,
    *,
    differences: Sequence[Difference] = (),
    problem: str = "",
    unclear: str = "",
    notes: Sequence[str] = (),
    other_order: bool = False,
) -> Verification:
    """The answer, from what was fitted `again`; None if nothing was.

    A problem is why nothing can be fitted, and unclear is why a part could not be recomputed.
    """
    if problem:
        problem = f"The guarantee does not stand: {problem}."
    saved: Any = getattr(model.calibrator, "guarantee_", None)
    if not getattr(saved, "is_proved", True):
        problem = f"Nothing is guaranteed: {render(saved.caveat or '', in_options)}."
    stated = getattr(again, "guarantee_", again)
    stands = not (problem or unclear or differences)
    return Verification(
        problem,
        unclear,
        tuple(differences),
        render(stated.sentence, in_options) if stands else None,
        (*(() if stated is None else stated.notes), *notes),
        other_order,
        model.fingerprint,
    )


# Two dictionaries


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


def _compared(model: Any, again: Any) -> list[Difference]:
    """Where the file and a file of the new fit differ."""
    from calibrant.answers.model_file import Model

    found = differences(_content(model), _content(Model(again)))
    # what the caller said, and the state has: the classes, and the names of attributes
    given = ("calibrator.parameters.pos_label", "calibrator.parameters.attributes")
    return [one for one in found if not one.path.startswith(given)]


# Fits, by what the file holds


def refit(model: Any, source: "Files", options: Mapping[str, Any]) -> Verification:
    """Fit a model again from the rows of the files, and compare the two."""
    saved = model.calibrator
    several = _has_several_classes(saved)
    if hasattr(saved, "moves") or (several and not hasattr(saved, "fit")):
        return _held_out(model, source, options)
    if several:
        return _several_classes(model, source, options)
    columns = columns_for(model, source, options)
    data = _rows(model, source, columns, options)
    on_rows = _compared_rows(model, data, columns)
    try:
        again = _fitted_again(model, data)
    except _CannotRefitError as error:
        return _verification(model, **on_rows, unclear=str(error))
    except CalibrantError as error:
        if isinstance(error, UnexpectedLabelsError) and hasattr(saved, "assumptions_"):
            rule = f"be those that the model was fitted on, {saved.classes_.tolist()}"
            raise RefusedError("the labels", rule, got=error.got) from None
        if "settings" in model.provenance:
            return _verification(model, **on_rows, problem=_no_fit(error))
        return _verification(model, **on_rows, unclear=message_of(error))
    others = _compared(model, again)
    if others and on_rows["other_order"]:
        unclear = _OTHER_ORDER
    elif others and (why := _why_unclear(model, data, again)) is not None:
        unclear = why
        on_rows["differences"] += _counted_in_saved_regions(model, data)
    elif others and _has_other_wording(model, others):
        unclear = "the file has the wording of another release; rely on what is printed here"
    else:
        on_rows["differences"] += others
        unclear = _strange_settings(model)
    if idle := _idle(model, data, again):
        on_rows["notes"].append(f"{' and '.join(idle)} made no difference on these rows")
    return _verification(model, again, **on_rows, unclear=unclear)


def _no_fit(error: CalibrantError) -> str:
    return f"the rows cannot be fitted as the file says: {message_of(error)}"


def _has_several_classes(calibrator: Any) -> bool:
    return hasattr(calibrator, "classes_") and not hasattr(calibrator, "positive_index_")


def _rows(model: Any, source: "Files", columns: dict[str, Any], options: Mapping[str, Any]) -> Any:
    """The rows that the model was made from, according to its settings."""
    settings = settings_of(model)
    types = text_types(model, label=columns["label"], segment=columns["segment"])
    skip = options["skip_missing"] or settings.get("skip_missing") is True
    data = source.scored(columns, types=types, skip_missing=skip)
    if settings.get("holdout") == "last":
        data, _ = latest(data, settings.get("time"), settings.get("calibration_size"))
    return data


def _compared_rows(model: Any, data: Any, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Compare what the file says about its rows; note what no rows can confirm, and columns of
    another type, with which other rows may be drawn.
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
    notes += [
        f"{name.removesuffix('_type')}s were {shown(in_file[name])} in fit and are {types[name]} here"
        for name in changed
    ]
    return {"differences": list(found), "notes": notes, "other_order": other_order}


def _fitted_again(model: Any, data: Any) -> Any:
    """Fit with the settings of the file, or else with the parameters of its calibrator."""
    from calibrant.calibrators.regions.weakness import reported_by_caller

    saved = model.calibrator
    if hasattr(saved, "cuts"):
        return _threshold_again(model, data)
    if (why := _why_not(saved, data)) is not None:
        raise _CannotRefitError(why)
    classes = saved.classes_.tolist()
    made, stated = _made(model, classes[saved.positive_index_])
    with reported_by_caller():
        return made.fit(data, classes=tuple(classes), **stated)


def _why_not(saved: Any, data: Any) -> str | None:
    """Why a calibrator cannot be fitted again from these rows; None if it can."""
    if hasattr(saved, "partial_fit"):
        return "a stream depends on when its rows arrived, which the data do not show"
    tally = getattr(saved, "tally_", None)
    statement = getattr(saved.guarantee_, "statement", None)
    state = saved.to_dict()
    weighted = state.get("weight_bound") or getattr(tally, "weights", None) is not None
    grouped = (
        state.get("groups", (0, 0))[0]
        or getattr(tally, "groups", None) is not None
        or (statement is not None and (statement.groups is not None or statement.of_groups))
    )
    return _lacking({"weight": weighted, "group": grouped}, data.columns.named)


def _lacking(needed: Mapping[str, Any], given: Container[str]) -> str | None:
    """The first needed column that was not given, in words; None if there is none."""
    for role, is_needed in needed.items():
        if is_needed and role not in given:
            return f"this needs the column of {role}s, --{role}"
    return None


def _made(model: Any, positive: Any) -> tuple[Any, dict[str, Any]]:
    """The calibrator to fit, and what its fit is given about the data."""
    from sklearn.base import clone

    saved = model.calibrator
    is_band = hasattr(saved, "is_refuted_")
    if "settings" in model.provenance and not is_band:
        settings = _settings(model)
        return settings.calibrator(positive), settings.stated()
    made = clone(saved).set_params(pos_label=positive)
    if is_band:
        return made, {"weight_bound": saved.to_dict().get("weight_bound") or None}
    if "attributes" in made.get_params(deep=False):  # they may have come as a frame
        made.set_params(attributes=list(getattr(saved, "_attribute_names", ())) or None)
    return made, saved.assumptions_.to_dict()


def _settings(model: Any) -> Settings:
    """The settings in the file; an error if they cannot be those of calibrant fit."""
    saved = settings_of(model)
    _check_settings(saved, _rules_of_fit())
    known = {entry.name for entry in fields(Settings)}
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in saved.items()
        if name in known
    }
    try:
        settings = Settings(**given)
        settings.check(model.columns.get("segment"), model.columns.get("group"))
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        if isinstance(error, CalibrantError):
            raise
        raise RefusedError("the settings", "be those of calibrant fit", got=shown(saved)) from None
    if settings.weighted != (model.calibrator.tally_.weights is not None):
        rule = "say whether rows have weights"
        raise RefusedError("weighted of the settings", rule, got=shown(settings.weighted))
    return settings


def _check_settings(settings: Mapping[str, Any], rules: Mapping[str, "Rule[Any]"]) -> None:
    if not settings:
        raise RefusedError("the settings", "be an object with the settings of a command")
    for name, rule in rules.items():
        if name in settings:
            rule.check(name, settings[name])


def _rules_of_fit() -> dict[str, Any]:
    """The rules of settings that are not parameters of a calibrator."""
    from calibrant.params.rules import FRACTION_OR_COUNT, TEXT, Choice, Flag, Only, Optional

    return {
        "method": Choice(METHODS),
        "skip_missing": Flag(),
        "weighted": Flag(),
        "holdout": Optional(Only("last")),
        "time": Optional(TEXT),
        "calibration_size": Optional(FRACTION_OR_COUNT),
    }


def _threshold_again(model: Any, data: Any) -> Any:
    from calibrant import threshold
    from calibrant.params.rules import Choice, Flag

    saved = model.calibrator
    settings = settings_of(model)
    if "settings" in model.provenance:
        rules = {"method": Choice(("auto", "ranks", "look")), "skip_missing": Flag()}
        _check_settings(settings, rules)
        given = {name: settings.get(name) for name in THRESHOLD_SETTINGS}
    elif saved.method == "start":
        raise _CannotRefitError("the file does not say where the tests began")
    else:
        given = {"method": saved.method, "max_group_size": saved.max_group_size}
    bounds = (given.get("max_group_size"), saved.max_group_size)
    grouped = any(bound is not None for bound in bounds)
    weighted = given.get("weight_bound") is not None
    if (why := _lacking({"group": grouped, "weight": weighted}, data.columns.named)) is not None:
        raise _CannotRefitError(why)
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


def _why_unclear(model: Any, data: Any, again: Any) -> str | None:
    """Why a fit that differs does not show that the file is wrong; None if it does."""
    saved = model.calibrator
    if hasattr(saved, "is_refuted_"):
        drawn = data.columns.group is not None or data.columns.weight is not None
        return "the file has no seed, and another seed gives other limits" if drawn else None
    if settings_of(model) or "settings" in model.provenance:
        return None
    if hasattr(saved, "cuts"):
        return "the file does not say which settings found its thresholds"
    if not hasattr(saved, "partition_"):
        return None
    if saved.partition_.fingerprint == again.partition_.fingerprint:
        return None
    return "the file does not say which rows cut its regions" if _draws(saved) else _BY_HAND


def _has_other_wording(model: Any, others: Sequence[Difference]) -> bool:
    """Whether only texts differ, and another release may have written them."""
    from calibrant._version import __version__

    texts = ("guarantee.sentence", "guarantee.details", "calibrator.sentence")
    is_of_this = model.written.get("created_by") == f"calibrant {__version__}"
    is_whole = "details" in model.written or hasattr(model.calibrator, "cuts")
    return all(one.path in texts for one in others) and not (is_of_this and is_whole)


def _strange_settings(model: Any) -> str:
    """Settings that no command has, in words; empty if there are none."""
    known = {entry.name for entry in fields(Settings)}
    if hasattr(model.calibrator, "cuts"):
        known = {*THRESHOLD_SETTINGS, "classes", "skip_missing"}
    strange = sorted(set(settings_of(model)) - known)
    return f"no command has the settings {', '.join(map(shown, strange))}" if strange else ""


def _draws(calibrator: Any) -> bool:
    return bool(getattr(calibrator.guarantee_, "draws_rows", False))


def _counted_in_saved_regions(model: Any, data: Any) -> list[Difference]:
    """Where the counts of the rows differ, in regions that were given by hand."""
    saved = model.calibrator
    if not hasattr(saved, "partition_") or _draws(saved):
        return []
    classes = saved.classes_.tolist()
    read = data.with_classes(classes=classes, pos_label=classes[saved.positive_index_])
    tally, _ = read.tally(saved.partition_)
    in_file, in_rows = (
        {name: getattr(one, name).tolist() for name in ("counts", "positives")}
        for one in (saved.tally_, tally)
    )
    return list(differences(in_file, in_rows, "calibrator.state.tally"))


def _idle(model: Any, data: Any, again: Any) -> list[str]:
    """Settings that made no difference on these rows, so that the rows cannot confirm them."""
    settings = settings_of(model)
    names = [] if data.facts(drawn=False).skipped else ["skip_missing"]
    if hasattr(again, "cuts"):
        names += ["pilot"] if again.n_drawn == 0 and data.columns.weight is None else []
    elif not _draws(again):
        names.append("seed")
    return [name for name in names if name in settings]


# Files with several columns of scores


def _several_classes(model: Any, source: "Files", options: Mapping[str, Any]) -> Verification:
    from sklearn.base import clone

    from calibrant.calibrators.regions.weakness import reported_by_caller

    saved = model.calibrator
    scores, labels, arguments = _read(model, source, options)
    found = _other_number(model, len(labels))
    parts = getattr(saved, "calibrators_", None) or (saved.calibrator_,)
    grouped = any(one.guarantee_.statement.groups is not None for one in parts)
    weighted = any(one.tally_.weights is not None for one in parts)
    given = {role for role, name in _ARGUMENTS.items() if name in arguments}
    if (why := _lacking({"group": grouped, "weight": weighted}, given)) is not None:
        return _verification(model, differences=found, unclear=why)
    stated = saved.assumptions_.to_dict()
    try:
        with reported_by_caller():
            again = clone(saved).fit(scores, labels, classes=saved.classes_, **arguments, **stated)
    except CalibrantError as error:
        return _verification(model, differences=found, problem=_no_fit(error))
    return _verification(model, again, differences=[*found, *_compared(model, again)])


def _held_out(model: Any, source: "Files", options: Mapping[str, Any]) -> Verification:
    """Count the rows again. Their limits depend on an order that no file has."""
    import numpy as np

    saved = model.calibrator
    scores, labels, _ = _read(model, source, options)
    several = _has_several_classes(saved)
    parts = saved.calibrators_ if several else (saved,)
    positive = saved.classes_.tolist() if several else [saved.guarantee_.positive_label]
    columns = np.asarray(scores, dtype=np.float64).reshape(len(labels), len(parts))
    is_label = np.array([[label == one for one in positive] for label in labels])
    found = _other_number(model, len(labels))
    for place, one in enumerate(parts):
        region = one.partition_.regions_of(columns[:, place])
        kept = {"counts": region, "positives": region[is_label[:, place]]}
        in_rows = {
            name: np.bincount(of_rows, minlength=one.partition_.n_regions).tolist()
            for name, of_rows in kept.items()
        }
        in_file = {name: getattr(one.tally_, name).tolist() for name in in_rows}
        found += differences(in_file, in_rows, f"calibrator.calibrators[{place}].tally")
    own = getattr(saved, "own_probabilities_", None)
    if own is not None:
        pair = (own.tolist(), np.sort(columns[is_label]).tolist())
        found += differences(*pair, "calibrator.own_probabilities")
    return _verification(model, differences=found, unclear=_HELD_OUT)


def _read(model: Any, source: "Files", options: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """Scores, with one column for each class if there are several, labels, groups and weights."""
    import numpy as np

    names = _score_columns(model, options)
    wanted = {f"score {place}" if place else "score": name for place, name in enumerate(names)}
    roles = list(wanted)
    wanted |= {part: options[part] or model.columns.get(part) for part in ("label", *_ARGUMENTS)}
    wanted["label"] = wanted["label"] or "label"
    found = read_columns(source, wanted)
    if options["skip_missing"]:
        kept = [row for row, label in enumerate(found["label"]) if label is not None]
        found = {part: [values[row] for row in kept] for part, values in found.items()}
    labels = found["label"]
    if all(isinstance(one, str) for one in model.calibrator.classes_.tolist()):
        # a file of text may have read a label as a number
        labels = [f"{label:g}" if isinstance(label, float) else label for label in labels]
    arguments = {name: found[part] for part, name in _ARGUMENTS.items() if part in found}
    try:
        columns = [np.array(found[role], dtype=np.float64) for role in roles]
    except (TypeError, ValueError):
        raise RefusedError("--score", "name columns of numbers", got=", ".join(names)) from None
    return np.column_stack(columns), labels, arguments


def _score_columns(model: Any, options: Mapping[str, Any]) -> list[str]:
    """The columns of scores: as given, as in the file, or named like the classes."""
    classes = model.calibrator.classes_.tolist()
    given = options["score"] or model.columns.get("score")
    if not _has_several_classes(model.calibrator):
        return [given or "score"]
    names = [name.strip() for name in given.split(",")] if given else list(map(str, classes))
    if len(names) != len(classes):
        rule = f"name {counted(len(classes), 'column')}, with commas, in the order of {classes}"
        raise RefusedError("--score", rule, got=", ".join(map(repr, names)))
    return names


def _other_number(model: Any, n_rows: int) -> list[Difference]:
    return list(differences(model.provenance.get("rows", n_rows), n_rows, "provenance.rows"))
