"""`calibrant audit`: is the model calibrated? What is proved, and what no one can know."""

from typing import Any

import click

from calibrant.cli._options import (
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
    short_help="Is the model calibrated? What is proved.",
    epilog=examples(
        "calibrant audit scores.csv --score p --label y -o audit.html",
        "calibrant audit loans.csv --score p --label defaulted --pos-label Y          # labels are words",
        "calibrant audit scores.parquet --score p --label y --segment region",
        "calibrant audit scores.csv --score p --label y --check --json    # exit 1 if proved miscalibrated",
    ),
)
@data_argument
@column_options()
@confidence_option(0.95)
@bins_option("Bins of the finest resolution that is looked at.")
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(), help="Write a report, one HTML file that needs nothing else."
)
@click.option("--model", metavar="MODEL", help="Show the promise of this model beside the audit, in the report; "
              "it must be of the same columns and labels.")  # fmt: skip
@click.option("--title", metavar="TEXT", help="Of the report.")
@click.option("--check", is_flag=True, help="Exit with 1 if the scores are proved miscalibrated.")
@class_options
@overwrite_option
@reading_options
@common
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Say what is proved of the scores' calibration, for every distribution of the data.

    DATA are rows that the model behind the scores was not trained on, with their outcomes: files, folders or globs, or
    - for standard input. Scores must be probabilities, between 0 and 1.
    """
    from calibrant.cli._auditing import audit_files

    ctx.exit(audit_files(options))
