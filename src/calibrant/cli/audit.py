"""`calibrant audit`: is the model calibrated? What is proved, and what cannot be known."""

from dataclasses import dataclass, replace
from typing import Any

import click

from calibrant.cli import _options as option
from calibrant.cli._errors import RefusedError
from calibrant.cli._input import CALIBRATE_FIRST, labelled, sample_of
from calibrant.cli._model import (
    check_classes,
    check_columns,
    is_fitted_on,
    read_model,
    read_threshold,
)
from calibrant.cli._output import print_json, remark, saved, say, warn
from calibrant.cli._report import check_report, shown_names, write_report
from calibrant.cli._show import guarantee_json, result_json, show, show_guarantee, show_tables
from calibrant.cli._signature import Declared, words_of
from calibrant.cli._signs import show_signs, signs_of, texts_of
from calibrant.cli._target import InputPath
from calibrant.text.numbers import nearest, rows

_HISTOGRAM_BINS = 50
_MOST_ROWS = 1_000_000
_AUDIT = Declared("assess.audit.audit", "audit")
_attributes = option.together(
    click.option(
        "--attribute",
        multiple=True,
        metavar="COLUMN",
        help=(
            "Column of an attribute, such as sex or age: also audit the subgroups that the"
            " attributes define. Repeat for each attribute."
        ),
    ),
    _AUDIT.option("order", "With --attribute: subgroups of up to N attributes.", metavar="N"),
    _AUDIT.option(
        "min_share",
        "With --attribute: subgroups with at least this share of the rows.",
        metavar="SHARE",
    ),
    _AUDIT.option(
        "target",
        "With --attribute: errors in subgroups among the rows at hand, or in the population.",
        choices=words_of("assess.subgroups.result", "TARGETS"),
    ),
)


@option.command("Is the model calibrated? See what the data prove.")
@option.data
@option.columns
@option.group
@option.group_size(
    _AUDIT,
    " in a bin. Default: the most in any pilot group. Required with --full and --group.",
)
@option.weights(_AUDIT)
@option.column(
    "time", "Column of times: also audit each month separately, at the same overall confidence."
)
@_attributes
@option.skip_missing
@option.confidence(_AUDIT)
@option.bins(_AUDIT, "Number of bins at the finest resolution.")
@option.output("Write a report: a single HTML file that needs nothing else.")
@click.option(
    "--model",
    metavar="MODEL",
    type=InputPath(allow_dash=True),
    help=(
        "Also show this model's guarantee in the report. The model must have the same "
        "columns and classes."
    ),
)
@click.option("--title", metavar="TEXT", help="Title of the report.")
@click.option(
    "--mark",
    metavar="FILE",
    type=InputPath(allow_dash=True),
    help="Mark the thresholds in this file, from calibrant threshold -o, in the report.",
)
@option.scale
@_AUDIT.option(
    "tolerance",
    "Ignore errors up to this size: call scores miscalibrated only if they are proved to be off by"
    " more.",
    metavar="SIZE",
)
@click.option(
    "--check",
    is_flag=True,
    help=(
        "Exit with 1 if the scores are proved to be miscalibrated, over "
        "all rows, within a segment or in a subgroup."
    ),
)
@click.option(
    "--full",
    is_flag=True,
    help=(
        "Add the validation table (slope, intercept, expected / observed, an exact test, "
        "the parts of the Brier score, AUC), and what is known about single scores if the "
        "rate does not fall as the score rises."
    ),
)
@click.option(
    "--grade",
    metavar="COLUMN",
    help="Column of rating grades, for --full: compare each grade's mean score with its rate.",
)
@option.classes
@option.overwrite
@option.reading
@option.common
def command(**options: Any) -> int:
    """Show what the data prove about the calibration of the scores, for any distribution.

    DATA are files, folders or globs, or - for standard input. They hold scores and outcomes of rows
    that the model was not trained on. Scores must be probabilities, between 0 and 1.

    Examples
    --------
    calibrant audit scores.csv --score p --label y -o audit.html
    calibrant audit loans.csv --score p --label defaulted --pos-label Y          # labels are words
    calibrant audit scores.parquet --score p --label y --segment region
    calibrant audit visits.csv --score p --label y --group patient    # several rows per patient
    calibrant audit survey.csv --score p --label y --weight w --weight-bound 8
    calibrant audit scores.csv --score p --label y --attribute sex --attribute age -o audit.html
    calibrant audit scores.csv --score p --label y --full         # slope, E/O, an exact test
    calibrant audit scores.csv --score p --label y --time day -o audit.html      # by month
    calibrant audit rare.csv --score p --label y --scale logit --mark threshold.json -o audit.html
    calibrant audit scores.csv --score p --label y --check --json      # exit 1 if miscalibrated
    calibrant audit scores.csv --score p --label y --check --tolerance 0.01
    """
    check_report(options)
    _check_options(options)
    model = None if options["model"] is None else read_model(options["model"])
    found = _find(model, options)
    if options["as_json"]:
        print_json(_json(found, model, options))
    else:
        _show(found, model, options)
    return 1 if options["check"] and _is_off(found.audit) else 0


def _is_off(audit: Any) -> bool:
    """Whether an error is proved: for all rows, for a segment, or for a subgroup."""
    subgroups = audit.by_attributes
    return audit.worst is not None or (subgroups is not None and subgroups.is_any_off)


@dataclass(frozen=True, slots=True)
class _Found:
    """The audit, and what else was requested for the same rows."""

    audit: Any
    period: str | None
    """What the segments are called if they are time periods; None if they are not."""
    signs: list[dict[str, Any]]
    validation: Any
    """The validation table, with --full."""
    on_model: tuple[str, ...]
    """Warnings about the rows of --model."""


def _check_options(options: dict[str, Any]) -> None:
    """Reject options that do not go together."""
    for name in ("model", "mark"):
        if options["output"] is None and options[name] is not None:
            raise RefusedError(f"--{name}", "be used with -o audit.html, as the report shows it")
    option.check_bounds(options)
    grouped = options["group"] is not None
    if options["full"] and grouped and options["max_group_size"] is None:
        rule = "be given with --full and --group: nothing is proved without it"
        raise RefusedError("--max-group-size", rule)
    if options["grade"] is not None and not options["full"]:
        raise RefusedError("--grade", "be used with --full, which adds the table of grades")


def _find(model: Any, options: dict[str, Any]) -> _Found:
    """Audit the rows of the files, and write the report if requested."""
    with labelled(options, "segment", "group", "weight") as (source, data, labels):
        if model is not None:
            check_columns(model, data.columns.named)
        audit, period = _audit_over_time(data, labels, options)
        signs = signs_of(data, labels, options)
        validation = None
        if options["full"]:
            validation = _validated(audit, source, data, labels, options)
        found = _Found(audit, period, signs, validation, _on_model(model, data, options["model"]))
        if options["output"] is not None:
            _write_report(found, data, source, labels, options, model)
    return found


def _on_model(model: Any, data: Any, name: str | None) -> tuple[str, ...]:
    """A warning if the model was fitted on the audited rows."""
    if model is None or not is_fitted_on(model, data):
        return ()
    return (
        (
            f"these are the rows that {name} was fitted on: the audit is about the scores before"
            " calibration, and cannot check the calibrated probabilities; that needs other rows"
        ),
    )


def _audit_over_time(
    data: Any, labels: dict[str, Any], options: dict[str, Any]
) -> tuple[Any, str | None]:
    """The audit, by period too if there is a time column, and what a period is."""
    if options["time"] is None:
        return _audit(data, data, labels, options), None
    dated, period = _by_period(data, labels, options["time"])
    audit = _audit(data, dated, labels, options)
    if period is not None:
        audit = replace(audit, noun=period)
    return audit, period


def _json(found: _Found, model: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The findings as plain values; documented on the command-line page."""
    return {
        "command": "audit",
        "report": options["output"],
        **result_json(found.audit),
        "guarantee": None if model is None else guarantee_json(model.calibrator),
        "signs_of_groups": found.signs,
        "validation": None if found.validation is None else result_json(found.validation),
        "warnings": found.on_model,
    }


def _show(found: _Found, model: Any, options: dict[str, Any]) -> None:
    """Show the audit, then what else was requested, and which file was written."""
    show(found.audit)
    if found.audit.by_attributes is not None:
        show_tables(found.audit.by_attributes)
    show_signs(found.signs)
    if found.validation is not None:
        say()
        show(found.validation, bold=False)
    if model is not None:
        say(f"\nThe guarantee of {options['model']}:")
        show_guarantee(model.calibrator, brief=True, bold=False)
    for text in found.on_model:
        warn(text)
    if options["output"] is not None:
        saved(options["output"])


def _audit(data: Any, rows: Any, labels: dict[str, Any], options: dict[str, Any]) -> Any:
    """The audit of `rows`, which are the data or the data by period."""
    from calibrant import audit
    from calibrant.errors import InvalidValueError
    from calibrant.sample.fingerprint import reach_of

    try:
        # the band assumes independent rows
        alone = options["group"] is None and options["weight"] is None
        return audit(
            rows,
            monotone=options["full"] and alone,
            attributes=_attributes_of(data, options, in_place=rows is data),
            **_AUDIT.arguments(options),
            **labels,
        )
    except InvalidValueError as error:
        if error.parameter in (None, "score") and not (reach := reach_of(data)).is_probability:
            error.advice = reach.advice(CALIBRATE_FIRST)
        raise


def _attributes_of(data: Any, options: dict[str, Any], *, in_place: bool) -> Any:
    """The attributes, if any; by name if the data themselves are audited."""
    if not options["attribute"]:
        return None
    from calibrant.sample.columns import column_of

    names = list(options["attribute"])
    if in_place:
        return names
    return {name: column_of(data, name, "attribute") for name in names}


def _bounds(options: dict[str, Any]) -> dict[str, Any]:
    """Bounds on groups or weights, if there are any."""
    beside = {"max_group_size": "group", "weight_bound": "weight"}
    return {name: options[name] for name, column in beside.items() if options[column] is not None}


def _by_period(data: Any, labels: dict[str, Any], time: str) -> tuple[Any, str | None]:
    """The rows in memory, with months as segments, or with their segments by month.

    Also what a period is.
    """
    import numpy as np

    from calibrant.cells.segmented_partition import segment_kinds
    from calibrant.sample.columns import column_of
    from calibrant.sample.time_order import periods, read_times

    read = data.with_classes(**labels).collect()
    names, period = periods(read_times(column_of(data, time, "time"), len(read)))
    if read.segment is None:
        return read.in_segments(*segment_kinds(names)), period
    both = [
        f"{read.segment_names[place]}, {month}"
        for place, month in zip(read.segment, names, strict=True)
    ]
    return read.in_segments(*segment_kinds(np.array(both))), None


def _validated(
    audit: Any, source: Any, data: Any, labels: dict[str, Any], options: dict[str, Any]
) -> Any:
    """The validation table, from a random sample if there are very many rows.

    It quotes the verdict of the audit of all rows.
    """
    from calibrant import validation_table

    roles = {"score": data.columns.score, "label": data.columns.label, "segment": options["grade"]}
    roles |= {"group": options["group"], "weight": options["weight"]}
    data = source.scored(roles, skip_missing=options["skip_missing"])
    n_rows, draw = sample_of(data, {**options, "most_rows": _MOST_ROWS, "random_state": 0})
    if draw is not None:
        remark(f"--full: about {_MOST_ROWS:,} of {rows(n_rows)} are drawn for the table")
    sample = data.with_classes(**labels).collect(draw=draw)
    level = options["confidence_level"]
    table = validation_table(sample, confidence_level=level, **_bounds(options))
    return replace(table, audit=audit)


def event_facts(found: Any, label: str, positive: object) -> dict[str, str]:
    """The event and its rate."""
    rate = float(found.table.rate[0])  # the first region is all rows
    return {
        "event": f"{label} = {positive}",
        "rate of the event": f"{nearest(rate)}, in {rows(found.n_rows)}",
        **({"skipped": f"{rows(found.n_skipped)} without a label"} if found.n_skipped else {}),
    }


def _write_report(
    found: _Found,
    data: Any,
    source: Any,
    labels: dict[str, Any],
    options: dict[str, Any],
    model: Any,
) -> None:
    """Write the report, with the model's guarantee and the thresholds to mark, if any."""
    from calibrant.cells.partition import Partition
    from calibrant.sample.fingerprint import fingerprint

    bins = Partition.fixed_width(_HISTOGRAM_BINS)
    histogram, classes = data.with_classes(**labels).tally(bins)
    if model is not None:
        check_classes(model, classes)
    facts = {
        **event_facts(found.audit, data.columns.label, classes.positive),
        "files": shown_names(source.names),
        **data.columns.named,
        "fingerprint": str(fingerprint(data)),
    }
    write_report(
        options["output"],
        found.audit,
        facts,
        overwrite=options["overwrite"],
        calibrator=None if model is None else model.calibrator,
        title=options["title"] or f"Audit of {facts['files']}",
        histogram=histogram,
        validation=found.validation,
        period=found.period,
        warnings=[*texts_of(found.signs), *found.on_model],
        scale=options["scale"],
        thresholds=None if options["mark"] is None else read_threshold(options["mark"]),
    )
