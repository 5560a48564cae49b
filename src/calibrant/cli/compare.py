"""`calibrant compare`: calibration methods side by side."""

from typing import Any

from calibrant.cli import _options as option
from calibrant.cli._input import labelled, sample_of
from calibrant.cli._methods import BINS
from calibrant.cli._output import print_json, remark, saved
from calibrant.cli._report import check_report, facts_of, write_report
from calibrant.cli._show import result_json, show
from calibrant.cli._signature import Declared
from calibrant.cli._signs import show_signs, signs_of, texts_of
from calibrant.text.numbers import rows

_COMPARE = Declared("assess.compare_models.calibrators", "compare_calibrators")


@option.command("Which calibration method is better? See what the data prove.")
@option.data
@option.score
@option.label
@option.group
@option.group_size(
    _COMPARE, ": a limit chosen before you looked at the rows. Required with --group."
)
@option.weights(_COMPARE)
@option.skip_missing
@option.confidence(_COMPARE)
@option.bins(BINS, "Number of bins, for methods that use bins.")
@_COMPARE.option(
    "clip", "For the log loss, clip probabilities to [SIZE, 1 - SIZE].", metavar="SIZE"
)
@option.most_rows
@option.seed(_COMPARE)
@option.output("Write a report: a single HTML file that needs nothing else.")
@option.classes
@option.overwrite
@option.reading
@option.common
def command(**options: Any) -> None:
    """Compare calibration methods, fitted to one half of the rows, on the other half.

    Differences in loss have limits that hold for all methods simultaneously, and so do the
    guarantees of the fitted methods.

    Examples
    --------
    calibrant compare scores.csv --score p --label y
    calibrant compare visits.csv --score p --label y --group patient --max-group-size 5
    calibrant compare scores.csv --score p --label y -o compare.html
    calibrant compare scores.parquet --score p --label y --bins 10 --json
    """
    check_report(options)
    with labelled(options, "group", "weight") as (source, data, labels):
        n_rows, draw = sample_of(data, options)
        sample = data.with_classes(**labels).collect(draw=draw)
        facts = sample.facts(drawn=False)
        signs = signs_of(data, labels, options)
        about = facts_of(source, **data.columns.named)
    if draw is not None:
        remark(
            f"comparing a random sample of {sample.scores.size:,} of {rows(n_rows)} (--most-rows)"
        )
    found = _compare(sample, labels, options)
    output = options["output"]
    if output is not None:
        warnings = texts_of(signs)
        write_report(output, found, about, overwrite=options["overwrite"], warnings=warnings)
    if options["as_json"]:
        print_json(
            {
                "command": "compare",
                **result_json(found),
                "n_in_data": n_rows,
                "n_skipped": facts.skipped,
                "report": output,
                "signs_of_groups": signs,
            }
        )
        return
    show(found, notes=facts.notes)
    show_signs(signs)
    if output is not None:
        saved(output)


def _compare(sample: Any, labels: dict[str, Any], options: dict[str, Any]) -> Any:
    from calibrant import compare_calibrators
    from calibrant.assess.compare_models.calibrators import default_calibrators

    scores = sample.scores
    calibrators = default_calibrators(
        probabilities=bool(scores.size and scores.min() >= 0 and scores.max() <= 1),
        weighted=sample.weights is not None,
        n_bins=options["n_bins"],
        confidence_level=options["confidence_level"],
        random_state=options["random_state"],
    )
    return compare_calibrators(
        sample.labels,
        scores,
        calibrators,
        importance_weight=sample.weights,
        groups=None if sample.groups is None else sample.groups.row_keys,
        **_COMPARE.arguments(options),
        **labels,
    )
