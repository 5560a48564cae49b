"""`calibrant threshold`: the threshold with a guaranteed precision, recall, npv or specificity."""

import math
from typing import Any

from calibrant.cli import _options as option
from calibrant.cli._errors import RefusedError
from calibrant.cli._input import labelled, sample_of
from calibrant.cli._model import THRESHOLD_SETTINGS, provenance_of
from calibrant.cli._report import check_outputs, facts_of, is_page
from calibrant.cli._show import answer
from calibrant.cli._signs import on_first_rows, on_rows
from calibrant.text.numbers import rows

_MOST_DRAWN = 1_000_000  # rows from which the curves of the report are drawn


@option.command("threshold", "Find a threshold with a guaranteed precision or recall.", option.data)
def command(**options: Any) -> int:
    """Find a threshold that is guaranteed to meet a target: rows with score >= threshold are
    selected.

    For precision and specificity it is the lowest threshold, for recall and npv the highest. Give
    one target, or --precision and --npv, which leave the rows in between to a person.

    Examples
    --------
    calibrant threshold scores.csv --score p --label y --precision 0.9
    calibrant threshold scores.parquet --score p --label y --recall 0.95 --segment region
    calibrant threshold scores.csv --score p --label y --precision 0.9 --npv 0.99 -o thresholds.json
    calibrant threshold scores.csv --score p --label y --precision 0.9 -o thresholds.html
    """
    from calibrant import Sample, save_model, threshold

    check_outputs(options, ".json")
    output = options["output"]
    saves = output is not None and not is_page(output)
    if saves and options["unlabelled"] is not None:
        why = "verify must be able to recompute a model file, and it reads labelled rows only"
        advice = f"{why}: leave out one of the two"
        got = f"-o {output}"
        raise RefusedError("--unlabelled", "be used without a model file", got=got, advice=advice)
    report: dict[str, Any] = {}
    with labelled(options) as (source, data, labels):
        given = option.arguments("threshold", options)
        found = threshold(Sample(data), unlabelled_scores=_unlabelled(options), **given, **labels)
        about_rows = on_rows(data, labels, options)
        about_rows["warnings"] += on_first_rows(data, labels)
        if saves:
            provenance = _provenance(source, data, labels, options)
            how: dict[str, Any] = {"columns": data.columns.named, "provenance": provenance}
            save_model(found, output, **how, overwrite=options["overwrite"])
            if not any(high < math.inf for _, high in found.ends.values()):
                about_rows["warnings"].append(f"{output} selects no row")
        elif output is not None:
            report = _for_report(found, source, data.with_classes(**labels), options)
    return answer(found, options, entry="output", **about_rows, **report)


def _provenance(
    source: Any, data: Any, labels: dict[str, Any], options: dict[str, Any]
) -> dict[str, Any]:
    """The origin of the thresholds: what `calibrant verify` needs to find them again."""
    classes = labels["classes"]
    settings = {name: options[name] for name in THRESHOLD_SETTINGS}
    settings |= {
        "classes": None if classes is None else list(classes),
        "skip_missing": options["skip_missing"],
    }
    return provenance_of(source, data, settings)[0]


def _unlabelled(options: dict[str, Any]) -> Any:
    """Scores of rows without labels, from their own file."""
    path = options["unlabelled"]
    if path is None:
        return None
    from calibrant.cli._input import Files
    from calibrant.cli._records import read_columns

    how = {name: options[name] for name in ("file_format", "threads", "quiet", "decimal")}
    return read_columns(Files([path], **how), {"score": options["score"]})["score"]


def _for_report(found: Any, source: Any, data: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Facts, and curves from a random sample if there are very many rows."""
    import numpy as np

    from calibrant.assess.threshold.pictures import threshold_pictures

    n_rows, draw = sample_of(data, {**options, "most_rows": _MOST_DRAWN})
    sample = data.collect(draw=draw)
    scores = np.asarray(sample.scores, dtype=np.float64)

    def rows_of(segment: object) -> tuple[Any, Any]:
        if segment is None:
            return scores, sample.codes
        here = sample.segment == sample.segment_names.index(segment)
        return scores[here], sample.codes[here]

    drawn = (
        {}
        if draw is None
        else {"curves": f"from {rows(scores.size)}, drawn at random from {n_rows:,}"}
    )
    event = f"{options['label']} = {found.positive_label}"
    facts = facts_of(source, event=event, **data.columns.named, **drawn)
    return {"facts": facts, "pictures": threshold_pictures(found, rows_of)}
