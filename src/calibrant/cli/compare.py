"""`calibrant compare`: calibration methods side by side."""

import math
from dataclasses import asdict
from typing import Any

import click

from calibrant.cli import _options as option
from calibrant.cli._input import labelled, sample_of
from calibrant.cli._methods import METHODS, Settings
from calibrant.cli._output import is_quiet, note, paragraph, print_json, remark, table
from calibrant.cli._signs import show_signs, signs_of
from calibrant.cli._words import in_options
from calibrant.text.numbers import rows, upper
from calibrant.text.sentences import render

_FIELDS = ("log_loss", "brier", "ece", "auc", "epsilon", "state_bytes", "fit_seconds", "predict_seconds")


@option.command("Methods side by side.")
@option.data
@option.score
@option.label
@option.group
@option.max_group_size
@option.weights
@option.skip_missing
@option.confidence(0.9)
@option.bins("Number of bins of the methods that have bins.")
@click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True, help="Cross-validation folds.")
@option.most_rows
@click.option("--simultaneous", is_flag=True, help="Let all guarantees hold at once, so that you may choose by them.")
@option.seed
@option.classes
@option.reading
@option.common
def command(**options: Any) -> None:
    """Compare calibration methods: what each measures on held-out rows, and what it guarantees.

    Examples
    --------
    calibrant compare scores.csv --score p --label y
    calibrant compare visits.csv --score p --label y --group patient
    calibrant compare scores.parquet --score p --label y --bins 10 --json
    """
    option.check_bounds(options)
    with labelled(options, "group", "weight") as (_, data, labels):
        n_rows, draw = sample_of(data, options)
        sample = data.with_classes(**labels).collect(draw=draw)
        facts = sample.facts(drawn=False)
        signs = signs_of(data, labels, options)
    if draw is not None:
        remark(f"comparing a random sample of {sample.scores.size:,} of {rows(n_rows)} (--most-rows)")
    found = _compare(sample, labels, options)
    if options["as_json"]:
        counts = {"rows": n_rows, "skipped_rows": facts.skipped}
        print_json({"command": "compare", **counts, **_json(found), "signs_of_groups": signs})
        return
    _show(found, sample)
    remarks = () if is_quiet() else found.remarks
    for text in (*facts.notes, *remarks):
        note(render(text, in_options))
    show_signs(signs)


def _compare(sample: Any, labels: dict[str, Any], options: dict[str, Any]) -> Any:
    from calibrant import compare_calibrators

    scores = sample.scores
    probabilities = bool(scores.size and scores.min() >= 0 and scores.max() <= 1)
    return compare_calibrators(
        sample.labels,
        scores,
        _contenders(options, probabilities=probabilities),
        cv=options["folds"],
        importance_weight=sample.weights,
        weight_bound=options["weight_bound"],
        groups=None if sample.groups is None else sample.groups.row_keys,
        max_group_size=options["max_group_size"],
        random_state=options["seed"],
        simultaneous=options["simultaneous"],
        confidence_level=options["confidence"],
        **labels,
    )


def _json(found: Any) -> dict[str, Any]:
    """The comparison as plain values; documented on the page of the command line."""
    methods = [
        {"method": method, "guarantee": _sentence(found.guarantee[place])}
        | {name: getattr(found, name)[place].item() for name in _FIELDS}
        for place, method in enumerate(found.methods)
    ]
    return {
        "rows_compared": found.n_rows,
        "folds": found.n_folds,
        "simultaneous": found.simultaneous,
        "methods": methods,
        "differences": [asdict(one) | {"better": one.better} for one in found.differences],
    }


def _show(found: Any, sample: Any) -> None:
    """A line for each method, and how much they differ."""
    heads = ("method", "log loss", "Brier", "ECE", "AUC", "guaranteed", "fit")
    table(heads, [_line(found, place) for place in range(len(found.methods))])
    paragraph(
        f"{rows(len(sample), sample.n_groups())}, {found.n_folds} folds. "
        "Only the column guaranteed is proved. The others are measured on held-out rows: "
        "lower is better, except for AUC, and small differences are noise."
    )
    for line in found.difference_lines:
        paragraph(line)


def _line(found: Any, place: int) -> tuple[Any, ...]:
    """What was measured of a method, and what it guarantees."""
    from calibrant.assess.compare_models.losses import number_or_none

    measured = [getattr(found, name)[place] for name in ("log_loss", "brier", "ece", "auc")]
    epsilon = found.epsilon[place]
    return (
        found.methods[place],
        *map(number_or_none, measured),
        "none" if math.isnan(epsilon) else upper(epsilon),
        f"{1e3 * found.fit_seconds[place]:,.0f} ms",
    )


def _sentence(guarantee: Any) -> str:
    return "Nothing is guaranteed." if guarantee is None else guarantee.sentence(in_options)


def _contenders(options: dict[str, Any], *, probabilities: bool) -> dict[str, Any]:
    """One calibrator per method; two methods take only probabilities."""
    left_out: tuple[str, ...] = ("uniform",) if probabilities else ("uniform", "temperature", "beta")
    left_out += ("venn-abers",) if options["weight"] is not None else ()  # weighted rows are not exchangeable
    common = {"bins": options["bins"], "confidence": options["confidence"], "seed": options["seed"]}
    return {method: Settings(method, **common).calibrator() for method in METHODS if method not in left_out}
