"""`calibrant verify` for files that no command fits: several classes, bands, and held-out rows."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from calibrant.cli._comparison import Check, difference, same_data, same_number
from calibrant.cli._errors import RefusedError, message_of
from calibrant.cli._model import columns_for, text_types
from calibrant.cli._records import read_columns
from calibrant.text.numbers import counted

if TYPE_CHECKING:
    from calibrant.cli._input import Files

Comparison: TypeAlias = Callable[[Any, "Files", Mapping[str, Any]], tuple[Any, list[Check]]]

OTHER_PROOF = ("counts", "limits", "sentence")
"""The parts of their guarantees."""
_BESIDE = ("label", "group", "weight")
_GROUPS = "this needs the column of groups, --group"
_WEIGHTS = "this needs the column of weights, --weight"
_ORDER = (
    "the order in which the held-out rows were bet on is in no file; only the classifier that made"
    " it can find these limits again"
)


def comparison_of(calibrator: Any) -> Comparison | None:
    """How a file of this kind is compared with its rows; None for files of a command.

    It returns what was fitted again, if that is possible, and the comparisons.
    """
    if hasattr(calibrator, "is_refuted_"):
        return _band
    of_one_score = hasattr(calibrator, "positive_index_")
    if of_one_score or not hasattr(calibrator, "classes_"):
        return _held_out if hasattr(calibrator, "moves") else None
    return _several_classes if hasattr(calibrator, "fit") else _held_out


# Bands


def _band(model: Any, source: "Files", options: Mapping[str, Any]) -> tuple[Any, list[Check]]:
    from calibrant.errors import CalibrantError

    saved = model.calibrator
    state = saved.to_dict()
    columns = columns_for(model, source, options, "score", *_BESIDE)
    types = text_types(model, label=columns["label"])
    data = source.scored(columns, types=types, skip_missing=options["skip_missing"])
    checks = list(same_data(model, data).checks)
    if (why := _why_no_band(state, columns)) is not None:
        return None, [*checks, *_unchecked(why)]
    again = type(saved)(
        confidence_level=saved.confidence_level,
        n_cells=saved.n_cells,
        pos_label=saved.classes_.tolist()[saved.positive_index_],
    )
    try:
        again.fit(data, classes=saved.classes_, weight_bound=state.get("weight_bound") or None)
    except CalibrantError as error:
        return None, [*checks, *_unchecked(message_of(error))]
    rows = same_number("counts", again.n_rows_, saved.n_rows_)
    other = difference(state, again.to_dict())
    limits = Check("limits", other is None, _follows(other))
    if other is not None and (columns["group"] or columns["weight"]):
        # the file has no seed, and another seed gives other limits
        why = f"the seed 0 gives another {other}, and the file has no seed"
        limits = Check("limits", None, f"not checked: {why}")
    return again, [*checks, rows, limits, _same_sentence(model, again.guarantee_)]


def _why_no_band(state: Mapping[str, Any], columns: Mapping[str, str | None]) -> str | None:
    """Why a band with this state cannot be found again; None if it can."""
    if state.get("groups", (0, 0))[0] and columns["group"] is None:
        return _GROUPS
    if state.get("weight_bound") and columns["weight"] is None:
        return _WEIGHTS
    return None


# Several classes


def _several_classes(
    model: Any, source: "Files", options: Mapping[str, Any]
) -> tuple[Any, list[Check]]:
    from sklearn.base import clone

    from calibrant.calibrators.regions.weakness import reported_by_caller
    from calibrant.errors import CalibrantError

    saved = model.calibrator
    scores, labels, beside = _rows(model, source, options)
    checks = _same_rows(model, len(labels))
    parts = getattr(saved, "calibrators_", None) or (saved.calibrator_,)
    grouped = any(one.guarantee_.statement.groups is not None for one in parts)
    if grouped and "groups" not in beside:
        return None, [*checks, *_unchecked(_GROUPS)]
    if any(one.tally_.weights is not None for one in parts) and "importance_weight" not in beside:
        return None, [*checks, *_unchecked(_WEIGHTS)]
    try:
        with reported_by_caller():
            again = clone(saved).fit(
                scores, labels, classes=saved.classes_, **beside, **saved.stated_.arguments()
            )
    except CalibrantError as error:
        return None, [*checks, Check("counts", False, message_of(error)), *_unchecked()[1:]]
    here = getattr(again, "calibrators_", None) or (again.calibrator_,)
    pairs = zip(parts, here, strict=True)
    off = sum(_tallies(one) != _tallies(other) for one, other in pairs)
    of_all = counted(len(parts), "table")
    counts = Check(
        "counts",
        not off,
        f"other counts in {off} of {of_all}" if off else f"the same in {of_all} of regions",
    )
    other = difference(saved.to_dict(), again.to_dict())
    limits = Check("limits", other is None, _follows(other))
    return again, [*checks, counts, limits, _same_sentence(model, again.guarantee_)]


def _tallies(calibrator: Any) -> Any:
    """Where the regions are, and what was counted in them."""
    tally = calibrator.tally_
    counts = (tally.counts.tolist(), tally.positives.tolist())
    return calibrator.partition_.fingerprint, counts


# Probabilities that held-out rows prove something about


def _held_out(model: Any, source: "Files", options: Mapping[str, Any]) -> tuple[Any, list[Check]]:
    """Count the proof rows again. Their limits depend on an order that no file has."""
    import numpy as np

    from calibrant.errors import CalibrantError

    saved = model.calibrator
    scores, labels, _ = _rows(model, source, options)
    checks = _same_rows(model, len(labels))
    several = hasattr(saved, "calibrators_")
    classes = saved.classes_.tolist()
    parts = saved.calibrators_ if several else (saved,)
    positive = classes if several else [saved.guarantee_.positive_label]
    columns = np.asarray(scores, dtype=np.float64).reshape(len(labels), len(parts))
    is_label = np.array([[label == one for one in positive] for label in labels])
    try:
        off = 0
        for place, one in enumerate(parts):
            region = one.partition_.regions_of(columns[:, place])
            n_regions = one.partition_.n_regions
            counts = np.bincount(region, minlength=n_regions)
            positives = np.bincount(region[is_label[:, place]], minlength=n_regions)
            same = (counts, positives), (one.tally_.counts, one.tally_.positives)
            off += not all(np.array_equal(*pair) for pair in zip(*same, strict=True))
    except CalibrantError as error:
        return None, [*checks, Check("counts", False, message_of(error)), *_unchecked()[1:]]
    own = getattr(saved, "own_probabilities_", None)
    text = f"{len(labels):,} rows, counted as saved"
    if off:
        text = f"other counts for {off} of {counted(len(parts), 'class', 'classes')}"
    elif own is not None and not np.array_equal(np.sort(columns[is_label]), own):
        off = 1
        text = "the probabilities of the labels, which sets use, are others"
    limits = Check("limits", None, f"not checked: {_ORDER}")
    said = _same_sentence(model, replace(saved.guarantee_, read=()))
    if said.stands:  # but from limits that were read
        said = Check("sentence", None, "not checked: it follows from the limits")
    return None, [*checks, Check("counts", not off, text), limits, said]


# What they have in common


def _rows(
    model: Any, source: "Files", options: Mapping[str, Any]
) -> tuple[Any, list[Any], dict[str, Any]]:
    """Scores, with one column for each class if there are several, labels, groups and weights."""
    import numpy as np

    names = _score_columns(model, options)
    wanted: dict[str, str | None] = dict(zip(_roles(len(names)), names, strict=True))
    for part in _BESIDE:
        wanted[part] = options[part] or model.columns.get(part)
    wanted["label"] = wanted["label"] or "label"
    found = read_columns(source, wanted)
    if options["skip_missing"]:
        kept = [row for row, label in enumerate(found["label"]) if label is not None]
        found = {part: [values[row] for row in kept] for part, values in found.items()}
    labels = found["label"]
    if all(isinstance(one, str) for one in model.calibrator.classes_.tolist()):
        labels = [_text(label) for label in labels]
    arguments = {"group": "groups", "weight": "importance_weight"}
    beside = {name: found[part] for part, name in arguments.items() if part in found}
    try:
        columns = [np.array(found[role], dtype=np.float64) for role in _roles(len(names))]
    except (TypeError, ValueError):
        raise RefusedError("--score", "name columns of numbers", got=", ".join(names)) from None
    return np.column_stack(columns), labels, beside


def _roles(n_columns: int) -> list[str]:
    return ["score", *(f"score {place}" for place in range(1, n_columns))]


def _score_columns(model: Any, options: Mapping[str, Any]) -> list[str]:
    """The columns of scores: as given, as in the file, or named like the classes."""
    classes = model.calibrator.classes_.tolist()
    given = options["score"] or model.columns.get("score")
    if hasattr(model.calibrator, "partition_"):  # of one score
        return [given or "score"]
    names = [name.strip() for name in given.split(",")] if given else list(map(str, classes))
    if len(names) != len(classes):
        rule = f"name {counted(len(classes), 'column')}, with commas, in the order of {classes}"
        raise RefusedError("--score", rule, got=", ".join(map(repr, names)))
    return names


def _text(label: Any) -> Any:
    """A label as text: a file of text may have read it as a number."""
    return f"{label:g}" if isinstance(label, float) else label


def _same_rows(model: Any, n_rows: int) -> list[Check]:
    saved = model.provenance.get("rows")
    return [] if saved is None else [same_number("rows", n_rows, saved)]


def _follows(other: str | None) -> str:
    return "follow from the rows" if other is None else f"the rows give another {other}"


def _unchecked(why: str = "this needs the same rows") -> list[Check]:
    return [Check(name, None, f"not checked: {why}") for name in OTHER_PROOF]


def _same_sentence(model: Any, right: Any) -> Check:
    """Compare the texts of the file with those that the rows, or its own numbers, give."""
    from calibrant._version import __version__

    written = model.written
    same = written.get("sentence") == right.sentence
    if same and written.get("details") in (None, right.details):
        return Check("sentence", True, "follows from the rows")
    if written.get("created_by") != f"calibrant {__version__}":
        return Check("sentence", None, "not checked: the file has the wording of another release")
    return Check("sentence", False, f"the rows give: {right.sentence}")
