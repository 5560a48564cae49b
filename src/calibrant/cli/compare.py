"""`calibrant compare`: calibrators side by side."""

from typing import Any

import click

from calibrant.cli._options import (
    bins_option,
    class_options,
    common,
    confidence_option,
    data_argument,
    examples,
    reading_options,
)


@click.command(
    short_help="Methods side by side.",
    epilog=examples(
        "calibrant compare scores.csv --score p --label y",
        "calibrant compare scores.parquet --score p --label y --bins 10 --json",
    ),
)
@data_argument
@click.option("--score", metavar="COLUMN", help="Column of the model's scores.")
@click.option("--label", metavar="COLUMN", help="Column of the outcomes.")
@confidence_option(0.9)
@bins_option("Number of bins of the methods that have bins.")
@click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True, help="Of the cross-validation.")
@click.option("--most-rows", type=click.IntRange(min=100), default=1_000_000, show_default=True, metavar="N",
              help="Beyond this, a random sample is compared.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Draws sample and folds.")
@class_options
@reading_options
@common
def command(**options: Any) -> None:
    """Put methods of calibration side by side: what each measures on held-out rows, and what it promises."""
    from calibrant.cli._comparing import compare_files

    compare_files(options)
