"""`calibrant plan`: how many labels a guarantee needs."""

from typing import Any

import click

from calibrant.cli import _options as option
from calibrant.cli._output import print_json
from calibrant.cli._show import result_json, show


@option.command("How many labels does a guarantee need?")
@click.option("--epsilon", type=float, metavar="E", help="Epsilon to reach: give this or --rows.")
@click.option(
    "--rows", "n", type=int, metavar="N", help="Number of labels: give this or --epsilon."
)
@click.option(
    "--bins", "n_bins", type=int, default=10, show_default=True, metavar="N", help="Number of bins."
)
@option.confidence(0.9)
@click.option(
    "--base-rate",
    type=float,
    metavar="RATE",
    help="Share of positives, if known. Default: the worst case.",
)
@click.option(
    "--probability",
    type=float,
    default=0.9,
    show_default=True,
    metavar="P",
    help="How likely the plan must be to succeed, with --base-rate or --pilot.",
)
@click.option(
    "--interval",
    type=click.Choice(option.PLAN_INTERVALS),
    default=option.PLAN_INTERVALS[0],
    show_default=True,
)
@option.pilot
@click.option(
    "--group-size", type=int, metavar="N", help="Rows of each group, where rows are grouped."
)
@click.option(
    "--icc", type=float, metavar="R", help="Correlation of labels within a group, from 0 to 1."
)
@option.common
@click.pass_context
def command(ctx: click.Context, /, as_json: bool, confidence: float, **options: Any) -> None:
    """Say how many labels a guarantee needs, or what a number of labels guarantees.

    The answer uses the exact intervals of fit, not a formula. It is for fit --method binning. The
    default method, anchored, is not covered; its epsilon is usually larger.

    Examples
    --------
    calibrant plan --epsilon 0.05 --bins 10
    calibrant plan --rows 20000 --bins 10
    calibrant plan --epsilon 0.01 --bins 5 --base-rate 0.02
    calibrant plan --epsilon 0.1 --bins 5 --group-size 10 --icc 0.3
    """
    if (options["epsilon"] is None) == (options["n"] is None):
        raise click.UsageError("give one of --epsilon and --rows", ctx)
    from calibrant import plan

    del options["quiet"]
    options["pilot"] = {None: "auto", "none": None}.get(options["pilot"], options["pilot"])
    found = plan(confidence_level=confidence, **options)
    if as_json:
        print_json({"command": "plan", **result_json(found), "method": "binning"})
    else:
        show(
            found,
            notes=["the default method, anchored, is not covered; its epsilon is usually larger"],
        )
