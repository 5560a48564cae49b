"""`calibrant plan`: how many labels a promise needs."""

from dataclasses import asdict

import click

from calibrant.cli._options import INTERVALS, Share, common, confidence_option, examples


@click.command(
    short_help="How many labels does a promise need?",
    epilog=examples(
        "calibrant plan --epsilon 0.05 --bins 10",
        "calibrant plan --rows 20000 --bins 10",
        "calibrant plan --epsilon 0.01 --bins 5 --base-rate 0.02",
    ),
)
@click.option("--epsilon", type=float, metavar="E", help="The promise wanted: give this or --rows.")
@click.option("--rows", type=int, metavar="N", help="The labels there are: give this or --epsilon.")
@click.option("--bins", type=int, default=10, show_default=True, metavar="N", help="Number of bins.")
@confidence_option(0.9)
@click.option(
    "--base-rate", type=float, metavar="RATE", help="Share of positives, if it is known; else the worst case."
)
@click.option("--interval", type=click.Choice(INTERVALS[:-1]), default=INTERVALS[0], show_default=True)
@click.option("--split", type=Share(), metavar="SHARE", help="Rows that only cut bins.")
@common
def command(
    epsilon: float | None,
    rows: int | None,
    bins: int,
    confidence: float,
    base_rate: float | None,
    interval: str,
    split: float | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Tell how many labels a promise needs, or what so many labels buy.

    Searched with the exact intervals that fit uses, not with a formula.
    """
    if (epsilon is None) == (rows is None):
        raise click.UsageError("give one of --epsilon and --rows", click.get_current_context())
    from calibrant import plan
    from calibrant.cli._errors import in_words
    from calibrant.cli._output import paragraph, print_json

    found = plan(
        epsilon=epsilon,
        n=rows,
        confidence_level=confidence,
        n_bins=bins,
        base_rate=base_rate,
        interval=interval,
        split=split,
    )
    if as_json:
        print_json({"command": "plan", "sentence": in_words(str(found)), **asdict(found)})
        return
    paragraph(in_words(str(found)), bold=True)
