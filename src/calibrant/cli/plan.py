"""`calibrant plan`: how many labels a guarantee needs."""

from typing import Any

import click

from calibrant.cli import _options as option
from calibrant.cli._output import print_json, saved
from calibrant.cli._report import check_report, write_report
from calibrant.cli._show import result_json, show
from calibrant.cli._signature import Declared, interval_names

_PLAN = Declared("assess.plan.plan", "plan")
_CALIBRATORS = {"binning": "BinningCalibrator", "anchored": "AnchoredCalibrator"}


@option.command("How many labels does a guarantee need?")
@_PLAN.option("epsilon", "Epsilon to reach: give this or --rows.", metavar="E")
@_PLAN.option("n", "Number of labels: give this or --epsilon.", metavar="N")
@_PLAN.option("n_bins", "Number of bins.", metavar="N")
@option.confidence(_PLAN)
@_PLAN.option("base_rate", "Share of positives, if known. Default: the worst case.", metavar="RATE")
@_PLAN.option(
    "probability",
    "Probability that the plan succeeds, with --base-rate or --pilot.",
    metavar="P",
)
@_PLAN.option("interval", "Confidence interval.", choices=interval_names(planned=True))
@option.pilot(_PLAN)
@_PLAN.option("group_size", "Rows per group, for grouped data.", metavar="N")
@_PLAN.option("icc", "Correlation of labels within a group, from 0 to 1.", metavar="R")
@click.option(
    "--method",
    type=click.Choice(tuple(_CALIBRATORS)),
    default="binning",
    show_default=True,
    help="Method to plan for: binning for any rates, anchored for smooth ones.",
)
@option.output("Write a report: a single HTML file that needs nothing else.")
@option.overwrite
@option.common
@click.pass_context
def command(ctx: click.Context, /, method: str, **options: Any) -> None:
    """Say how many labels a guarantee needs, or what a number of labels guarantees.

    The answer for fit --method binning uses its exact intervals, not a formula, and holds for any
    rates. The answer for --method anchored, the default of fit, is an estimate by simulation for
    rates that rise smoothly and clearly with the score. A note to the first answer gives the second.

    Examples
    --------
    calibrant plan --epsilon 0.05 --bins 10
    calibrant plan --rows 20000 --bins 10 -o plan.html
    calibrant plan --epsilon 0.01 --bins 5 --base-rate 0.02
    calibrant plan --epsilon 0.1 --bins 5 --group-size 10 --icc 0.3
    calibrant plan --epsilon 0.05 --method anchored
    """
    if (options["epsilon"] is None) == (options["n"] is None):
        raise click.UsageError("give one of --epsilon and --rows", ctx)
    from calibrant import plan

    check_report(options)
    found = plan(calibrator=_CALIBRATORS[method], **_PLAN.arguments(options))
    output = options["output"]
    if output is not None:
        write_report(output, found, {"method": method}, overwrite=options["overwrite"])
    if options["as_json"]:
        print_json({"command": "plan", **result_json(found), "method": method, "report": output})
        return
    show(found, always=True)
    if output is not None:
        saved(output)
