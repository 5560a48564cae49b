"""`calibrant verify`: whether the certificate stands."""

from typing import Any

import click

from calibrant.cli._options import column_options, common, data_argument, examples, reading_options


@click.command(
    short_help="Does the certificate stand? Recompute it.",
    epilog=examples(
        "calibrant verify model.json scores.csv",
        "calibrant verify model.json scores.parquet --json && echo stands",
    ),
)
@click.argument("model", metavar="MODEL", type=click.Path(allow_dash=True))
@data_argument
@column_options(weight=True, row_id=True)
@reading_options
@common
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Recompute the tally and the guarantee from DATA, and say whether the model's certificate stands.

    DATA are the rows the model was fitted on, in any format and, unless rows were drawn without --id, in any order.
    Columns are those the model remembers. Exit code 0: it stands; 1: it does not, or there is none.
    """
    from calibrant.cli._verifying import verify_files

    ctx.exit(verify_files(options))
