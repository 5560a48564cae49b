"""`calibrant fit`: calibrate, and save the model with its guarantee."""

from dataclasses import dataclass
from typing import Any

from calibrant.cli import _options as option
from calibrant.cli._errors import RefusedError
from calibrant.cli._input import labelled
from calibrant.cli._latest import latest
from calibrant.cli._methods import check_chosen, fitted, method_of
from calibrant.cli._model import FIT_SETTINGS, provenance_of
from calibrant.cli._output import is_quiet
from calibrant.cli._report import is_page, shown_names
from calibrant.cli._show import EXIT_CODES, answer, result_json, words_for
from calibrant.cli._signs import on_first_rows, on_time, signs_of, texts_of
from calibrant.cli._target import check_target
from calibrant.text.numbers import rows, upper
from calibrant.text.picture import Picture
from calibrant.text.quantity import NextStep
from calibrant.text.result import Result, Verdict
from calibrant.text.result_table import ResultTable

_FACTS = ("rows", "groups", "fingerprint")
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
    from calibrant.answers.model_file import save_model

    method = method_of(options)
    check_chosen(method, options)
    model, report = _output_files(options)
    calibrator, provenance, on_rows = _fitted(method, options)
    columns = on_rows["columns"]
    if model is not None:
        how: dict[str, Any] = {"columns": columns, "provenance": provenance}
        save_model(calibrator, model, **how, overwrite=options["overwrite"])
    guarantee = calibrator.guarantee_
    wanted = options["require_epsilon"]
    gate = None if wanted is None else EpsilonGate(calibrator, wanted)
    words = words_for(calibrator)
    about = {"method": method, **{name: provenance.get(name) for name in _FACTS}}
    files = shown_names(provenance["files"])
    more = {
        "model": model,
        "report": report,
        **about,
        **on_rows,
        "guarantee": result_json(guarantee, words),
        "required_epsilon": wanted,
        "reached": None if gate is None else gate.verdict == "ok",
    }
    shown = [*on_rows["notes"], *_uncounted(guarantee, provenance["rows"], options)]
    if guarantee.verdict == "unclear" and not is_quiet():
        shown += [step.what for step in guarantee.next_steps[:1]]
    answer(
        gate or guarantee,
        options,
        {"files": files, **columns, **{name: fact for name, fact in about.items() if fact}},
        more,
        notes=shown,
        warnings=texts_of(on_rows["signs_of_groups"]),
        words=words,
        entry=None,
        calibrator=calibrator,
        title=f"Calibration of {files}",
    )
    return 0 if gate is None else EXIT_CODES[gate.verdict]


def _fitted(method: str, options: dict[str, Any]) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """The calibrator, where it came from, and entries of the JSON object about its rows.

    With --quiet, the notes leave out those on options, scores and times that may be mistakes.
    """
    notes: list[str] = []
    with labelled(options) as (source, data, labels):
        dated = on_time(data, options)
        if options["holdout"] is not None:
            data, which = latest(data, options["time"], options["calibration_size"])
            notes.append(which)
        calibrator = fitted(method, options, data, labels)
        settings = {name: options[name] for name in FIT_SETTINGS}
        provenance, reach = provenance_of(source, data, settings)
        facts = data.facts(drawn=False)
        notes += facts.notes
        if not is_quiet():
            on_options = _on_options(method, options["pilot"], calibrator, reach)
            notes += [*on_options, *on_first_rows(data, labels), *dated]
        on_rows = {
            "columns": data.columns.named,
            "skipped_rows": facts.skipped,
            "notes": notes,
            "signs_of_groups": signs_of(data, labels, options),
        }
    return calibrator, provenance, on_rows


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
        return f"{start}epsilon is {upper(self._epsilon)}. {guaranteed}"

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        """How many rows would be enough, and the steps of the guarantee."""
        of_guarantee = tuple(self.calibrator.guarantee_.next_steps)
        if self.verdict == "ok":
            return of_guarantee
        arguments = f"epsilon={self.wanted:g}"
        command = f"plan --epsilon {self.wanted:g}"
        needed = NextStep("See how many rows are enough", f"calibrant.plan({arguments})", command)
        return (needed, *of_guarantee)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Those of the guarantee."""
        return tuple(self.calibrator.guarantee_.assumptions)

    @property
    def notes(self) -> tuple[str, ...]:
        """Those of the guarantee."""
        return tuple(self.calibrator.guarantee_.notes)

    def pictures(self) -> tuple[Picture, ...]:
        """Those of the guarantee."""
        return tuple(self.calibrator.guarantee_.pictures())

    def tables(self) -> tuple[ResultTable, ...]:
        """Those of the guarantee."""
        return tuple(self.calibrator.guarantee_.tables())


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


def _on_options(method: str, pilot: Any, calibrator: Any, reach: Any) -> list[str]:
    """Notes on options and scores that may be mistakes."""
    notes = []
    if isinstance(pilot, int) and pilot < _FEW_ROWS * calibrator.partition_.n_regions:
        of_curve = method == "scaling-binning"
        purpose, usual = ("to fit the curve", 0.5) if of_curve else ("to cut the bins", 0.2)
        notes.append(f"{rows(pilot)} drawn {purpose}; a fraction such as {usual} is usual")
    if not reach.is_probability and method != "uniform":
        alike = ", as percentages do" if reach.is_percentage else ""
        taken = f"{method} takes any scores, and new ones must have the same scale"
        notes.append(f"scores range {reach}{alike}: {taken}")
    return notes


def _uncounted(guarantee: Any, n_rows: int, options: dict[str, Any]) -> list[str]:
    """Why the rows of the table do not add up to all rows, if rows lie on bin edges."""
    from calibrant.guarantee.statement import Edges

    statement = getattr(guarantee, "statement", None)
    if not options["details"] or statement is None or statement.edges is not Edges.SAME_ROWS:
        return []
    rest = n_rows - guarantee.n_rows - statement.looked - statement.cutting
    lie = "lies on a bin edge and is" if rest == 1 else "lie on bin edges and are"
    return [f"{rest:,} of {rows(n_rows)} {lie} not counted"] if rest > 0 else []
