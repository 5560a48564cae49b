"""`calibrant threshold`: the threshold with a proved precision, recall, npv or specificity."""

import math
from dataclasses import dataclass
from typing import Any

import click

from calibrant.cli import _options as option
from calibrant.cli._errors import RefusedError
from calibrant.cli._input import labelled, sample_of
from calibrant.cli._output import print_json, saved, warn
from calibrant.cli._report import facts_of, is_page, write_report
from calibrant.cli._show import result_json, show
from calibrant.cli._signature import Declared, words_of
from calibrant.cli._signs import on_first_rows, signs_of, texts_of
from calibrant.cli._target import InputPath, check_target
from calibrant.text.numbers import rows

_MOST_DRAWN = 1_000_000  # rows from which the curves of the report are drawn
_THRESHOLD = Declared("assess.threshold.threshold", "threshold")
_METHODS = words_of("assess.threshold.threshold", "METHODS")
_TARGETS = {
    "precision": "Share of positives among selected rows.",
    "recall": "Share of positives that are selected.",
    "npv": "Share of negatives among rows that are not selected.",
    "specificity": "Share of negatives that are not selected.",
}
_targets = option.together(
    *(_THRESHOLD.option(name, text, metavar="SHARE") for name, text in _TARGETS.items())
)


@option.command("Find a threshold with a guaranteed precision or recall.")
@option.data
@option.columns
@_targets
@option.skip_missing
@option.confidence(_THRESHOLD)
@_THRESHOLD.option(
    "method",
    "ranks uses no pilot rows; look uses pilot rows to choose what to test; auto uses "
    "ranks, or look with --group or above a million rows.",
    choices=_METHODS,
)
@_THRESHOLD.option(
    "start",
    "For --precision or --npv: a threshold fixed before you looked at the rows; no pilot "
    "rows are needed.",
    metavar="SCORE",
)
@_THRESHOLD.option(
    "pilot", "With --method look: fraction or number of pilot rows.", metavar="SHARE"
)
@click.option(
    "--unlabelled",
    metavar="FILE",
    type=InputPath(),
    help=(
        "File with the same score column for further rows without labels, used to count "
        "the share selected."
    ),
)
@option.row_id
@option.group
@option.group_size(_THRESHOLD, ". Default: the size of the largest pilot group.")
@option.weights(_THRESHOLD)
@option.seed(_THRESHOLD)
@option.output(
    "Write a model file for export and load_model (if FILE ends in .json) or a report (.html)."
)
@click.option("--check", is_flag=True, help="Exit with 1 if a target cannot be proved.")
@option.classes
@option.overwrite
@option.reading
@option.common
def command(**options: Any) -> int:
    """Find the threshold at which a target is proved: rows with score >= threshold are selected.

    For precision and specificity it is the lowest threshold, for recall and npv the highest. Give
    one target, or --precision and --npv, which leave the rows in between to a person.

    Examples
    --------
    calibrant threshold scores.csv --score p --label y --precision 0.9
    calibrant threshold scores.parquet --score p --label y --recall 0.95 --segment region
    calibrant threshold scores.csv --score p --label y --precision 0.9 --npv 0.99 -o thresholds.json
    calibrant threshold scores.csv --score p --label y --precision 0.9 -o thresholds.html
    """
    _check_output(options)
    found = _find(options)
    if options["as_json"]:
        print_json(_json(found, options))
    else:
        _show(found, options)
    return 1 if options["check"] and not found.threshold.is_proved else 0


@dataclass(frozen=True, slots=True)
class _Found:
    """The thresholds, and the notes on the rows they come from."""

    threshold: Any
    n_skipped: int
    notes: tuple[str, ...]
    signs: list[dict[str, Any]]
    on_first_rows: list[str]

    @property
    def warnings(self) -> list[str]:
        return [*texts_of(self.signs), *self.on_first_rows]


def _check_output(options: dict[str, Any]) -> None:
    """Reject an output file that is neither a model file nor a report, or cannot be written."""
    output = options["output"]
    if output is None:
        return
    if not (is_page(output) or output.lower().endswith(".json")):
        raise RefusedError("-o", "end in .json, or in .html for a report", got=repr(output))
    check_target(options)
    if options["unlabelled"] is not None and not is_page(output):
        why = "verify must be able to recompute a model file, and it reads labelled rows only"
        advice = f"{why}: leave out one of the two"
        got = f"-o {output}"
        raise RefusedError("--unlabelled", "be used without a model file", got=got, advice=advice)


def _find(options: dict[str, Any]) -> _Found:
    """Find the thresholds in the rows of the files, and write the output file."""
    with labelled(options, "segment", "id", "group", "weight") as (source, data, labels):
        threshold = _threshold(data, labels, options)
        facts = data.facts(drawn=False)
        signs = signs_of(data, labels, options)
        first = on_first_rows(data, labels)
        found = _Found(threshold, facts.skipped, facts.notes, signs, first)
        if is_page(options["output"]):
            _write_report(found, source, data.with_classes(**labels), options)
        elif options["output"] is not None:
            provenance = _provenance(source, data, labels, options)
            _save(found, data.columns.named, provenance, options)
    return found


def _threshold(data: Any, labels: dict[str, Any], options: dict[str, Any]) -> Any:
    from calibrant import threshold

    return threshold(
        data,
        unlabelled_scores=_unlabelled(options),
        **_THRESHOLD.arguments(options),
        **labels,
    )


def _provenance(
    source: Any, data: Any, labels: dict[str, Any], options: dict[str, Any]
) -> dict[str, Any]:
    """The origin of the thresholds: what `calibrant verify` needs to find them again."""
    from calibrant.cli._verify_threshold import SETTINGS
    from calibrant.cli.fit import provenance_of

    classes = labels["classes"]
    settings = {name: options[name] for name in SETTINGS}
    settings |= {
        "classes": None if classes is None else list(classes),
        "skip_missing": options["skip_missing"],
    }
    facts, _ = provenance_of(source, data, settings)
    if options["group"] is not None:
        facts["groups"] = data.n_groups()
    return facts


def _unlabelled(options: dict[str, Any]) -> Any:
    """Scores of rows without labels, from their own file."""
    path = options["unlabelled"]
    if path is None:
        return None
    from calibrant.cli._input import Files
    from calibrant.cli._records import read_columns

    how = {name: options[name] for name in ("file_format", "threads", "quiet", "decimal")}
    source = Files([path], **how)
    return read_columns(source, {"score": options["score"]})["score"]


def _save(found: _Found, columns: Any, provenance: dict[str, Any], options: dict[str, Any]) -> None:
    """Write the model file."""
    from calibrant import save_model

    save_model(
        found.threshold,
        options["output"],
        columns=columns,
        provenance=provenance,
        overwrite=options["overwrite"],
    )


def _write_report(found: _Found, source: Any, data: Any, options: dict[str, Any]) -> None:
    """Write the report, with curves from a random sample if there are very many rows."""
    import numpy as np

    from calibrant.draw.report.pages import Beside

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
    event = f"{options['label']} = {found.threshold.positive_label}"
    about = facts_of(source, event=event, **data.columns.named, **drawn)
    write_report(
        options["output"],
        found.threshold,
        about,
        overwrite=options["overwrite"],
        beside=Beside(rows_of=rows_of),
        warnings=found.warnings,
    )


def _json(found: _Found, options: dict[str, Any]) -> dict[str, Any]:
    """The thresholds as plain values; documented on the command-line page."""
    return {
        "command": "threshold",
        "output": options["output"],
        **result_json(found.threshold),
        "n_skipped": found.n_skipped,
        "signs_of_groups": found.signs,
    }


def _show(found: _Found, options: dict[str, Any]) -> None:
    """Show the thresholds, the notes on the rows, and which file was written."""
    show(found.threshold, notes=found.notes)
    for text in found.warnings:
        warn(text)
    output = options["output"]
    if output is not None:
        selects = is_page(output) or _selects_rows(found.threshold)
        saved(output, "" if selects else "it selects no row")


def _selects_rows(threshold: Any) -> bool:
    """Whether some segment has a score from which on rows are selected."""
    return any(high < math.inf for _, high in threshold.ends.values())
