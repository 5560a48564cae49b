"""Model files, as used by the commands."""

import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from calibrant._optional import pa
from calibrant.cli._errors import RefusedError, message_of
from calibrant.cli._input import with_defaults
from calibrant.text.numbers import nearest, rows

if TYPE_CHECKING:
    from calibrant.answers.model_file import Model
    from calibrant.cli._input import Files
    from calibrant.params.labels import Classes
    from calibrant.sample.sources.arrow import ArrowData


FIT_SETTINGS = ("random_state", "skip_missing", "holdout", "time", "calibration_size")
"""Settings of `calibrant fit` that are not in what it fits."""
THRESHOLD_SETTINGS = ("method", "start", "pilot", "max_group_size", "weight_bound")
"""Settings of `calibrant threshold` that are not in its result."""


class DamagedError(RefusedError):
    """The file is, or was, a model file, but cannot be read."""


def read_model(path: str, needed: str | None = "predict_proba") -> "Model":
    """Read a model file; - is standard input. Errors name the file.

    It holds something of one score that has the `needed` method; None means anything.
    """
    from calibrant.answers.model_file import load_model
    from calibrant.answers.model_text import NotAModelError
    from calibrant.errors import CalibrantError

    try:
        model = load_model(sys.stdin.buffer if path == "-" else path)
    except CalibrantError as error:
        kind = RefusedError if isinstance(error, NotAModelError) else DamagedError
        name = "" if path == "-" else f"{os.path.basename(path)!r}: "
        raise kind(None, name + message_of(error)) from None
    if needed is None:
        return model
    n_classes = len(getattr(model.calibrator, "classes_", ()))
    if n_classes > 2:
        raise RefusedError(
            "the model",
            "have one score for each row",
            got=f"a {type(model.calibrator).__name__} of {n_classes} classes",
            advice="use calibrant.load_model in Python",
        )
    if hasattr(model.calibrator, needed):
        return model
    or_thresholds = ", or thresholds, from calibrant threshold" if needed == "apply" else ""
    raise RefusedError(
        "the model",
        f"be a calibrator, from calibrant fit{or_thresholds}",
        got=f"a {type(model.calibrator).__name__}",
        advice=(
            f"calibrant export {path} --to sql --dialect duckdb, or --to python, makes code that"
            " applies it"
        ),
    )


def settings_of(model: "Model") -> Mapping[str, Any]:
    """The settings saved by `fit`; empty for a model that was saved in another way."""
    settings = model.provenance.get("settings")
    return settings if isinstance(settings, Mapping) else {}


def check_columns(model: "Model", columns: Mapping[str, str | None]) -> None:
    """Reject a model whose columns differ from those that are read."""
    for part in ("score", "label", "segment"):
        known = model.columns.get(part)
        given = columns.get(part)
        if known not in (None, given):
            rule = f"be fitted on the same columns: it was fitted with --{part} {known!r}"
            raise RefusedError("--model", rule, got="none" if given is None else repr(given))


def is_fitted_on(model: "Model", data: Any) -> bool:
    """Whether the rows are those that the model was fitted on, by their fingerprints.

    A fingerprint depends on the scores, labels, segments, weights and groups of all rows, not on
    their order. If the model used a column that is not read here, they cannot be compared.
    """
    from calibrant.sample.fingerprint import TakeFingerprint, fingerprint

    known = model.provenance.get("fingerprint")
    used = [role for role in TakeFingerprint.roles if model.columns.get(role) is not None]
    if known is None or any(getattr(data.columns, role) is None for role in used):
        return False
    seen = fingerprint(data.with_columns(data.columns.only(*used)))
    return str(seen) == str(known)


def check_classes(model: "Model", classes: "Classes") -> None:
    """Reject a model with other classes, or with the other class as the positive one."""
    calibrator = model.calibrator
    known = calibrator.classes_.tolist()
    given = classes.labels.tolist()
    if list(map(_name, known)) != list(map(_name, given)):
        raise RefusedError(
            "--model", f"have the same classes: it was fitted on {known}", got=str(given)
        )
    positive = known[calibrator.positive_index_]
    if _name(positive) != _name(classes.positive):
        rule = f"have the same positive class: it gives the probability of {positive!r}"
        raise RefusedError(
            "--model", rule, got=repr(classes.positive), advice="choose with --pos-label"
        )


def _name(label: object) -> str:
    """A label as text: a whole number is the same in every file format."""
    whole = isinstance(label, bool) or (isinstance(label, float) and label.is_integer())
    return str(int(label) if whole else label)  # type: ignore[call-overload]


def segment_column(model: "Model") -> str | None:
    """The column of segments that the model file names; None for a model without segments."""
    partition = getattr(model.calibrator, "partition_", None)
    segmented = None not in getattr(model.calibrator, "ends", {None})  # of a Threshold
    if partition is not None:
        segmented = partition.has_segments
    if not segmented:
        return None
    if "segment" not in model.columns:
        advice = 'save it with save_model(..., columns={"segment": name})'
        raise RefusedError("the model file", "name its column of segments", advice=advice)
    return model.columns["segment"]


def columns_for(
    model: "Model", source: "Files", options: Mapping[str, Any], *roles: str
) -> dict[str, str | None]:
    """Columns by role: as given, as in the model file, or by their names."""
    named = {role: options.get(role) or model.columns.get(role) for role in roles}
    return with_defaults(source, {**named, "segment": segment_column(model)})


def rows_for(
    model: "Model", source: "Files", options: Mapping[str, Any], **how: Any
) -> "ArrowData":
    """The rows that a model is applied to: columns in their roles, and scores on the model's scale."""
    from calibrant.sample.facts import Reach, familiar_limits

    columns = columns_for(model, source, options, "score")
    data = source.scored(columns, types=text_types(model, segment=columns["segment"]), **how)
    seen = getattr(model.calibrator, "score_range_seen_", None)
    if options["allow_out_of_range"] or seen is None:
        return data
    if beyond := model.calibrator.count_out_of_range(data):
        low, high = (nearest(limit) for limit in familiar_limits(seen))
        rule = f"lie between {low} and {high}, as the model was fitted on scores {Reach(*seen)}"
        advice = "give scores from the same model, on the same scale, or --allow-out-of-range"
        raise RefusedError("the scores", rule, got=f"{rows(beyond)} beyond", advice=advice)
    return data


def text_types(model: "Model", **columns: str | None) -> dict[str, Any]:
    """Arrow types for label and segment columns read from text: the types of the model's labels and
    segments.
    """
    kinds = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
    fitted: Any = model.calibrator
    if hasattr(fitted, "cuts"):
        of_cuts = [cut.segment for cut in fitted.cuts if cut.segment is not None]
        known = {"label": [fitted.positive_label], "segment": of_cuts}
    else:
        segments = getattr(getattr(fitted, "partition_", None), "segments", None)
        known = {"label": fitted.classes_.tolist(), "segment": list(segments or ())}
    types = {}
    for part, name in columns.items():
        found = {type(entry) for entry in known[part]}
        if name is not None and len(found) == 1:
            types[name] = kinds.get(found.pop(), pa.string())
    return types


def provenance_of(
    source: "Files", data: Any, settings: Mapping[str, Any]
) -> tuple[dict[str, Any], Any]:
    """The origin of the model, with nothing about the machine; and the range of the scores."""
    from calibrant._version import __version__
    from calibrant.sample.fingerprint import fingerprint

    seen = fingerprint(data, ordered=True)
    facts = {
        "rows": seen.rows,
        "fingerprint": str(seen),
        **({} if seen.in_order is None else {"order": seen.in_order}),
        "files": [os.path.basename(name) for name in source.names[:100]],
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "calibrant": __version__,
        "settings": dict(settings),
        **key_types(data),
    }
    if data.columns.group is not None:
        facts["groups"] = data.n_groups()
    return facts, seen.reach


def key_types(data: Any) -> dict[str, str]:
    """The types of the columns of ids and groups, by their name in a file."""
    return {
        f"{part}_type": str(data.schema.field(name).type)
        for part in ("id", "group")
        if (name := getattr(data.columns, part)) is not None
    }
