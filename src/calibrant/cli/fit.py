"""`calibrant fit`: calibrate, and save the model with its guarantee."""

from typing import Any

import click

from calibrant.cli._methods import METHODS
from calibrant.cli._options import (
    INTERVALS,
    Share,
    bins_option,
    class_options,
    column_options,
    common,
    confidence_option,
    data_argument,
    examples,
    overwrite_option,
    reading_options,
)


@click.command(
    short_help="Calibrate, with a guarantee.",
    epilog=examples(
        "calibrant fit scores.csv --score p --label y -o model.json",
        "calibrant fit loans.csv --score p --label defaulted --pos-label Y -o model.json",
        "calibrant fit 'days/*.parquet' --score p --label y --segment region --bins 10 -o model.json",
        "calibrant fit forest.csv --score p --label y --split 0.2 -o model.json       # tied scores",
        "calibrant fit old.csv --score p --label y --weight w --weight-bound 8 -o model.json",
        "calibrant fit scores.csv --score p --label y --require-epsilon 0.05 --json   # for scripts",
    ),
)
@data_argument
@column_options(weight=True, row_id=True)
@confidence_option(0.9)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(),
    help="Where to save the model, as JSON; without it, nothing is saved.",
)
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="binning",
    show_default=True,
    help="binning and uniform read files of any size; the others need the rows in memory. Only binning, uniform and "
    "scaling-binning have a guarantee.",
)
@bins_option("Number of bins; in each segment, where there are any.")
@click.option("--interval", type=click.Choice(INTERVALS), help="How limits are found; clopper-pearson by default.")
@click.option("--value", type=click.Choice(("mean", "midpoint")), default="mean", show_default=True,
              help="What is predicted in a bin.")  # fmt: skip
@click.option("--split", type=Share(), metavar="SHARE", help="Fraction or number of rows that only cut bins: for "
              "scores with many ties.")  # fmt: skip
@click.option(
    "--range", "score_range", type=(float, float), metavar="LOW HIGH", help="Of uniform bins; 0 to 1 if not given."
)
@click.option("--weight-bound", type=float, metavar="BOUND", help="A number that no weight can exceed.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Draws the split.")
@click.option("--require-epsilon", type=float, metavar="E", help="Exit with 1 if the promise is weaker than this.")
@class_options
@overwrite_option
@reading_options
@common
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Calibrate scores, say what is promised, and save the model.

    DATA are rows that the model behind the scores was not trained on: files, folders or globs, or - for standard
    input. With the default method the promise holds for every distribution of the data.
    """
    from calibrant.cli._fitting import fit_files

    ctx.exit(fit_files(options))
