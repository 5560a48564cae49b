"""`calibrant verify`: recompute a certificate, and say whether it stands."""

import textwrap
from dataclasses import asdict, dataclass
from typing import Any

import click

from calibrant._numbers import counted, upper
from calibrant._text import render
from calibrant.cli import _options as option
from calibrant.cli._errors import RefusedError, message_of
from calibrant.cli._input import files
from calibrant.cli._methods import Settings
from calibrant.cli._model import DamagedError, read_model, role_of, text_types
from calibrant.cli._output import print_json, width
from calibrant.cli._promise import promise_json, show_sentence
from calibrant.cli._words import in_options

_CLOSE = 1e-9  # the accuracy of limits: another machine may round otherwise


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
@option.reading
@option.common
def command(**options: Any) -> int:
    """Recompute the counts and the guarantee from DATA, and say whether the model's certificate stands.

    DATA are the rows the model was fitted on, in any format and, unless --split was used without --id, in any order.
    Columns are those of fit. Exit code 0: it stands; 1: it does not, or there is none.

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
    columns = {part: role_of(model, part, options[part]) for part in ("score", "label", "segment", "weight", "id")}
    with files(options) as source:
        types = text_types(model, label=columns["label"], segment=columns["segment"])
        data = source.scored(columns, types=types)
        checks = [Check("model file", True, f"complete, checksum begins {model.fingerprint}")]
        if not guarantee.is_proved:
            checks.append(Check("promise", False, f"nothing is proved: {render(guarantee.caveat or '', in_options)}"))
        checks += [*_same_data(model, data), *_same_counts(model, data)]
    return _print(checks, model, options["as_json"])


def _same_data(model: Any, data: Any) -> list[Check]:
    from calibrant.rows.fingerprint import fingerprint

    seen, saved = fingerprint(data), model.provenance
    checks = []
    if "rows" in saved:
        text = f"{seen.rows:,}" + ("" if seen.rows == saved["rows"] else f"; the certificate is of {saved['rows']:,}")
        checks.append(Check("rows", seen.rows == saved["rows"], text))
    known = saved.get("fingerprint")
    if known is None:
        return [*checks, Check("fingerprint", None, f"{seen}; the model file has none to compare with")]
    same = str(seen) == known
    other = "" if same else f"; the certificate is of {known}: these are other rows"
    return [*checks, Check("fingerprint", same, f"{seen}{other}")]


def _same_counts(model: Any, data: Any) -> list[Check]:
    """Fit the model again where its settings are known, else count over its regions; then compare."""
    import numpy as np

    calibrator = model.calibrator
    labels = {"classes": tuple(calibrator.classes_.tolist()), "pos_label": calibrator.guarantee_.positive_label}
    checks, again, comparable = _same_regions(model, data, labels)
    if not comparable:
        why = "not checked: that takes the same regions, cut by the same rows"
        return [*checks, *(Check(name, None, why) for name in ("counts", "positives", "epsilon"))]
    if again is None:
        weighted = calibrator.tally_.weights is not None
        tally, _ = data.with_classes(**labels).tally(calibrator.partition_, weighted=weighted)
        guarantee = _guarantee(calibrator, tally)
    else:
        tally, guarantee = again.tally_, again.guarantee_
    for name in ("counts", "positives"):
        new, old = getattr(tally, name), getattr(calibrator.tally_, name)
        off, total = int(np.count_nonzero(new != old)), int(new.sum())
        of_all = counted(old.size, "region")
        text = f"{total:,}; the certificate says {int(old.sum()):,}, and {off} of {of_all} differ"
        checks.append(Check(name, not off, text if off else f"{total:,}, the same in all {of_all}"))
    said, found = calibrator.guarantee_.epsilon, None if guarantee is None else guarantee.epsilon
    if found is None:
        return [*checks, Check("epsilon", None, f"{upper(said)} is claimed; it could not be recomputed")]
    if abs(found - said) <= _CLOSE:
        return [*checks, Check("epsilon", True, upper(said))]
    return [*checks, Check("epsilon", False, f"{found!r}; the certificate says {said!r}")]


def _same_regions(model: Any, data: Any, labels: dict[str, Any]) -> tuple[list[Check], Any, bool]:
    """Cut the regions again; the model made again if they are the same, and whether counts can be compared."""
    from calibrant._labels import UnexpectedLabelsError
    from calibrant.errors import InvalidValueError

    saved, split = model.calibrator.partition_, getattr(model.calibrator, "split", None)
    settings = Settings.from_saved(model.provenance.get("settings"))
    if settings is None:
        unknown = Check("regions", False, "the model file does not say which rows cut them")
        return ([], None, True) if split is None else ([unknown], None, False)
    if settings.drew_by_another_rule:
        return [Check("split", None, "not checked: drawn by an earlier rule")], None, False
    try:
        again = settings.fit(data, labels)
    except UnexpectedLabelsError as error:
        rule = f"be those that the model was fitted on, {list(labels['classes'])}"
        raise RefusedError("the labels", rule, got=error.got) from None
    except InvalidValueError as error:
        return [Check("regions", False, f"the data cannot be cut as saved: {message_of(error)}")], None, False
    if again.partition_.fingerprint == saved.fingerprint:
        return (
            [Check("regions", True, f"{counted(saved.n_regions, 'region')}, cut from the data as saved")],
            again,
            True,
        )
    other = f"the data cut other regions{_why(model, data, settings)}"
    return [Check("regions", False, other)], None, split is None


def _why(model: Any, data: Any, settings: Settings) -> str:
    """Why other rows may have been drawn to cut the regions."""
    if settings.split is None:
        return ""
    if data.columns.id is None:
        return "; rows were drawn by position: give them in the order of fit, or fit with --id"
    known, here = model.provenance.get("id_type"), str(data.schema.field(data.columns.id).type)
    return f"; ids were {known} in fit and are {here} here" if known not in (None, here) else ""


def _guarantee(calibrator: Any, tally: Any) -> Any:
    """The guarantee that follows from other counts over the same regions; None where it takes more than counts."""
    from calibrant.calibrators.base import ScoreCalibrator
    from calibrant.errors import CalibrantError

    state = calibrator.to_dict()
    if set(state["state"]) != {"partition", "tally"}:
        return None
    try:
        other = {**state, "state": {**state["state"], "tally": tally.to_dict()}}
        return ScoreCalibrator.from_dict(other).guarantee_
    except CalibrantError:
        return None


def _print(checks: list[Check], model: Any, as_json: bool) -> int:
    stands = all(check.stands is not False for check in checks)
    calibrator = None if model is None else model.calibrator
    if as_json:
        said = {"sentence": None, "remarks": []} if calibrator is None else promise_json(calibrator)
        print_json(
            {
                "command": "verify",
                "stands": stands,
                "checks": [asdict(check) for check in checks],
                "sentence": said["sentence"],
                "remarks": said["remarks"],
                "model": None if model is None else model.fingerprint,
            }
        )
        return 0 if stands else 1
    verdict = "The certificate stands." if stands else "The certificate does not stand for these data."
    if model is None:
        verdict = "The certificate does not stand: the model file is not as it was written."
    elif checks[0].name == "promise":
        verdict = "There is no certificate to verify."
    click.secho(verdict, bold=True, fg="green" if stands else "red")
    if stands and calibrator is not None:
        show_sentence(calibrator, bold=False)
    click.echo()
    marks = {True: "ok", False: "NO", None: "--"}
    size = max(len(check.name) for check in checks)
    for check in checks:
        head = f"  {marks[check.stands]}  {check.name:<{size}}  "
        click.echo(textwrap.fill(check.text, width(), initial_indent=head, subsequent_indent=" " * len(head)))
    return 0 if stands else 1
