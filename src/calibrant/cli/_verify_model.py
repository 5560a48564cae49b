"""`calibrant verify` for calibrators: refit from the rows, and compare everything that was learned
and stated.
"""

from dataclasses import asdict, fields, replace
from typing import Any

from calibrant.cli._comparison import Check, close, difference, fault_of, undecided
from calibrant.cli._errors import RefusedError, message_of
from calibrant.cli._methods import METHODS, PARAMETERS, Settings
from calibrant.cli._model import settings_of
from calibrant.cli._show import guarantee_json
from calibrant.text.numbers import counted, upper
from calibrant.text.sentences import shown

PROOF = (
    "regions",
    "counts",
    "positives",
    "epsilon",
    "limits",
    "score range",
    "sentence",
    "settings",
)
"""The parts of a guarantee."""
_SAID = ("notes", "is_proved", "confidence_level", "method", "theorem", "assumptions")
_OF_ROWS = (
    "method",
    "seed",
    "skip_missing",
    "holdout",
    "time",
    "calibration_size",
    "weighted",
)
"""Settings that are not parameters: they choose the calibrator, the draw and the rows, as `verify`
does.
"""


def recomputed(model: Any, data: Any) -> tuple[Any, list[Check]]:
    """The refitted model, if it can be refitted, and the comparisons with it.

    The parameters are those of the saved calibrator. Only the seed is taken from the settings.
    """
    from calibrant.errors import InvalidTypeError, InvalidValueError
    from calibrant.params.labels import UnexpectedLabelsError

    calibrator = model.calibrator
    settings = settings_of(model)
    if not hasattr(calibrator, "partition_"):
        return _without_regions(model, data)
    by_command = bool(settings)
    labels = {
        "classes": tuple(calibrator.classes_.tolist()),
        "pos_label": calibrator.guarantee_.positive_label,
    }
    if (why := _why_not(model, data)) is not None:
        return None, [*unchecked("regions", why), _same_settings(model, data)]
    try:
        again = _fitted_again(calibrator, data, labels, settings.get("seed"))
    except UnexpectedLabelsError as error:
        rule = f"be those that the model was fitted on, {list(labels['classes'])}"
        raise RefusedError("the labels", rule, got=error.got) from None
    except (InvalidValueError, InvalidTypeError) as error:
        failed = Check("regions", False, f"the data cannot be cut as saved: {message_of(error)}")
        checks = (
            [failed, *unchecked("counts")]
            if by_command
            else unchecked("regions", message_of(error))
        )
        return None, [*checks, _same_settings(model, data)]
    if again.partition_.fingerprint == calibrator.partition_.fingerprint:
        regions = counted(calibrator.partition_.n_regions, "region")
        same = Check("regions", True, f"{regions}, cut from the data as saved")
        learned = [
            *_same_counts(calibrator, again.tally_),
            *_same_guarantee(model, again),
        ]
        return again, [
            same,
            *learned,
            _same_range(calibrator, again),
            _same_sentence(model, again),
            _same_settings(model, data),
        ]
    return None, [
        *_other_regions(model, data, again, labels),
        _same_settings(model, data),
    ]


def _without_regions(model: Any, data: Any) -> tuple[Any, list[Check]]:
    """The refitted model and comparisons for a calibrator whose statement is about subgroups, not
    regions of a score.
    """
    from calibrant.errors import InvalidTypeError, InvalidValueError

    calibrator = model.calibrator
    labels = {
        "classes": tuple(calibrator.classes_.tolist()),
        "pos_label": calibrator.guarantee_.positive_label,
    }
    try:
        again = _fitted_again(calibrator, data, labels, settings_of(model).get("seed"))
    except (InvalidValueError, InvalidTypeError) as error:
        return None, [
            *unchecked("regions", message_of(error)),
            _same_settings(model, data),
        ]
    said = guarantee_json(calibrator)
    found = guarantee_json(again)
    names = [region["region"] for region in said["regions"]]
    same = names == [region["region"] for region in found["regions"]]
    of_all = counted(len(names), "subgroup")
    regions = Check(
        "regions",
        same,
        f"{of_all}, as saved" if same else "the data define other subgroups",
    )
    if not same:
        return None, [regions, *unchecked("counts"), _same_settings(model, data)]
    counts = [
        Check(
            name,
            said_rows == found_rows,
            f"the same in all {of_all}" if said_rows == found_rows else "different",
        )
        for name, said_rows, found_rows in (
            (name, _column(said, key), _column(found, key))
            for name, key in (("counts",) * 2, ("positives",) * 2)
        )
    ]
    learned = [
        *_same_guarantee(model, again),
        _same_range(calibrator, again),
        _same_sentence(model, again),
    ]
    return again, [regions, *counts, *learned, _same_settings(model, data)]


def _column(guarantee: dict[str, Any], name: str) -> list[Any]:
    """One entry of every region."""
    return [region[name] for region in guarantee["regions"]]


def _why_not(model: Any, data: Any) -> str | None:
    """Why a model cannot be refitted from these rows; None if it can."""
    calibrator = model.calibrator
    if hasattr(calibrator, "partial_fit"):
        return "a stream depends on when its rows arrived, which the data do not show"
    if calibrator.tally_.weights is not None and data.columns.weight is None:
        return "this needs the column of weights, --weight"
    statement = calibrator.guarantee_.statement
    has_groups = calibrator.tally_.groups is not None or statement.groups is not None
    if (has_groups or statement.of_groups) and data.columns.group is None:
        return "this needs the column of groups, --group"
    return None


def _other_regions(model: Any, data: Any, again: Any, labels: dict[str, Any]) -> list[Check]:
    """What can be said if the data cut other regions than those in the file."""
    calibrator = model.calibrator
    by_command = bool(settings_of(model))
    if calibrator.guarantee_.draws_rows:
        if not by_command:
            return unchecked("regions", "the model file does not say which rows cut them")
        return [
            Check("regions", False, f"the data cut other regions{_by_position(data)}"),
            *unchecked("counts"),
        ]
    tally, _ = data.with_classes(**labels).tally(calibrator.partition_)
    counts = _same_counts(calibrator, tally)
    if by_command:
        others = Check("regions", False, "the data cut other regions")
        return [others, *counts, *_same_guarantee(model, again)[:1], *unchecked("limits")]
    given = (
        "not checked: they are not cut as the parameters specify; if they were chosen by looking at"
        " labels, they prove nothing"
    )
    return [Check("regions", None, given), *counts, *unchecked("epsilon")]


def _by_position(data: Any) -> str:
    if data.columns.keyed:
        return ""
    return "; rows were drawn by position: give them in the order of fit, or fit with --id"


def unchecked(
    first: str, why: str = "this needs the same regions, cut by the same rows"
) -> list[Check]:
    """All parts of the guarantee from this one on, except for the settings."""
    return [Check(name, None, f"not checked: {why}") for name in PROOF[PROOF.index(first) : -1]]


def _fitted_again(calibrator: Any, data: Any, labels: dict[str, Any], seed: object) -> Any:
    from sklearn.base import clone

    from calibrant.calibrators.regions.weakness import reported_by_caller

    again = clone(calibrator).set_params(pos_label=labels["pos_label"])
    if "attributes" in again.get_params(deep=False):  # they may have come as a frame
        again.set_params(attributes=list(getattr(calibrator, "_attribute_names", ())) or None)
    if type(seed) is int and "random_state" in again.get_params(deep=False):
        again.set_params(random_state=seed)
    with reported_by_caller():
        return again.fit(data, classes=labels["classes"], **calibrator.stated_.arguments())


def _same_counts(calibrator: Any, tally: Any) -> list[Check]:
    import numpy as np

    checks = []
    for name in ("counts", "positives"):
        new = getattr(tally, name)
        old = getattr(calibrator.tally_, name)
        off = int(np.count_nonzero(new != old))
        total = int(new.sum())
        of_all = counted(old.size, "region")
        text = f"{total:,}; the model file says {int(old.sum()):,}, and {off} of {of_all} differ"
        checks.append(Check(name, not off, text if off else f"{total:,}, the same in all {of_all}"))
    return checks


def _same_guarantee(model: Any, again: Any) -> list[Check]:
    """Compare epsilon, the limits and everything else that was learned."""
    calibrator = model.calibrator
    said = guarantee_json(calibrator)
    found = guarantee_json(again)
    same = close(said["epsilon"], found["epsilon"])
    other = f"{found['epsilon']!r}; the model file says {said['epsilon']!r}"
    checks = [Check("epsilon", same, upper(said["epsilon"]) if same else other)]
    off = sum(not close(*pair) for pair in zip(said["regions"], found["regions"], strict=False))
    of_all = counted(len(said["regions"]), "region")
    if off:
        return [*checks, Check("limits", False, f"other limits in {off} of {of_all}")]
    learned = difference(calibrator.to_dict()["state"], again.to_dict()["state"])
    follow = f"the limits of all {of_all} follow from the rows"
    text = (
        follow
        if learned is None
        else f"{follow}, but what was learned beyond them differs in {learned}"
    )
    return [*checks, Check("limits", learned is None, text)]


def _same_range(calibrator: Any, again: Any) -> Check:
    """Compare the smallest and the largest score of the fit, beyond which scores are rejected."""
    said = calibrator.score_range_seen_
    found = again.score_range_seen_
    if said is None:
        return Check("score range", True, "the file has none")
    same = found is not None and tuple(said) == tuple(found)
    text = f"{found[0]!r} to {found[1]!r}" if found is not None else "none"
    return Check(
        "score range",
        same,
        text if same else f"{text}; the model file says {said[0]!r} to {said[1]!r}",
    )


def _same_sentence(model: Any, again: Any) -> Check:
    """Check that the texts follow from the rows: those derived from the model, and those in the
    file.
    """
    from calibrant._version import __version__

    unmarked = replace(model.calibrator.guarantee_, read=())
    said = guarantee_json(model.calibrator)
    found = guarantee_json(again)
    guarantee = again.guarantee_
    if (
        not all(close(said[name], found[name]) for name in _SAID[1:])
        or unmarked.details != guarantee.details
    ):
        return Check("sentence", False, f"the rows give: {found['sentence']}")
    written = model.written
    if written.get("sentence") in (None, guarantee.sentence) and written.get("details") in (
        None,
        guarantee.details,
    ):
        return Check("sentence", True, "follows from the rows")
    if "details" not in written or written.get("created_by") != f"calibrant {__version__}":
        other = (
            "not checked: the file has the wording of another release; rely on what is printed here"
        )
        return Check("sentence", None, other)
    return Check("sentence", False, "the one in the file does not follow from its own counts")


def _same_settings(model: Any, data: Any) -> Check:
    """Whether the settings in the file are those with which its calibrator was made."""
    from calibrant.errors import CalibrantError

    if "settings" not in model.provenance:
        return Check("settings", True, "the file has none beyond the parameters of its calibrator")
    told = settings_of(model)
    if (fault := fault_of(told, _rules())) is not None:
        return Check("settings", False, fault)
    known = {entry.name for entry in fields(Settings)}
    if strange := sorted(set(told) - known):
        return Check("settings", None, f"not checked: {', '.join(map(shown, strange))}")
    given: dict[str, Any] = {
        name: _as_given(value) for name, value in told.items() if name in known
    }
    try:
        chosen = Settings(**given)
        made = _made(chosen, model)
        stated = chosen.stated()
    except (CalibrantError, TypeError, ValueError, AttributeError, KeyError) as error:
        said = (
            message_of(error)
            if isinstance(error, CalibrantError)
            else "they are not settings of calibrant fit"
        )
        return Check("settings", False, said)
    return _as_made(told, made, stated, model, data)


def _as_given(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _made(settings: Settings, model: Any) -> Any:
    settings.check(model.columns.get("segment"), model.columns.get("group"))
    if settings.weighted != (model.calibrator.tally_.weights is not None):
        raise RefusedError(
            "weighted of the settings",
            "say whether rows have weights",
            got=shown(settings.weighted),
        )
    return settings.calibrator()


def _as_made(told: Any, made: Any, facts: dict[str, Any], model: Any, data: Any) -> Check:
    """Compare a calibrator made from the settings with the one in the file, parameter by parameter."""
    from calibrant.calibrators.regions.parameters import Stated

    calibrator = model.calibrator
    if type(made) is not type(calibrator):
        here = type(calibrator).__name__
        return Check(
            "settings",
            False,
            f"they make a {type(made).__name__}; the model file has a {here}",
        )
    stated = {PARAMETERS.get(name, name) for name in told} - set(_OF_ROWS)
    parameters = {**asdict(Stated(**facts)), **made.get_params(deep=False)}
    saved = {**asdict(calibrator.stated_), **calibrator.get_params(deep=False)}
    fixed = {"partition"} if told.get("method") in ("binning", "uniform") else set()
    for name in sorted((stated | fixed) & set(parameters) - {"random_state", "pos_label"}):
        if not close(_plain(parameters[name]), _plain(saved[name])):
            text = (
                f"{name} is {shown(parameters[name])} by them; the model file has"
                f" {shown(saved[name])}"
            )
            return Check("settings", False, text)
    of_draw = () if calibrator.guarantee_.draws_rows else ("seed",)
    return Check(
        "settings",
        True,
        f"those that the model was made with{undecided(told, data, of_draw)}",
    )


def _plain(value: Any) -> Any:
    """A parameter in the form in which it is compared: ints become floats."""
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _rules() -> dict[str, Any]:
    """The rule of each setting."""
    from calibrant.params.rules import (
        FRACTION_OR_COUNT,
        OPEN_UNIT,
        TEXT,
        Choice,
        Flag,
        Integer,
        Only,
        Optional,
    )

    return {
        "method": Choice(METHODS),
        "bins": Integer(1) | Only("auto"),
        "confidence": OPEN_UNIT,
        "seed": Integer(0),
        "draw": Integer(1),
        "skip_missing": Flag(),
        "weighted": Flag(),
        "holdout": Optional(Only("last")),
        "time": Optional(TEXT),
        "calibration_size": Optional(FRACTION_OR_COUNT),
    }
