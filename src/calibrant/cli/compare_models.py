"""`calibrant compare-models`: which model is better on the same rows."""

from typing import Any

from calibrant.cli import _options as option
from calibrant.cli._errors import RefusedError
from calibrant.cli._input import CALIBRATE_FIRST, labelled, sample_of
from calibrant.cli._output import remark
from calibrant.cli._report import check_outputs, facts_of
from calibrant.cli._show import answer
from calibrant.cli._signs import on_rows
from calibrant.text.numbers import rows


@option.command("compare-models", "Is one model better than another?", option.data)
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
    from calibrant import compare_models

    check_outputs(options)
    _check_names(options["score"])
    names = options["score"]
    with labelled(options | {"score": names[0]}) as (source, data, labels):
        n_rows, draw = sample_of(data, options)
        others = {part: getattr(data.columns, part) for part in ("label", "group", "weight")}
        skip = options["skip_missing"]
        columns = [source.scored({"score": name, **others}, skip_missing=skip) for name in names]
        samples = [one.with_classes(**labels).collect(draw=draw) for one in columns]
        for name, sample in zip(names, samples, strict=True):
            _check_probabilities(name, sample.scores)
        first = samples[0]
        about_rows = on_rows(data, labels, options, first, n_in_data=n_rows)
        facts = facts_of(source, event=f"{data.columns.label} = {first.known.positive}")
    if draw is not None:
        drawn = first.scores.size
        remark(f"comparing a random sample of {drawn:,} of {rows(n_rows)} (--most-rows)")
    scores = {name: sample.scores for name, sample in zip(names, samples, strict=True)}
    units: dict[str, Any] = {
        "importance_weight": first.weights,
        "groups": None if first.groups is None else first.groups.row_keys,
    }
    given = option.arguments("compare-models", options)
    answer(
        compare_models(first.labels, scores, **given, **units, **labels),
        options,
        facts,
        **about_rows,
        pictures=_reliability(first, scores, units, options),
    )


def _check_names(names: tuple[str, ...]) -> None:
    """Reject fewer than two score columns, or the same column twice."""
    if len(names) < 2:
        got = "none" if not names else f"only {names[0]!r}"
        raise RefusedError("--score", "be given once for each of at least two models", got=got)
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        got = f"{repeated[0]!r} more than once"
        raise RefusedError("--score", "name different columns", got=got)


def _reliability(
    first: Any, scores: Any, units: dict[str, Any], options: dict[str, Any]
) -> tuple[Any, ...]:
    """The reliability of each model as a picture, for the report if one was asked for."""
    if options["output"] is None:
        return ()
    from calibrant.assess.metrics.reliability import models_picture, reliability_tables

    tables = reliability_tables(
        first.labels,
        scores,
        options["confidence_level"],
        **units,
        weight_bound=options["weight_bound"],
        max_group_size=options["max_group_size"],
        classes=first.known.labels,
        pos_label=first.known.positive,
    )
    return (models_picture(tables),)


def _check_probabilities(column: str, scores: Any) -> None:
    from calibrant.errors import InvalidValueError
    from calibrant.sample.facts import Reach

    reach = Reach.of(scores)
    if not reach.is_probability:
        advice = reach.advice(CALIBRATE_FIRST)
        raise InvalidValueError(
            "score", "be probabilities in [0, 1]", f"scores {reach}", advice, column
        )
