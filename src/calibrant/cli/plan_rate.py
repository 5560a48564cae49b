"""`calibrant plan-rate`: how many labels `calibrant rate` needs."""

from typing import Any

import click

from calibrant.cli import _options as option
from calibrant.cli._output import print_json, saved
from calibrant.cli._report import check_report, write_report
from calibrant.cli._show import result_json, show
from calibrant.cli._signature import Declared

_PLAN = Declared("assess.rates.label_counts", "plan_rate")


@option.command("How many labels does a rate or a release gate need?")
@_PLAN.option(
    "at_least",
    "The rate to show, as in rate --at-least. Give this, --at-most or --width.",
    metavar="RATE",
)
@_PLAN.option(
    "at_most",
    "The same for a rate that must be at most this, as in rate --at-most.",
    metavar="RATE",
)
@_PLAN.option("width", "The distance between the two limits.", metavar="WIDTH")
@_PLAN.option("n_items", "Number of items. Default: a very large number.", metavar="N")
@_PLAN.option(
    "n_labels",
    "With --at-least or --at-most: a number of labels, to see how many of them may fail.",
    metavar="N",
)
@_PLAN.option(
    "expected_rate",
    "The rate that you expect; with --at-least or --at-most, required for a number of labels."
    " Default for --width: the worst case.",
    metavar="RATE",
)
@_PLAN.option(
    "sensitivity",
    "Share of the positive items that the judge passes. Default: labels alone.",
    metavar="SHARE",
)
@_PLAN.option("specificity", "Share of the negative items that the judge fails.", metavar="SHARE")
@option.confidence(_PLAN)
@_PLAN.option(
    "probability",
    "With --at-least or --at-most: the probability that the labels show it.",
    metavar="P",
)
@option.output("Write a report: a single HTML file that needs nothing else.")
@option.overwrite
@option.common
@click.pass_context
def command(ctx: click.Context, /, as_json: bool, **options: Any) -> None:
    """Say how many labels calibrant rate needs to show that a rate is high or low enough, or for
    limits of a given width.

    The number of labels is an estimate. How many labels may fail is exact for labels alone; a good
    judge allows a few more.

    Examples
    --------
    calibrant plan-rate --at-least 0.95 --items 5000 -o plan.html
    calibrant plan-rate --at-least 0.9 --items 5000 --expected-rate 0.94
    calibrant plan-rate --at-most 0.1 --items 5000 --labels 100
    calibrant plan-rate --width 0.05 --expected-rate 0.92 --sensitivity 0.97 --specificity 0.85
    """
    if sum(options[name] is not None for name in ("at_least", "at_most", "width")) != 1:
        raise click.UsageError("give one of --at-least, --at-most and --width", ctx)
    from calibrant import plan_rate

    check_report(options)
    found = plan_rate(**_PLAN.arguments(options))
    output = options["output"]
    if output is not None:
        write_report(output, found, {}, overwrite=options["overwrite"])
    if as_json:
        print_json({"command": "plan-rate", **result_json(found), "report": output})
        return
    show(found, always=True)
    if output is not None:
        saved(output)
