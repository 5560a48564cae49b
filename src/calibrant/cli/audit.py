"""`calibrant audit`: is the model calibrated? What is shown, and what cannot be known."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from calibrant.cli import _options as option
from calibrant.cli._errors import RefusedError
from calibrant.cli._input import CALIBRATE_FIRST, labelled, sample_of
from calibrant.cli._model import check_classes, check_columns, is_fitted_on, read_model
from calibrant.cli._output import remark
from calibrant.cli._report import check_outputs, facts_of
from calibrant.cli._show import answer, result_json, words_for
from calibrant.cli._signs import signs_of, texts_of
from calibrant.text.numbers import nearest, rows

_HISTOGRAM_BINS = 50
_MOST_ROWS = 1_000_000
_ON_FITTED_ROWS = (
    "these are the rows that {} was fitted on: the audit is about the scores before calibration, and"
    " cannot check the calibrated probabilities; that needs other rows"
)


@option.command("audit", "Is the model calibrated? See what the data show.", option.data)
def command(**options: Any) -> int:
    """Test whether scores are calibrated, for any distribution of the data.

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
    calibrant audit rare.csv --score p --label y --scale logit -o audit.html
    calibrant audit scores.csv --score p --label y --check --json      # exit 1 if miscalibrated
    calibrant audit scores.csv --score p --label y --check --tolerance 0.01
    """
    check_outputs(options)
    _check_options(options)
    model = None if options["model"] is None else read_model(options["model"])
    with labelled(options) as (source, data, labels):
        if model is not None:
            check_columns(model, data.columns.named)
        found, period = _audit_over_time(data, labels, options)
        signs = signs_of(data, labels, options)
        validation = None
        if options["full"]:
            validation = _validated(found, source, data, labels, options)
        on_model = []
        if model is not None and is_fitted_on(model, data):
            on_model.append(_ON_FITTED_ROWS.format(options["model"]))
        facts, shown = _for_report(found, data, source, labels, options, model)
    guarantee = None
    if model is not None:
        guarantee = result_json(model.guarantee_, words_for(model.calibrator))
    more = {
        "guarantee": guarantee,
        "signs_of_groups": signs,
        "validation": None if validation is None else result_json(validation),
        "warnings": on_model,
    }
    also = [validation] if validation is not None else []
    also += [model.guarantee_] if model is not None else []
    return answer(
        found,
        options,
        facts,
        more,
        notes=data.facts(drawn=False).notes,
        warnings=[*texts_of(signs), *on_model],
        also=also,
        validation=validation,
        period=period,
        **shown,
    )


def _check_options(options: dict[str, Any]) -> None:
    """Reject options that do not go together."""
    if options["output"] is None and options["model"] is not None:
        raise RefusedError("--model", "be used with -o audit.html, as the report shows it")
    option.check_needed(options)
    grouped = options["group"] is not None
    if options["full"] and grouped and options["max_group_size"] is None:
        rule = "be given with --full and --group: no limit holds without it"
        raise RefusedError("--max-group-size", rule)
    if options["grade"] is not None and not options["full"]:
        raise RefusedError("--grade", "be used with --full, which adds the table of grades")


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
            attributes=_attributes_of(data, options["attribute"], in_place=rows is data),
            **option.arguments("audit", options),
            **labels,
        )
    except InvalidValueError as error:
        if error.parameter in (None, "score") and not (reach := reach_of(data)).is_probability:
            error.advice = reach.advice(CALIBRATE_FIRST)
        raise


def _attributes_of(data: Any, names: Sequence[str], *, in_place: bool) -> Any:
    """The attributes, if any; by name if the data themselves are audited."""
    if in_place or not names:
        return list(names) or None
    from calibrant.sample.columns import column_of

    return {name: column_of(data, name, "attribute") for name in names}


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
    n_rows, draw = sample_of(data, {**options, "most_rows": _MOST_ROWS})
    if draw is not None:
        remark(f"--full: about {_MOST_ROWS:,} of {rows(n_rows)} are drawn for the table")
    sample = data.with_classes(**labels).collect(draw=draw)
    bounds = {name: options[name] for name in option.BOUNDS}
    table = validation_table(sample, confidence_level=options["confidence_level"], **bounds)
    return replace(table, audit=audit)


def event_facts(found: Any, label: str, positive: object) -> dict[str, str]:
    """The event and its rate."""
    rate = float(found.table.rate[0])  # the first region is all rows
    return {
        "event": f"{label} = {positive}",
        "rate of the event": f"{nearest(rate)}, in {rows(found.n_rows)}",
        **({"skipped": f"{rows(found.n_skipped)} without a label"} if found.n_skipped else {}),
    }


def _for_report(
    found: Any,
    data: Any,
    source: Any,
    labels: dict[str, Any],
    options: dict[str, Any],
    model: Any,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Facts for the report, and what else it shows: the model's guarantee."""
    if options["output"] is None:
        return {}, {}
    from calibrant.cells.partition import Partition
    from calibrant.sample.fingerprint import fingerprint

    bins = Partition.fixed_width(_HISTOGRAM_BINS)
    histogram, classes = data.with_classes(**labels).tally(bins)
    if model is not None:
        check_classes(model, classes)
    facts = {
        **event_facts(found, data.columns.label, classes.positive),
        **facts_of(source, **data.columns.named),
        "fingerprint": str(fingerprint(data)),
    }
    return facts, {
        "calibrator": None if model is None else model.calibrator,
        "title": f"Audit of {facts['files']}",
        "histogram": histogram,
        "scale": options["scale"],
    }
