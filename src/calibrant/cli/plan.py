"""`calibrant plan`: how many labels a guarantee needs."""

from typing import Any

import click

from calibrant.cli import _options as option
from calibrant.cli._output import print_json, saved
from calibrant.cli._report import check_report, write_report
from calibrant.cli._show import result_json, show

_SETTINGS = ("epsilon", "n", "n_bins", "base_rate", "probability", "interval", "group_size", "icc")
_CALIBRATORS = {"binning": "BinningCalibrator", "anchored": "AnchoredCalibrator"}
_NOT_COVERED = "the default method of fit, anchored, is not covered; see --method anchored"


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
@click.option(
    "--method",
    type=click.Choice(tuple(_CALIBRATORS)),
    default="binning",
    show_default=True,
    help="What is fitted: binning is planned for any rates, anchored for smooth ones.",
)
@option.output("Write a report: one HTML file that needs nothing else.")
@option.overwrite
@option.common
@click.pass_context
def command(ctx: click.Context, /, method: str, **options: Any) -> None:
    """Say how many labels a guarantee needs, or what a number of labels guarantees.

    The answer for fit --method binning uses its exact intervals, not a formula, and holds for any
    rates. That for --method anchored, the default of fit, is an estimate by simulation for rates
    that rise smoothly and clearly with the score.

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
    pilot = {None: "auto", "none": None}.get(options["pilot"], options["pilot"])
    settings = {name: options[name] for name in _SETTINGS}
    settings["calibrator"] = _CALIBRATORS[method]
    found = plan(confidence_level=options["confidence"], pilot=pilot, **settings)
    output = options["output"]
    if output is not None:
        write_report(output, found, {"method": method}, overwrite=options["overwrite"])
    if options["as_json"]:
        print_json({"command": "plan", **result_json(found), "method": method, "report": output})
        return
    show(found, notes=[_NOT_COVERED] if method == "binning" else [])
    if output is not None:
        saved(output)
