"""What to do next with a result: Python calls for Python users, commands for command-line users."""

from collections.abc import Callable, Iterator, Mapping
from shlex import quote
from typing import Any, NamedTuple

from calibrant.draw.report.page import Step
from calibrant.text.numbers import nearest
from calibrant.text.result import Result


class Advice(NamedTuple):
    """Why to do something, and how to do it in Python and on the command line.

    A command contains placeholders: {rows} for the data and their columns, {data} for the data
    alone, {model} for the model file, and {lines} and {store} for what a monitor reads and where it
    counts. Without a command, the Python call is shown to command-line users, too.
    """

    why: str
    python: str = ""
    command: str = ""


_FIT = Advice(
    "Calibrate the scores, with a guarantee",
    "AnchoredCalibrator().fit(scores, y)",
    "fit {rows} -o model.json",
)
_AUDIT = Advice(
    "Ask whether the scores are calibrated", "audit(y, scores)", "audit {rows} -o audit.html"
)
_CHECK = Advice(
    "Test whether the rows are i.i.d., which this report assumes",
    "check(y, scores, time=time)",
    "check {rows} --time COLUMN",
)
_WATCH = Advice(
    "Watch the model in production: the guarantee no longer applies once the data drift",
    'Monitor("watch.db", calibrator, maturity=7)',
    "watch labels.jsonl --model {model} --store watch.db --maturity 7",
)
_SUBGROUPS = Advice(
    "Ask the same question for every subgroup",
    'audit(y, scores, attributes={"sex": sex, "age": age})',
    "audit {rows} --attribute COLUMN -o subgroups.html",
)
_WITHIN = Advice(
    "Repair the subgroups in Python, with rows other than those audited here; then audit the"
    " predictions on new rows",
    "SubgroupCalibrator().fit(other_scores, other_y, attributes=other_attributes)",
)
_FRAME = Advice("Work with the numbers: download a table here, or get it as a frame in Python")


def steps_in_python(found: Result) -> tuple[Step, ...]:
    """What to do next, as Python calls."""
    return tuple(
        Step(one.why, one.python) for one in advice_on(found) if one.python or one == _FRAME
    )


def steps_as_commands(found: Result, places: Mapping[str, str]) -> tuple[Step, ...]:
    """What to do next, as commands; as a Python call if there is no command for it."""
    return tuple(
        Step(one.why, f"calibrant {one.command.format(**places)}" if one.command else one.python)
        for one in advice_on(found)
    )


def advice_on(found: Result) -> list[Advice]:
    """What to do next with a result, most useful first."""
    for kind in type(found).__mro__:
        if kind.__name__ in _ADVICE:
            return list(_ADVICE[kind.__name__](found))
    return [_FRAME]


def _on_audit(found: Any) -> Iterator[Advice]:
    subgroups = found.by_attributes
    if subgroups is not None and subgroups.is_any_off:
        yield _WITHIN
    elif found.worst is not None:
        yield _FIT
    else:
        yield Advice(
            f"See which epsilon to expect with {found.n_rows:,} labels",
            f"plan(n={found.n_rows}, n_bins=10)",
            f"plan --rows {found.n_rows} --bins 10",
        )
    if subgroups is None:
        yield _SUBGROUPS
    yield _CHECK


def _on_guarantee(found: Any) -> Iterator[Advice]:
    if found.epsilon is None:
        yield Advice(
            "Fit a calibrator that has a guarantee",
            "AnchoredCalibrator().fit(scores, y)",
            "fit {rows} --method anchored -o model.json",
        )
        return
    yield Advice(
        "Calibrate new scores",
        "calibrator.predict(new_scores)",
        "apply {model} new.csv -o out.csv",
    )
    yield Advice(
        "Make decisions based on the cost of errors",
        "decide(calibrator, new_scores, cost_false_alarm=1, cost_miss=5)",
        "decide {model} new.csv --cost-false-alarm 1 --cost-miss 5",
    )
    yield _CHECK
    yield _WATCH


def _on_decisions(found: Any) -> Iterator[Advice]:
    if found.counts["cannot tell"]:
        yield Advice(
            "Refer the rows that are too close to call to a person, or label more rows: a narrower"
            " guarantee decides more of them",
            "plan(epsilon=0.02, n_bins=10)",
            "plan --epsilon 0.02 --bins 10",
        )
    yield _WATCH


def _on_threshold(found: Any) -> Iterator[Advice]:
    needed = [cut.labels_needed for cut in found.cuts if cut.labels_needed is not None]
    if needed:
        yield Advice(
            f"Label more rows: about {max(needed):,} would probably be enough",
            "threshold(y, scores, ...)",
            "threshold {rows} ...",
        )
    if any(cut.threshold is not None for cut in found.cuts):
        yield Advice(
            "Select rows in the database",
            'to_sql(found, score="p")',
            "export thresholds.json --to sql --dialect duckdb",
        )
    yield _CHECK


def _on_models(found: Any) -> Iterator[Advice]:
    if found.best is None:
        yield Advice(
            "Keep comparing as labels come in: a sequential comparison can stop once it is decided",
            f"SequentialModelComparison({tuple(found.models)!r})",
            "compare-models {data} ...",
        )
    else:
        yield Advice(
            f"Ask whether {found.best!r} is calibrated",
            "audit(y, scores)",
            f"audit {{data}} --score {_typed(found.best)} -o audit.html",
        )
    yield _CHECK


def _typed(name: str) -> str:
    """A name as typed in a command with placeholders."""
    return quote(name).replace("{", "{{").replace("}", "}}")


def _on_rate(found: Any) -> Iterator[Advice]:
    known = f", n_items={found.n_items}" if found.target == "items" else ""
    rate = nearest(found.estimate)
    if 0.0 < float(rate) < 1.0:  # otherwise the worst case
        known += f", expected_rate={rate}"
    yield Advice(
        "If the limits are too wide, label more items, drawn at random from all, and ask again",
        f"plan_rate(width=0.05{known})",
        "rate {rows} -o rate.html",
    )


def _on_plan(found: Any) -> Iterator[Advice]:
    method = "anchored" if found.calibrator == "AnchoredCalibrator" else "binning"
    yield Advice(
        f"Draw {found.n:,} rows at random, label them, and calibrate",
        f"{found.calibrator}(n_bins={found.n_bins}).fit(scores, y)",
        f"fit {{rows}} --method {method} --bins {found.n_bins} -o model.json",
    )


def _on_rows(found: Any) -> Iterator[Advice]:
    if found.alarm:
        yield Advice(
            "Calibrate on the most recent rows only",
            "AnchoredCalibrator().fit(scores[recent], y[recent])",
            "fit {rows} --holdout last -o model.json",
        )
    else:
        yield _AUDIT
    yield _WATCH


def _on_monitor(found: Any) -> Iterator[Advice]:
    if found.alarm:
        yield Advice(
            "Recalibrate on rows from after the change",
            "AnchoredCalibrator().fit(new_scores, new_y)",
            "fit new.csv -o model.json",
        )
    else:
        yield Advice(
            "Keep watching: you can look as often as you like",
            "monitor.snapshot()",
            "watch {lines} --model {model} --store {store} --once",
        )


def _on_calibrators(found: Any) -> Iterator[Advice]:
    yield Advice(
        "Fit the method you choose to rows you did not use to choose it: then its guarantee holds",
        "AnchoredCalibrator().fit(new_scores, new_y)",
        "fit {rows} --method METHOD -o model.json",
    )


def _on_subgroups(found: Any) -> Iterator[Advice]:
    if found.is_any_off:
        yield _WITHIN
    yield _CHECK


def _on_validation(found: Any) -> Iterator[Advice]:
    yield _AUDIT
    yield _CHECK


_ADVICE: dict[str, Callable[[Any], Iterator[Advice]]] = {
    "Audit": _on_audit,
    "CalibratorComparison": _on_calibrators,
    "Decisions": _on_decisions,
    "Differences": _on_models,
    "Exchangeability": _on_rows,
    "Guarantee": _on_guarantee,
    "MonitorSnapshot": _on_monitor,
    "NoGuarantee": _on_guarantee,
    "Plan": _on_plan,
    "Rate": _on_rate,
    "SubgroupAudit": _on_subgroups,
    "Threshold": _on_threshold,
    "Validation": _on_validation,
}
