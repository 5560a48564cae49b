"""`calibrant verify`: recompute a guarantee, and say whether it stands."""

import textwrap
from dataclasses import asdict
from typing import Any

from calibrant.cli import _options as option
from calibrant.cli._comparison import Check, in_other_order, on_provenance, same_data
from calibrant.cli._errors import message_of
from calibrant.cli._input import files
from calibrant.cli._latest import latest
from calibrant.cli._model import DamagedError, columns_for, read_model, settings_of, text_types
from calibrant.cli._output import note, print_json, say, width
from calibrant.cli._show import guarantee_json, result_json, show, show_guarantee
from calibrant.cli._verify_model import PROOF, recomputed
from calibrant.cli._verify_others import OTHER_PROOF, comparison_of
from calibrant.cli._verify_threshold import THRESHOLD_PROOF, found_again
from calibrant.cli._words import in_options
from calibrant.text.sentences import render

_ROLES = ("score", "label", "segment", "weight", "id", "group")
_ASSUMED = (
    "assumed, as no data can show it: method, bins and seed were not chosen by looking at "
    "these labels"
)
_NOT_CHECKED = 3  # exit code
_COLOURS = {True: "green", False: "red", None: "yellow"}


@option.command("Does the guarantee hold up? Recompute it.")
@option.model
@option.data
@option.model_score
@option.column("label", "Column of outcomes. Default: as in fit.")
@option.model_segment
@option.weight
@option.row_id
@option.group
@option.skip_missing
@option.reading
@option.common
def command(**options: Any) -> int:
    """Fit the model again from DATA, and say whether its guarantee stands.

    MODEL is a file from calibrant fit or calibrant threshold, or any file of save_model. DATA are
    the rows it was made from, in any format. Give them in the same order, unless it was made with
    --id or --group. Column names come from the model file, and the same rows are skipped as before.
    For several classes, --score names one column for each, with commas. Exit code 0: everything
    was recomputed, and the guarantee stands; 1: it does not stand, or nothing is guaranteed; 3: a
    part could not be recomputed from these rows, such as bins that were given by hand, or rows in
    another order. The checks say what was compared, and what was not.

    Examples
    --------
    calibrant verify model.json scores.csv
    calibrant verify threshold.json scores.csv
    calibrant verify model.json scores.parquet --json && echo stands
    calibrant verify classes.json scores.csv --score p_cat,p_dog,p_owl --label animal
    """
    try:
        model = read_model(options["model"], any_kind=True)
    except DamagedError as error:
        return _print([Check("model file", False, message_of(error))], options["as_json"])
    if (compared := comparison_of(model.calibrator)) is not None:
        with files(options) as source:
            again, found = compared(model, source, options)
        checks = [_complete(model), *found]
        return _print(checks, options["as_json"], model, again, proof=OTHER_PROOF)
    guarantee = getattr(model.calibrator, "guarantee_", None)
    if guarantee is not None and guarantee.epsilon is None:
        nothing = Check("guarantee", False, guarantee_json(model.calibrator)["sentence"])
        return _print([nothing], options["as_json"], model)
    with files(options) as source:
        columns = columns_for(model, source, options, *_ROLES)
        data = _rows(model, source, columns, options)
        checks = [_complete(model)]
        if guarantee is not None and not guarantee.is_proved:
            checks.append(
                Check(
                    "guarantee",
                    False,
                    f"nothing is proved: {render(guarantee.caveat or '', in_options)}",
                )
            )
        rows = same_data(model, data)
        again, found = (
            recomputed(model, data) if guarantee is not None else found_again(model, data)
        )
        checks += [*rows.checks, *(in_other_order(found) if rows.differs == "order" else found)]
        checks += on_provenance(model, columns)
    proof = PROOF if guarantee is not None else THRESHOLD_PROOF
    return _print(checks, options["as_json"], model, again, rows.differs, proof=proof)


def _complete(model: Any) -> Check:
    return Check("model file", True, f"complete, checksum begins {model.fingerprint}")


def _rows(model: Any, source: Any, columns: dict[str, Any], options: dict[str, Any]) -> Any:
    """The rows that the model was made from, according to its settings."""
    settings = settings_of(model)
    types = text_types(model, label=columns["label"], segment=columns["segment"])
    skip = options["skip_missing"] or settings.get("skip_missing") is True
    data = source.scored(columns, types=types, skip_missing=skip)
    if settings.get("holdout") == "last":
        data, _ = latest(data, settings.get("time"), settings.get("calibration_size"))
    return data


def _print(
    checks: list[Check],
    as_json: bool,
    model: Any = None,
    again: Any = None,
    differs: str | None = None,
    proof: tuple[str, ...] = PROOF,
) -> int:
    """Print the verdict and the checks.

    The guarantee stands only if every part of it was recomputed.
    """
    found = {check.name: check.stands for check in checks}
    missing = [name for name in proof if found.get(name) is None]
    stands = False if False in found.values() else None if missing else True
    code = {True: 0, False: 1, None: _NOT_CHECKED}[stands]
    if as_json:
        said = _said(again) if stands else {"sentence": None, "notes": []}
        print_json(
            {
                "command": "verify",
                "stands": stands,
                "differs": differs,
                "checks": [asdict(check) for check in checks],
                **said,
                "assumed": [_ASSUMED] if stands else [],
                "model": None if model is None else model.fingerprint,
            }
        )
        return code
    say(_verdict(checks, stands, missing, model, differs), bold=True, fg=_COLOURS[stands])
    if stands:
        _show(again)
        note(_ASSUMED)
    say()
    marks = {True: "ok", False: "NO", None: "--"}
    size = max(len(check.name) for check in checks)
    for check in checks:
        head = f"  {marks[check.stands]}  {check.name:<{size}}  "
        say(
            textwrap.fill(
                check.text, width(), initial_indent=head, subsequent_indent=" " * len(head)
            )
        )
    return code


def _verdict(
    checks: list[Check], stands: bool | None, missing: list[str], model: Any, differs: str | None
) -> str:
    if model is None:
        return "The guarantee does not stand: the model file is not as it was written."
    if checks[0].name == "guarantee":
        return "There is no guarantee to verify."
    if stands:
        return "The guarantee stands."
    if stands is None and differs == "order":
        return "The guarantee is not checked: these are its rows, but in a different order."
    if stands is None:
        return f"The guarantee is not fully checked: {', '.join(missing)}."
    return (
        "The guarantee does not"
        f" stand{': these are different rows' if differs == 'rows' else ' for these data'}."
    )


def _said(again: Any) -> dict[str, Any]:
    said = guarantee_json(again) if hasattr(again, "guarantee_") else result_json(again)
    return {name: said[name] for name in ("sentence", "notes")}


def _show(again: Any) -> None:
    if hasattr(again, "guarantee_"):
        show_guarantee(again, brief=True, bold=False)
    else:
        show(again, brief=True, bold=False)
