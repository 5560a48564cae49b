"""What `calibrant verify` does."""

import textwrap
from dataclasses import dataclass
from typing import Any

import click

from calibrant.cli._errors import RefusedError, in_words, message_of
from calibrant.cli._input import files
from calibrant.cli._methods import Settings
from calibrant.cli._model import DamagedError, read_model, role_of, text_types
from calibrant.cli._output import print_json, width
from calibrant.cli._promise import remarks_of, sentence_of, show_sentence

_CLOSE = 1e-9  # what limits are promised to: another machine may round otherwise
_NOT_CUT = "the data can not be cut as saved"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was compared: whether it stands (None: it could not be compared), and what was found."""

    name: str
    stands: bool | None
    text: str


def verify_files(options: dict[str, Any]) -> int:
    """Compare, print; the exit code."""
    try:
        model = read_model(options["model"])
    except DamagedError as error:
        return _say([Check("model file", False, message_of(error))], None, options)
    guarantee = model.calibrator.guarantee_
    if guarantee.epsilon is None:
        return _say([Check("promise", False, sentence_of(model.calibrator))], model, options)
    settings = Settings.from_saved(model.provenance.get("settings"))
    with files(options["data"], options["file_format"]) as source:
        columns = {
            "score": role_of(model, "score", options["score"]),
            "label": role_of(model, "label", options["label"]),
            "segment": role_of(model, "segment", options["segment"]),
            "weight": options["weight"] or model.columns.get("weight"),
            "id": options["row_id"] or model.columns.get("id"),
        }
        types = text_types(model, label=columns["label"], segment=columns["segment"])
        data = source.scored(columns, threads=options["threads"], quiet=options["quiet"], types=types)
        checks = [Check("model file", True, f"whole, checksum begins {model.fingerprint}")]
        if not guarantee.is_proved:
            checks.append(Check("promise", False, in_words(f"nothing is proved: {guarantee.caveat}")))
        checks += _same_data(model, data)
        checks += _same_counts(model, data, settings)
    return _say(checks, model, options)


def _same_data(model: Any, data: Any) -> list[Check]:
    from calibrant.rows.fingerprint import fingerprint

    seen, saved = fingerprint(data), model.provenance
    checks = []
    if "rows" in saved:
        text = f"{seen.rows:,}" + ("" if seen.rows == saved["rows"] else f"; the certificate is of {saved['rows']:,}")
        checks.append(Check("rows", seen.rows == saved["rows"], text))
    known = saved.get("fingerprint")
    if known is None:
        checks.append(Check("fingerprint", None, f"{seen}; the model file has none to compare with"))
    else:
        text = str(seen) if str(seen) == known else f"{seen}; the certificate is of {known}: these are other rows"
        checks.append(Check("fingerprint", str(seen) == known, text))
    return checks


def _same_counts(model: Any, data: Any, settings: Settings | None) -> list[Check]:
    """Make the model again where it is known how, else count over its regions."""
    import numpy as np

    calibrator = model.calibrator
    labels = {"classes": tuple(calibrator.classes_.tolist()), "pos_label": calibrator.guarantee_.positive_label}
    checks, again = _same_regions(model, data, settings, labels)
    if again is None:
        if checks and (getattr(calibrator, "split", None) is not None or checks[0].text.startswith(_NOT_CUT)):
            # which rows a split counted is known only where the same rows are drawn again
            why = "not checked: that takes the same regions, cut by the same rows"
            return [*checks, *(Check(name, None, why) for name in ("counts", "positives", "epsilon"))]
        tally, _ = data.tally(calibrator.partition_, **labels, weighted=calibrator.tally_.weights is not None)
        guarantee = _guarantee(calibrator, tally)
    else:
        tally, guarantee = again.tally_, again.guarantee_
    for name in ("counts", "positives"):
        new, old = getattr(tally, name), getattr(calibrator.tally_, name)
        off = int(np.count_nonzero(new != old))
        text = f"{int(new.sum()):,}, the same in all {old.size} regions"
        if off:
            text = (
                f"{int(new.sum()):,}; the certificate says {int(old.sum()):,}, and {off} of {old.size} regions differ"
            )
        checks.append(Check(name, not off, text))
    said, found = calibrator.guarantee_.epsilon, None if guarantee is None else guarantee.epsilon
    if found is None:
        return [*checks, Check("epsilon", None, f"{said:.6g} is claimed; it could not be recomputed")]
    same = abs(found - said) <= _CLOSE
    return [*checks, Check("epsilon", same, f"{found:.6g}" + ("" if same else f"; the certificate says {said:.6g}"))]


def _same_regions(
    model: Any, data: Any, settings: Settings | None, labels: dict[str, Any]
) -> tuple[list[Check], Any]:  # fmt: skip
    """What is said of the regions; and the model made again, None where it is not known how or is another."""
    from calibrant._labels import UnexpectedLabelsError
    from calibrant.errors import InvalidValueError

    calibrator = model.calibrator
    if settings is None:
        unknown = Check("regions", False, "the model file does not say which rows cut them")
        return ([] if getattr(calibrator, "split", None) is None else [unknown]), None
    try:
        again = settings.fit(data, labels)
    except UnexpectedLabelsError as error:
        known = f"be those that the model was fitted on, {list(labels['classes'])}"
        raise RefusedError("y", known, error.got) from None
    except InvalidValueError as error:
        return [Check("regions", False, f"{_NOT_CUT}: {message_of(error)}")], None
    saved = calibrator.partition_
    if again.partition_.fingerprint == saved.fingerprint:
        return [Check("regions", True, f"{saved.n_regions} regions, cut from the data as saved")], again
    return [Check("regions", False, f"the data cut other regions{_why(model, data, settings)}")], None


def _why(model: Any, data: Any, settings: Settings | None) -> str:
    """What may be behind another draw of the rows that cut the regions."""
    if settings is None or settings.split is None:
        return ""
    if data.columns.id is None:
        return "; rows were drawn by place: give them in the order of fit, or fit with --id"
    known, here = model.provenance.get("id_type"), str(data.schema.field(data.columns.id).type)
    return f"; ids were {known} in fit and are {here} here" if known not in (None, here) else ""


def _guarantee(calibrator: Any, tally: Any) -> Any:
    """The promise that follows from other counts over the same regions; None where more than counts is needed."""
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


def _say(checks: list[Check], model: Any, options: dict[str, Any]) -> int:
    stands = all(check.stands is not False for check in checks)
    if options["as_json"]:
        print_json(
            {
                "command": "verify",
                "stands": stands,
                "checks": [{"name": check.name, "stands": check.stands, "text": check.text} for check in checks],
                "sentence": None if model is None else sentence_of(model.calibrator),
                "remarks": [] if model is None else remarks_of(model.calibrator),
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
    if stands:
        show_sentence(model.calibrator, bold=False)
    click.echo()
    marks = {True: "ok", False: "NO", None: "--"}
    size = max(len(check.name) for check in checks)
    for check in checks:
        head = f"  {marks[check.stands]}  {check.name:<{size}}  "
        click.echo(textwrap.fill(check.text, width(), initial_indent=head, subsequent_indent=" " * len(head)))
    return 0 if stands else 1
