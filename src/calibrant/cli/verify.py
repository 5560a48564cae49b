"""`calibrant verify`: recompute a certificate, and say whether it stands."""

import textwrap
from dataclasses import asdict, dataclass
from typing import Any

from calibrant._numbers import counted, upper
from calibrant._text import render, shown
from calibrant.cli import _options as option
from calibrant.cli._errors import RefusedError, message_of
from calibrant.cli._input import files
from calibrant.cli._latest import latest
from calibrant.cli._model import DamagedError, columns_for, read_model, settings_of, text_types
from calibrant.cli._output import note, print_json, say, width
from calibrant.cli._promise import promise_json, show_sentence
from calibrant.cli._words import in_options

_ROLES = ("score", "label", "segment", "weight", "id", "group")
_CLOSE = 1e-9  # the accuracy of limits: another machine may round otherwise
_PROOF = ("regions", "counts", "positives", "epsilon", "limits", "sentence")  # what the certificate consists of
_ASSUMED = "assumed, as no data can show it: method, bins and seed were not chosen by a look at these labels"
_NOT_CHECKED = 3  # exit code


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison: whether it stands (None: not compared), and what was found."""

    name: str
    stands: bool | None
    text: str


@option.command("Does the certificate stand? Recompute it.")
@option.model
@option.data
@option.columns
@option.weight
@option.row_id
@option.group
@option.skip_missing
@option.reading
@option.common
def command(**options: Any) -> int:
    """Fit the model again from DATA, and say whether its certificate stands.

    DATA are the rows the model was fitted on, in any format. Give them in the same order, unless fit had --id or
    --group. Columns are those of fit, and rows are skipped as in fit. Exit code 0: everything was recomputed, and it
    stands; 1: it does not stand, or nothing is guaranteed; 3: a part could not be recomputed from these rows, such as
    bins that were given by hand.

    Examples
    --------
    calibrant verify model.json scores.csv
    calibrant verify model.json scores.parquet --json && echo stands
    """
    try:
        model = read_model(options["model"])
    except DamagedError as error:
        return _print([Check("model file", False, message_of(error))], None, options["as_json"])
    calibrator, guarantee = model.calibrator, model.calibrator.guarantee_
    if guarantee.epsilon is None:
        return _print([Check("promise", False, promise_json(calibrator)["sentence"])], model, options["as_json"])
    with files(options) as source:
        columns = columns_for(model, source, options, *_ROLES)
        types = text_types(model, label=columns["label"], segment=columns["segment"])
        skip = options["skip_missing"] or settings_of(model).get("skip_missing") is True
        data = source.scored(columns, types=types, skip_missing=skip)
        if settings_of(model).get("holdout") == "last":
            data, _ = latest(data, settings_of(model).get("time"), settings_of(model).get("calibration_size"))
        checks = [Check("model file", True, f"complete, checksum begins {model.fingerprint}")]
        if not guarantee.is_proved:
            checks.append(Check("promise", False, f"nothing is proved: {render(guarantee.caveat or '', in_options)}"))
        again, found = _recomputed(model, data)
        checks += [*_same_data(model, data), *found, *_provenance(model)]
    return _print(checks, model, options["as_json"], again)


def _same_data(model: Any, data: Any) -> list[Check]:
    from calibrant.rows.fingerprint import fingerprint

    seen, saved = fingerprint(data), model.provenance
    checks = [_compared("rows", seen.rows, saved["rows"], *data.facts(drawn=False).notes)] if "rows" in saved else []
    if "groups" in saved and data.columns.group is not None:
        checks.append(_compared("groups", data.n_groups(), saved["groups"]))
    known = saved.get("fingerprint")
    if known is None:
        return [*checks, Check("fingerprint", None, f"{seen}; the model file has none to compare with")]
    same = str(seen) == known
    other = "" if same else f"; the certificate is of {shown(known)}: these are other rows"
    return [*checks, Check("fingerprint", same, f"{seen}{other}")]


def _compared(name: str, here: int, saved: Any, *notes: str) -> Check:
    """Compare a number with that of the certificate."""
    other = "" if here == saved else f"; the certificate is of {shown(saved)}"
    return Check(name, here == saved, "; ".join((f"{here:,}{other}", *notes)))


def _provenance(model: Any) -> list[Check]:
    """What the file says of its origin, which no rows can confirm."""
    told = sorted(set(model.provenance) - {"rows", "groups", "fingerprint", "settings", "id_type", "group_type"})
    return [Check("provenance", None, f"not checked: {', '.join(told)}")] if told else []


def _recomputed(model: Any, data: Any) -> tuple[Any, list[Check]]:
    """The model fitted again, where it can be, and what was compared with it.

    The parameters are those of the saved calibrator. Only the seed is taken from the settings.
    """
    from calibrant._labels import UnexpectedLabelsError
    from calibrant.errors import InvalidTypeError, InvalidValueError
    from calibrant.rows.draw import DRAW_RULE

    calibrator, settings = model.calibrator, settings_of(model)
    drawn, by_command = calibrator.guarantee_.draws_rows, bool(settings)
    labels = {"classes": tuple(calibrator.classes_.tolist()), "pos_label": calibrator.guarantee_.positive_label}
    if hasattr(calibrator, "partial_fit"):
        return None, _unchecked("regions", "a stream depends on when its rows came, which the data do not say")
    if calibrator.tally_.weights is not None and data.columns.weight is None:
        return None, _unchecked("regions", "that takes the column of weights, --weight")
    if calibrator.tally_.groups is not None and data.columns.group is None:
        return None, _unchecked("regions", "that takes the column of groups, --group")
    if drawn and by_command and settings.get("draw") != DRAW_RULE:
        return None, _unchecked("regions", "rows were drawn by an earlier rule")
    try:
        again = _fitted_again(calibrator, data, labels, settings.get("seed"))
    except UnexpectedLabelsError as error:
        rule = f"be those that the model was fitted on, {list(labels['classes'])}"
        raise RefusedError("the labels", rule, got=error.got) from None
    except (InvalidValueError, InvalidTypeError) as error:
        failed = Check("regions", False, f"the data cannot be cut as saved: {message_of(error)}")
        return None, [failed, *_unchecked("counts")] if by_command else _unchecked("regions", message_of(error))
    regions = counted(calibrator.partition_.n_regions, "region")
    if again.partition_.fingerprint == calibrator.partition_.fingerprint:
        same = Check("regions", True, f"{regions}, cut from the data as saved")
        return again, [same, *_same_counts(calibrator, again.tally_), *_same_guarantee(model, again)]
    if drawn:
        other = f"the data cut other regions{_why(model, data)}"
        return None, [Check("regions", False, other), *_unchecked("counts")] if by_command else _unchecked(
            "regions", "the model file does not say which rows cut them"
        )
    tally, _ = data.with_classes(**labels).tally(calibrator.partition_)
    counts = _same_counts(calibrator, tally)
    if by_command:
        others = Check("regions", False, "the data cut other regions")
        return None, [others, *counts, *_same_guarantee(model, again)[:1], *_unchecked("limits")]
    given = "not checked: they are not cut as the parameters say; chosen by a look at labels, they would prove nothing"
    return None, [Check("regions", None, given), *counts, *_unchecked("epsilon")]


def _unchecked(first: str, why: str = "that takes the same regions, cut by the same rows") -> list[Check]:
    """All parts of the certificate from this one on."""
    return [Check(name, None, f"not checked: {why}") for name in _PROOF[_PROOF.index(first) :]]


def _fitted_again(calibrator: Any, data: Any, labels: dict[str, Any], seed: object) -> Any:
    from sklearn.base import clone

    again = clone(calibrator).set_params(**labels)
    if type(seed) is int and "random_state" in again.get_params(deep=False):
        again.set_params(random_state=seed)
    return again.fit(data)


def _same_counts(calibrator: Any, tally: Any) -> list[Check]:
    import numpy as np

    checks = []
    for name in ("counts", "positives"):
        new, old = getattr(tally, name), getattr(calibrator.tally_, name)
        off, total = int(np.count_nonzero(new != old)), int(new.sum())
        of_all = counted(old.size, "region")
        text = f"{total:,}; the certificate says {int(old.sum()):,}, and {off} of {of_all} differ"
        checks.append(Check(name, not off, text if off else f"{total:,}, the same in all {of_all}"))
    return checks


def _same_guarantee(model: Any, again: Any) -> list[Check]:
    """Epsilon, the limits with all else that was learned, and the sentence."""
    calibrator = model.calibrator
    said, found = promise_json(calibrator), promise_json(again)
    same = _close(said["epsilon"], found["epsilon"])
    other = f"{found['epsilon']!r}; the certificate says {said['epsilon']!r}"
    checks = [Check("epsilon", same, upper(said["epsilon"]) if same else other)]
    off = sum(not _close(*pair) for pair in zip(said["regions"], found["regions"], strict=False))
    same = not off and _close(calibrator.to_dict()["state"], again.to_dict()["state"])
    of_all = counted(len(said["regions"]), "region")
    other = f"other limits in {off} of {of_all}" if off else "what was learned beyond the limits differs"
    checks.append(Check("limits", same, f"those of all {of_all} follow from the rows" if same else other))
    return [*checks, _same_sentence(model, again, said, found)]


def _same_sentence(model: Any, again: Any, said: dict[str, Any], found: dict[str, Any]) -> Check:
    """Whether the words follow from the rows: those derived from the model, and those that the file holds."""
    names = ("sentence", "remarks", "proved", "confidence_level", "interval", "theorem", "assumptions")
    if not all(_close(said[name], found[name]) for name in names):
        return Check("sentence", False, f"from the rows follows: {found['sentence']}")
    if model.written.get("sentence") in (None, again.guarantee_.sentence()):
        return Check("sentence", True, "follows from the rows")
    from calibrant._version import __version__

    if model.written.get("created_by") != f"calibrant {__version__}":
        other = "not checked: the file has it in the words of another release; rely on what is printed here"
        return Check("sentence", None, other)
    return Check("sentence", False, "the one in the file does not follow from its own counts")


def _close(one: Any, other: Any) -> bool:
    """Whether two plain values are the same, up to the rounding of numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_close(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= _CLOSE
    return bool(one == other)


def _why(model: Any, data: Any) -> str:
    """Why other rows may have been drawn to cut the regions."""
    columns = data.columns
    if not columns.keyed:
        return "; rows were drawn by position: give them in the order of fit, or fit with --id"
    part, name = ("id", columns.id) if columns.group is None else ("group", columns.group)
    known, here = model.provenance.get(f"{part}_type"), str(data.schema.field(name).type)
    return f"; {part}s were {known} in fit and are {here} here" if known not in (None, here) else ""


def _print(checks: list[Check], model: Any, as_json: bool, again: Any = None) -> int:
    """The verdict and the checks. It stands only where every part of the certificate was recomputed."""
    found = {check.name: check.stands for check in checks}
    missing = [name for name in _PROOF if found.get(name) is None]
    stands = False if False in found.values() else None if missing else True
    code = {True: 0, False: 1, None: _NOT_CHECKED}[stands]
    if as_json:
        said = promise_json(again) if stands else {"sentence": None, "remarks": []}
        print_json(
            {
                "command": "verify",
                "stands": stands,
                "checks": [asdict(check) for check in checks],
                "sentence": said["sentence"],
                "remarks": said["remarks"],
                "assumed": [_ASSUMED] if stands else [],
                "model": None if model is None else model.fingerprint,
            }
        )
        return code
    verdict = {
        True: "The certificate stands.",
        False: "The certificate does not stand for these data.",
        None: f"The certificate is not fully checked: {', '.join(missing)}.",
    }[stands]
    if model is None:
        verdict = "The certificate does not stand: the model file is not as it was written."
    elif checks[0].name == "promise":
        verdict = "There is no certificate to verify."
    say(verdict, bold=True, fg={True: "green", False: "red", None: "yellow"}[stands])
    if stands:
        show_sentence(again, bold=False)
        note(_ASSUMED)
    say()
    marks = {True: "ok", False: "NO", None: "--"}
    size = max(len(check.name) for check in checks)
    for check in checks:
        head = f"  {marks[check.stands]}  {check.name:<{size}}  "
        say(textwrap.fill(check.text, width(), initial_indent=head, subsequent_indent=" " * len(head)))
    return code
