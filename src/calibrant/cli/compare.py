"""`calibrant compare`: calibration methods side by side."""

from typing import Any

from calibrant.cli import _options as option
from calibrant.cli._input import labelled, sample_of
from calibrant.cli._output import remark
from calibrant.cli._report import check_outputs, facts_of
from calibrant.cli._show import answer
from calibrant.cli._signs import on_rows
from calibrant.text.numbers import rows


@option.command("compare", "Which calibration method is better?", option.data)
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
    from calibrant import Sample, compare_calibrators
    from calibrant.assess.compare_models.calibrators import default_calibrators

    check_outputs(options)
    with labelled(options) as (source, data, labels):
        n_rows, draw = sample_of(data, options)
        sample = data.with_classes(**labels).collect(draw=draw)
        about_rows = on_rows(data, labels, options, sample, n_in_data=n_rows)
        facts = facts_of(source, **data.columns.named)
    scores = sample.scores
    if draw is not None:
        remark(f"comparing a random sample of {scores.size:,} of {rows(n_rows)} (--most-rows)")
    calibrators = default_calibrators(
        probabilities=bool(scores.size and scores.min() >= 0 and scores.max() <= 1),
        weighted=sample.weights is not None,
        n_bins=options["n_bins"],
        confidence_level=options["confidence_level"],
        random_state=options["random_state"],
    )
    given = option.arguments("compare", options)
    found = compare_calibrators(Sample(sample), None, calibrators, **given, **labels)
    answer(found, options, facts, **about_rows)
