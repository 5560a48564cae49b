"""`calibrant compare-models`: which model is better on the same rows."""

from dataclasses import dataclass
from typing import Any

import click

from calibrant.cli import _options as option
from calibrant.cli._errors import RefusedError
from calibrant.cli._input import CALIBRATE_FIRST, labelled, sample_of
from calibrant.cli._output import print_json, remark, saved
from calibrant.cli._report import check_report, facts_of, write_report
from calibrant.cli._show import result_json, show
from calibrant.cli._signature import Declared
from calibrant.cli._signs import show_signs, signs_of, texts_of
from calibrant.text.numbers import rows

_COMPARE = Declared("assess.compare_models.compare_models", "compare_models")


@option.command("Is one model better than another? See what the data prove.")
@option.data
@click.option(
    "--score",
    multiple=True,
    metavar="COLUMN",
    help="Column with one model's probabilities; repeat for each model.",
)
@option.label
@option.group
@option.group_size(
    _COMPARE, ": a limit chosen before you looked at the rows. Required with --group."
)
@option.weights(_COMPARE)
@option.skip_missing
@option.confidence(_COMPARE)
@_COMPARE.option(
    "clip", "For the log loss, clip probabilities to [SIZE, 1 - SIZE].", metavar="SIZE"
)
@option.most_rows
@option.seed(_COMPARE)
@option.output("Write a report: a single HTML file that needs nothing else.")
@option.scale
@option.classes
@option.overwrite
@option.reading
@option.common
def command(**options: Any) -> None:
    """Say which model is better: paired differences in loss, with limits that hold for all pairs of
    models simultaneously.

    The models must have been chosen and trained before anyone looked at these rows. Scores must be
    probabilities.

    Examples
    --------
    calibrant compare-models scores.csv --score old --score new --label y
    calibrant compare-models scores.csv --score old --score new --label y -o models.html
    calibrant compare-models scores.parquet --score a --score b --score c --label y --json
    """
    check_report(options)
    _check_names(options["score"])
    read = _read(options)
    found = _compare(read, options)
    if options["output"] is not None:
        _write_report(found, read, options)
    if options["as_json"]:
        print_json(_json(found, read, options))
    else:
        _show(found, read, options)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The compared rows: the scores of each model, and everything else from the first sample."""

    n_rows: int
    """Rows in the files; the compared rows may be a sample."""
    scores: dict[str, Any]
    first: Any
    n_skipped: int
    notes: tuple[str, ...]
    signs: list[dict[str, Any]]
    about: dict[str, str]
    labels: dict[str, Any]

    def units(self) -> dict[str, Any]:
        """The independent units, and how much each counts."""
        groups = self.first.groups
        return {
            "importance_weight": self.first.weights,
            "groups": None if groups is None else groups.row_keys,
        }


def _check_names(names: tuple[str, ...]) -> None:
    """Reject fewer than two score columns, or the same column twice."""
    if len(names) < 2:
        got = "none" if not names else f"only {names[0]!r}"
        raise RefusedError("--score", "be given once for each of at least two models", got=got)
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        got = f"{repeated[0]!r} more than once"
        raise RefusedError("--score", "name different columns", got=got)


def _read(options: dict[str, Any]) -> _Rows:
    """Read the scores of each model for the same rows."""
    names = options["score"]
    with labelled(options | {"score": names[0]}, "group", "weight") as (source, data, labels):
        n_rows, draw = sample_of(data, options)
        others = {part: getattr(data.columns, part) for part in ("label", "group", "weight")}
        skip = options["skip_missing"]
        columns = [source.scored({"score": name, **others}, skip_missing=skip) for name in names]
        samples = [one.with_classes(**labels).collect(draw=draw) for one in columns]
        for name, sample in zip(names, samples, strict=True):
            _check_probabilities(name, sample.scores)
        first = samples[0]
        facts = first.facts(drawn=False)
        signs = signs_of(data, labels, options)
        about = facts_of(source, event=f"{data.columns.label} = {first.known.positive}")
    if draw is not None:
        drawn = first.scores.size
        remark(f"comparing a random sample of {drawn:,} of {rows(n_rows)} (--most-rows)")
    scores = {name: sample.scores for name, sample in zip(names, samples, strict=True)}
    return _Rows(n_rows, scores, first, facts.skipped, facts.notes, signs, about, labels)


def _compare(read: _Rows, options: dict[str, Any]) -> Any:
    from calibrant import compare_models

    return compare_models(
        read.first.labels,
        read.scores,
        **_COMPARE.arguments(options),
        **read.units(),
        **read.labels,
    )


def _write_report(found: Any, read: _Rows, options: dict[str, Any]) -> None:
    from calibrant.assess.metrics.reliability import reliability_tables
    from calibrant.draw.report.pages import Beside

    level = options["confidence_level"]
    known = read.first.known
    tables = reliability_tables(
        read.first.labels,
        read.scores,
        level,
        **read.units(),
        weight_bound=options["weight_bound"],
        max_group_size=options["max_group_size"],
        classes=known.labels,
        pos_label=known.positive,
    )
    write_report(
        options["output"],
        found,
        read.about,
        overwrite=options["overwrite"],
        beside=Beside(reliability=tables),
        scale=options["scale"],
        warnings=texts_of(read.signs),
    )


def _json(found: Any, read: _Rows, options: dict[str, Any]) -> dict[str, Any]:
    """The comparison as plain values; documented on the command-line page."""
    return {
        "command": "compare-models",
        **result_json(found),
        "n_in_data": read.n_rows,
        "n_skipped": read.n_skipped,
        "report": options["output"],
        "signs_of_groups": read.signs,
    }


def _show(found: Any, read: _Rows, options: dict[str, Any]) -> None:
    """Show the comparison, and which file was written."""
    show(found, notes=read.notes)
    show_signs(read.signs)
    if options["output"] is not None:
        saved(options["output"])


def _check_probabilities(column: str, scores: Any) -> None:
    from calibrant.errors import InvalidValueError
    from calibrant.sample.facts import Reach

    reach = Reach.of(scores)
    if not reach.is_probability:
        advice = reach.advice(CALIBRATE_FIRST)
        raise InvalidValueError(
            "score", "be probabilities in [0, 1]", f"scores {reach}", advice, column
        )
