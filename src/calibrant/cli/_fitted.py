"""The result of `calibrant fit`: saved, shown, as JSON and as a report."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant.cli._input import STANDARD_INPUT
from calibrant.cli._output import is_quiet, paragraph, remark, saved, say
from calibrant.cli._report import is_page, shown_names, write_report
from calibrant.cli._show import guarantee_json, show_guarantee
from calibrant.cli._signs import show_signs, texts_of
from calibrant.text.numbers import rows, upper


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fitted calibrator, and the notes on its rows."""

    method: str
    calibrator: Any
    columns: Mapping[str, str]
    provenance: Mapping[str, Any]
    n_groups: int | None
    n_skipped: int
    signs: list[dict[str, Any]]
    on_rows: tuple[str, ...]
    """Notes on the fitted rows; shown even with --quiet."""
    advice: tuple[str, ...]
    """Further notes, on options, scores and times that may be mistakes."""

    @property
    def guarantee(self) -> Any:
        return self.calibrator.guarantee_

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self.on_rows, *self.advice)


def _model_file(options: dict[str, Any]) -> str | None:
    """Where the model is saved, if anywhere."""
    return next((path for path in options["output"] if not is_page(path)), None)


def _report_file(options: dict[str, Any]) -> str | None:
    """Where the report is written, if anywhere."""
    return next((path for path in options["output"] if is_page(path)), None)


def write_fit_report(fitted: Fitted, path: str, options: dict[str, Any]) -> None:
    """Write the report: what is guaranteed, region by region."""
    from calibrant.draw.report.pages import Beside

    saved_as = _model_file(options)
    facts = {
        "files": shown_names(fitted.provenance["files"]),
        **fitted.columns,
        "rows": fitted.provenance["rows"],
        **({} if fitted.n_groups is None else {"groups": fitted.n_groups}),
        "fingerprint": fitted.provenance["fingerprint"],
        "method": fitted.method,
        **({} if saved_as is None else {"model file": saved_as}),
    }
    write_report(
        path,
        fitted.guarantee,
        facts,
        overwrite=options["overwrite"],
        calibrator=fitted.calibrator,
        title=f"Calibration of {facts['files']}",
        beside=Beside(notes=fitted.notes),
        warnings=texts_of(fitted.signs),
    )


def save_fit(fitted: Fitted, path: str, options: dict[str, Any]) -> None:
    """Write the model file."""
    from calibrant.answers.model_file import save_model

    save_model(
        fitted.calibrator,
        path,
        columns=fitted.columns,
        provenance=fitted.provenance,
        overwrite=options["overwrite"],
    )


def _has_epsilon(guarantee: Any) -> bool:
    """Whether an epsilon is proved."""
    return guarantee.epsilon is not None and bool(guarantee.is_proved)


def is_reached(guarantee: Any, wanted: float | None) -> bool | None:
    """Whether the required epsilon is proved; None if none is required."""
    if wanted is None:
        return None
    return _has_epsilon(guarantee) and guarantee.epsilon <= wanted


def fit_json(fitted: Fitted, reached: bool | None, options: dict[str, Any]) -> dict[str, Any]:
    """The result as plain values; documented on the command-line page."""
    return {
        "command": "fit",
        "model": _model_file(options),
        "report": _report_file(options),
        "method": fitted.method,
        "rows": fitted.provenance["rows"],
        "skipped_rows": fitted.n_skipped,
        "groups": fitted.n_groups,
        "fingerprint": fitted.provenance["fingerprint"],
        "columns": fitted.columns,
        "guarantee": guarantee_json(fitted.calibrator),
        "notes": fitted.notes,
        "signs_of_groups": fitted.signs,
        "required_epsilon": options["require_epsilon"],
        "reached": reached,
    }


def show_fit(fitted: Fitted, reached: bool | None, options: dict[str, Any]) -> None:
    """Show the guarantee, its assumptions, and where the model is."""
    show_guarantee(fitted.calibrator, notes=fitted.on_rows if is_quiet() else fitted.notes)
    _show_rest(fitted.guarantee, fitted.provenance["rows"])
    show_signs(fitted.signs)
    say()
    if reached is False:
        _show_not_reached(fitted.calibrator, options["require_epsilon"])
    _show_file(fitted.calibrator, options)


def _show_not_reached(calibrator: Any, wanted: float) -> None:
    """Show why the required epsilon was not reached, and how many rows would suffice."""
    found = "nothing is guaranteed"
    needed = ""
    if _has_epsilon(calibrator.guarantee_):
        found = f"epsilon is {upper(calibrator.guarantee_.epsilon)}"
        needed = _rows_needed(calibrator, wanted)
    paragraph(f"The required epsilon, {wanted:g}, was not reached: {found}.{needed}", bold=True)


def _show_file(calibrator: Any, options: dict[str, Any]) -> None:
    """Show where the model was saved, and what can be done with it."""
    report = _report_file(options)
    if report is not None:
        saved(report)
    output = _model_file(options)
    if output is None:
        what = "nothing was saved" if report is None else "the model was not saved"
        remark(f"{what}: give -o model.json to save the model")
        return
    saved(output)
    if not is_quiet():
        say("\n  ".join(["Next:", *_next(calibrator, output, options)]))


def _show_rest(guarantee: Any, n_rows: int) -> None:
    """Explain why the rows of the table do not add up to all rows, if rows lie on bin edges."""
    from calibrant.guarantee.statement import Edges

    said = getattr(guarantee, "statement", None)
    if said is None or said.edges is not Edges.SAME_ROWS:
        return
    rest = n_rows - guarantee.n_rows - said.looked - said.cutting
    if rest > 0:
        paragraph(
            f"{rest:,} of {rows(n_rows)} {'lies on a bin edge' if rest == 1 else 'lie on bin edges'}"
            f" and {'is' if rest == 1 else 'are'} not counted."
        )


def _rows_needed(calibrator: Any, wanted: float) -> str:
    """The number of rows and the method with which the required epsilon is certain to be reached.

    Empty if unknown.
    """
    from calibrant import plan
    from calibrant.errors import CalibrantError
    from calibrant.guarantee.statement import Population

    guarantee = calibrator.guarantee_
    statement = guarantee.statement
    if (
        statement.groups is not None
        or statement.n_segments
        or statement.population is not Population.SAME
    ):
        return ""
    n_bins = len(guarantee.regions)
    try:
        n = plan(epsilon=wanted, n_bins=n_bins, confidence_level=guarantee.confidence_level).n
    except CalibrantError:  # for example a required epsilon of 0
        return ""
    enough = f"{rows(n)} would be enough, whatever their labels, if no scores are tied"
    return f" With --method binning --bins {n_bins}, {enough}."


def _next(calibrator: Any, model: str, options: dict[str, Any]) -> list[str]:
    """Commands that work for this model."""
    from calibrant.answers.table import export_table
    from calibrant.errors import CalibrantError

    mark = [] if options["decimal"] == "." else ["--decimal", options["decimal"]]
    lines = [shlex.join(["calibrant", "apply", model, "new.csv", "-o", "out.csv", *mark])]
    try:
        export_table(calibrator)
        lines.append(
            shlex.join(["calibrant", "export", model, "--to", "sql", "--dialect", "duckdb"])
        )
    except CalibrantError:
        pass
    if calibrator.guarantee_.is_proved and STANDARD_INPUT not in options["data"]:
        extra = [] if options["file_format"] is None else ["--format", options["file_format"]]
        lines.append(shlex.join(["calibrant", "verify", model, *options["data"], *extra, *mark]))
    return lines
