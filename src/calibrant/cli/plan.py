"""`calibrant plan`: how many labels a guarantee needs."""

from typing import Any

import click

from calibrant.cli import _options as option
from calibrant.cli._report import check_outputs
from calibrant.cli._show import answer

_CALIBRATORS = {"binning": "BinningCalibrator", "curve": "Calibrator"}


@option.command("plan", "How many labels does a guarantee need?")
@click.pass_context
def command(ctx: click.Context, /, method: str, **options: Any) -> None:
    """Say how many labels a guarantee needs, or what a number of labels guarantees.

    The answer for fit --method binning uses its exact intervals, not a formula, and holds for any
    rates. The answer for --method curve, the default of fit, is an estimate by simulation for
    rates that rise smoothly and clearly with the score. A note to the first answer gives the second.

    Examples
    --------
    calibrant plan --epsilon 0.05 --bins 10
    calibrant plan --rows 20000 --bins 10 -o plan.html
    calibrant plan --epsilon 0.01 --bins 5 --base-rate 0.02
    calibrant plan --epsilon 0.1 --bins 5 --group-size 10 --icc 0.3
    calibrant plan --epsilon 0.05 --method curve
    """
    if (options["epsilon"] is None) == (options["n"] is None):
        raise click.UsageError("give one of --epsilon and --rows", ctx)
    from calibrant import plan

    check_outputs(options)
    found = plan(calibrator=_CALIBRATORS[method], **option.arguments("plan", options))
    answer(found, options, {"method": method}, {"method": method})
