"""`calibrant fit`: calibrate, and save the model with its guarantee."""

import shlex
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from calibrant.cli import _options as option
from calibrant.cli._errors import RefusedError
from calibrant.cli._input import STANDARD_INPUT, labelled, typed_segments
from calibrant.cli._latest import latest
from calibrant.cli._methods import Settings
from calibrant.cli._model import provenance_of
from calibrant.cli._output import is_quiet, paragraph, remark, say, warn
from calibrant.cli._report import is_page, shown_names, write_report
from calibrant.cli._show import EXIT_CODES, result_json, show, words_for
from calibrant.cli._signs import on_first_rows, on_time, signs_of, texts_of
from calibrant.cli._target import check_target
from calibrant.text.numbers import rows, upper
from calibrant.text.result import Result, Verdict
from calibrant.text.result_table import ResultTable
from calibrant.text.sentences import render

_FEW_ROWS = 10  # per bin: fewer pilot rows are probably a mistake


@option.command("fit", "Calibrate, with a guarantee.", option.data)
def command(**options: Any) -> int:
    """Calibrate scores, say what is guaranteed, and save the model.

    DATA are files, folders or globs, or - for standard input. They hold scores and outcomes of rows
    that the model was not trained on. With the default method the guarantee holds for every
    distribution of the data.

    Examples
    --------
    calibrant fit scores.csv --score p --label y -o model.json
    calibrant fit scores.csv --score p --label y -o model.json -o report.html
    calibrant fit loans.csv --score p --label defaulted --pos-label Y -o model.json
    calibrant fit 'days/*.parquet' --score p --label y --segment region --bins 10 -o model.json
    calibrant fit old.csv --score p --label y --weight w --weight-bound 8 -o model.json
    calibrant fit visits.csv --score p --label y --group patient -o model.json
    calibrant fit scores.csv --score p --label y --holdout last --time day -o model.json
    calibrant fit balanced.csv --score p --label y --prior 0.02 -o model.json
    calibrant fit scores.csv --score p --label y --require-epsilon 0.05 --json   # for scripts
    """
    settings = _settings_of(options)
    settings.check(options["segment"], options["group"])
    model, report = _output_files(options)
    fitted = _fit(settings, options)
    _write(fitted, model, report, options)
    wanted = options["require_epsilon"]
    gate = None if wanted is None else EpsilonGate(fitted.calibrator, wanted)
    _show(fitted, gate, model, report, options)
    return 0 if gate is None else EXIT_CODES[gate.verdict]


@dataclass(frozen=True, slots=True)
class _Fitted:
    """A fitted calibrator, and the notes on its rows."""

    calibrator: Any
    data: Any
    provenance: dict[str, Any]
    n_skipped: int
    signs: list[dict[str, Any]]
    on_rows: tuple[str, ...]
    """Notes on the fitted rows; shown even with --quiet."""
    advice: tuple[str, ...]
    """Further notes, on options, scores and times that may be mistakes."""

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self.on_rows, *self.advice)


@dataclass(frozen=True, slots=True, repr=False)
class EpsilonGate(Result):
    """Whether a required epsilon is guaranteed."""

    calibrator: Any
    wanted: float

    @property
    def verdict(self) -> Verdict:
        """Whether it is reached."""
        return "ok" if self._epsilon is not None and self._epsilon <= self.wanted else "problem"

    @property
    def _epsilon(self) -> float | None:
        """Epsilon, if it is guaranteed."""
        guarantee = self.calibrator.guarantee_
        known = guarantee.epsilon is not None and guarantee.is_proved
        return float(guarantee.epsilon) if known else None

    @property
    def sentence(self) -> str:
        """The answer, and the guarantee."""
        guaranteed = self.calibrator.guarantee_.sentence
        if self.verdict == "ok":
            return f"The required epsilon, {self.wanted:g}, is reached. {guaranteed}"
        start = f"The required epsilon, {self.wanted:g}, was not reached: "
        if self._epsilon is None:
            return f"{start}nothing is guaranteed. {guaranteed}"
        needed = _rows_needed(self.calibrator, self.wanted)
        return f"{start}epsilon is {upper(self._epsilon)}.{needed} {guaranteed}"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Those of the guarantee."""
        return tuple(self.calibrator.guarantee_.assumptions)

    @property
    def notes(self) -> tuple[str, ...]:
        """Those of the guarantee."""
        return tuple(self.calibrator.guarantee_.notes)

    def tables(self) -> tuple[ResultTable, ...]:
        """Those of the guarantee."""
        return tuple(self.calibrator.guarantee_.tables())


def _settings_of(options: dict[str, Any]) -> Settings:
    """The calibrator settings requested by the options."""
    # rows sampled by label, and a --value, need one value per bin
    of_bins = ("target_prior", "sampling_rates", "value")
    usual = Settings().method if all(options[name] is None for name in of_bins) else "binning"
    given = {
        **options,
        "method": options["method"] or usual,
        "bins": options["n_bins"],
        "confidence": options["confidence_level"],
        "seed": options["random_state"],
        "weighted": options["weight"] is not None,
        "keep_segments": options["keep_segment"] or None,
    }
    return Settings(**{entry.name: given[entry.name] for entry in fields(Settings)})


def _output_files(options: dict[str, Any]) -> list[str | None]:
    """Where the model and the report are written, if anywhere; each at most once."""
    chosen: list[str | None] = []
    for kind, name in ((False, "model file"), (True, "report")):
        given = [path for path in options["output"] if is_page(path) is kind]
        if len(given) > 1:
            got = " and ".join(map(repr, given))
            raise RefusedError("-o", f"name at most one {name}", got=got)
        chosen.append(next(iter(given), None))
    for path in options["output"]:
        check_target({**options, "output": path})
    return chosen


def _fit(settings: Settings, options: dict[str, Any]) -> _Fitted:
    """Fit a calibrator to the rows of the files, and note what is unusual about them."""
    recent: tuple[str, ...] = ()
    with labelled(options) as (source, data, labels):
        dated = on_time(data, options)
        if settings.holdout is not None:
            data, which = latest(data, settings.time, settings.calibration_size)
            recent = (which,)
        if options["keep_segment"]:
            kept = typed_segments(data, options["keep_segment"])
            settings = replace(settings, keep_segments=kept)
        calibrator = settings.fit(data, labels)
        provenance, reach = provenance_of(source, data, asdict(settings))
        facts = data.facts(drawn=False)
        signs = signs_of(data, labels, options)
        first = on_first_rows(data, labels)
    return _Fitted(
        calibrator,
        data,
        provenance,
        facts.skipped,
        signs,
        on_rows=(*recent, *facts.notes),
        advice=(*_on_pilot(settings, calibrator), *_on_scores(settings, reach), *first, *dated),
    )


def _on_pilot(settings: Settings, calibrator: Any) -> list[str]:
    """A note on a small number of pilot rows that may have been meant as a fraction."""
    pilot = settings.pilot
    if not isinstance(pilot, int) or pilot >= _FEW_ROWS * calibrator.partition_.n_regions:
        return []
    purpose, usual = (
        ("to fit the curve", 0.5)
        if settings.method == "scaling-binning"
        else ("to cut the bins", 0.2)
    )
    return [f"{rows(pilot)} drawn {purpose}; a fraction such as {usual} is usual"]


def _on_scores(settings: Settings, reach: Any) -> list[str]:
    """A note on scores that are not probabilities."""
    if reach.is_probability or settings.method == "uniform":
        return []
    alike = ", as percentages do" if reach.is_percentage else ""
    return [
        f"scores range {reach}{alike}: {settings.method} takes any scores, and new ones must have"
        " the same scale"
    ]


def _write(fitted: _Fitted, model: str | None, report: str | None, options: dict[str, Any]) -> None:
    """Write the model file, and the report: what is guaranteed, region by region."""
    from calibrant.answers.model_file import save_model

    overwrite = options["overwrite"]
    columns = fitted.data.columns.named
    provenance = fitted.provenance
    if model is not None:
        how: dict[str, Any] = {"columns": columns, "provenance": provenance, "overwrite": overwrite}
        save_model(fitted.calibrator, model, **how)
    if report is None:
        return
    facts = {
        "files": shown_names(provenance["files"]),
        **columns,
        **{
            name: provenance[name]
            for name in ("rows", "groups", "fingerprint")
            if name in provenance
        },
        "method": provenance["settings"]["method"],
        **({} if model is None else {"model file": model}),
    }
    write_report(
        report,
        fitted.calibrator.guarantee_,
        facts,
        overwrite=overwrite,
        calibrator=fitted.calibrator,
        title=f"Calibration of {facts['files']}",
        notes=fitted.notes,
        warnings=texts_of(fitted.signs),
    )


def _show(
    fitted: _Fitted,
    gate: EpsilonGate | None,
    model: str | None,
    report: str | None,
    options: dict[str, Any],
) -> None:
    """Show the guarantee, where the model is, and what can be done with it."""
    calibrator = fitted.calibrator
    words = words_for(calibrator)
    provenance = fitted.provenance
    more = {
        "model": model,
        "report": report,
        "method": provenance["settings"]["method"],
        "rows": provenance["rows"],
        "skipped_rows": fitted.n_skipped,
        "groups": provenance.get("groups"),
        "fingerprint": provenance["fingerprint"],
        "columns": fitted.data.columns.named,
        "guarantee": result_json(calibrator.guarantee_, words),
        "notes": fitted.notes,
        "signs_of_groups": fitted.signs,
        "required_epsilon": options["require_epsilon"],
        "reached": None if gate is None else gate.verdict == "ok",
    }
    notes = fitted.on_rows if is_quiet() else fitted.notes
    if options["details"]:
        notes = (*notes, *_uncounted(calibrator.guarantee_, provenance["rows"]))
    show(gate or calibrator.guarantee_, options, more, notes=notes, words=words)
    if options["as_json"]:
        return
    for text in texts_of(fitted.signs):
        warn(text)
    say()
    advice = next(iter(calibrator.guarantee_.next_steps), None)
    if calibrator.guarantee_.verdict == "unclear" and advice is not None and not is_quiet():
        paragraph(f"{render(advice.what, words)}.")
    for path in (report, model):
        if path is not None:
            say(f"Saved {path}.")
    if model is None:
        what = "nothing was saved" if report is None else "the model was not saved"
        remark(f"{what}: give -o model.json to save the model")
    elif not is_quiet():
        steps = _next(calibrator, model, options)
        say(f"Next: {steps[0]}" if not options["details"] else "\n  ".join(["Next:", *steps]))


def _uncounted(guarantee: Any, n_rows: int) -> list[str]:
    """Why the rows of the table do not add up to all rows, if rows lie on bin edges."""
    from calibrant.guarantee.statement import Edges

    statement = getattr(guarantee, "statement", None)
    if statement is None or statement.edges is not Edges.SAME_ROWS:
        return []
    rest = n_rows - guarantee.n_rows - statement.looked - statement.cutting
    lie = "lies on a bin edge and is" if rest == 1 else "lie on bin edges and are"
    return [f"{rest:,} of {rows(n_rows)} {lie} not counted"] if rest > 0 else []


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
