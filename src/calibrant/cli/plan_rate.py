"""`calibrant plan-rate`: how many labels `calibrant rate` needs."""

from typing import Any

import click

from calibrant.cli import _options as option
from calibrant.cli._report import check_outputs
from calibrant.cli._show import answer


@option.command("plan-rate", "How many labels does a rate or a release gate need?")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
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

    check_outputs(options)
    answer(plan_rate(**option.arguments("plan-rate", options)), options)
