"""`calibrant compare-models`: which model is better, on the same rows."""

from typing import Any

import click

from calibrant.cli import _options as option
from calibrant.cli._errors import RefusedError
from calibrant.cli._input import labelled, sample_of
from calibrant.cli._output import note, paragraph, print_json, remark, saved, table
from calibrant.cli._report import check_report, facts_of
from calibrant.cli._signs import show_signs, signs_of, texts_of
from calibrant.cli._words import in_options
from calibrant.text.numbers import percent, rows
from calibrant.text.sentences import render, sentence


@option.command("Is one model better than another? What is proved.")
@option.data
@click.option("--score", multiple=True, metavar="COLUMN", help="Column of probabilities of one model; give it once for "
              "each model.")  # fmt: skip
@option.label
@option.group
@option.group_size(": a limit that was chosen before the rows were seen. Required with --group.")
@option.weights
@option.skip_missing
@option.confidence(0.95)
@click.option("--clip", type=float, default=0.001, show_default=True, metavar="SIZE", help="For the log loss, clip "
              "probabilities to [SIZE, 1 - SIZE].")  # fmt: skip
@option.most_rows
@option.seed
@option.output("Write a report: one HTML file that needs nothing else.")
@option.scale
@option.classes
@option.overwrite
@option.reading
@option.common
def command(**options: Any) -> None:
    """Say which model is better: paired differences in loss, with limits that hold for all pairs of models at once.

    The models must have been chosen and trained before these rows were looked at. Scores must be probabilities.

    Examples
    --------
    calibrant compare-models scores.csv --score old --score new --label y
    calibrant compare-models scores.csv --score old --score new --label y -o models.html
    calibrant compare-models scores.parquet --score a --score b --score c --label y --json
    """
    from calibrant import compare_models

    output = options["output"]
    check_report(options)
    names = options["score"]
    if len(names) < 2:
        got = "none" if not names else f"only {names[0]!r}"
        raise RefusedError("--score", "be given once for each of at least two models", got=got)
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise RefusedError("--score", "name different columns", got=f"{repeated[0]!r} more than once")
    with labelled(options | {"score": names[0]}, "group", "weight") as (source, data, labels):
        n_rows, draw = sample_of(data, options)
        columns = [
            source.scored(
                {"score": name, **{part: getattr(data.columns, part) for part in ("label", "group", "weight")}},
                skip_missing=options["skip_missing"],
            )
            for name in names
        ]
        samples = [one.with_classes(**labels).collect(draw=draw) for one in columns]
        for name, sample in zip(names, samples, strict=True):
            _check_probabilities(name, sample.scores)
        facts = samples[0].facts(drawn=False)
        signs = signs_of(data, labels, options)
        about = facts_of(source, event=f"{data.columns.label} = {samples[0].known.positive}")
    if draw is not None:
        drawn = samples[0].scores.size
        remark(f"comparing a random sample of {drawn:,} of {rows(n_rows)} (--most-rows)")
    first, level = samples[0], options["confidence"]
    scores = {name: sample.scores for name, sample in zip(names, samples, strict=True)}
    units = {
        "importance_weight": first.weights,
        "weight_bound": options["weight_bound"],
        "groups": None if first.groups is None else first.groups.row_keys,
        "max_group_size": options["max_group_size"],
    }
    how = {"clip": options["clip"], "random_state": options["seed"]}
    found = compare_models(first.labels, scores, confidence_level=level, **how, **units, **labels)
    if output is not None:
        from calibrant._file import write_file
        from calibrant.assess.metrics.reliability import reliability_tables
        from calibrant.draw.report.pages import models_page

        classes = {"classes": first.known.labels, "pos_label": first.known.positive}
        tables = reliability_tables(first.labels, scores, level, **units, **classes)
        page = models_page(found, tables, level, about, options["scale"], texts_of(signs))
        write_file(page.encode(), output, overwrite=options["overwrite"])
    if options["as_json"]:
        counts = {"rows": n_rows, "skipped_rows": facts.skipped, "rows_compared": found.n_rows, "seed": options["seed"],
                  "report": output, "signs_of_groups": signs}  # fmt: skip
        print_json({"command": "compare-models", **found.to_dict(), **counts})
        return
    paragraph(sentence(found.verdict), bold=True)
    table(*found.models_table())
    table(*found.differences_table())
    target = f" Expected losses are those{found.population}." if found.population else ""
    paragraph(
        f"{rows(len(samples[0]), samples[0].n_groups())}.{target} With {percent(found.confidence_level)} confidence, "
        f"all limits called proved hold at once. For the log loss, probabilities are clipped to "
        f"[{found.clip:g}, {1 - found.clip:g}]. ECE has no limits. The losses say which "
        f"model is better, not AUC. Bets were made in the order of seed {found.seed}."
    )
    for text in facts.notes:
        note(render(text, in_options))
    show_signs(signs)
    if output is not None:
        saved(output)


def _check_probabilities(column: str, scores: Any) -> None:
    from calibrant.errors import InvalidValueError
    from calibrant.sample.reach import Reach

    reach = Reach.of(scores)
    if not reach.is_probability:
        advice = (
            reach.percentage_advice if reach.is_percentage else "calibrate them first, with calibrant fit and apply"
        )
        raise InvalidValueError("score", "be probabilities in [0, 1]", f"scores {reach}", advice, column)
