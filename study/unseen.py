"""The study on sets that no choice has seen: calibrators of other packages as their authors
recommend them, guarantees by number of rows beside an oracle, and whole classifiers.

The parts of the study whose names begin with `unseen`.
"""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from judging import counts, is_broken
from methods import BY_DECISIONS, Method, betacal, measure, probcal, scikit_learn, venn_abers
from scipy.special import logit
from scipy.stats import beta
from sets import CALIBRATE, TRAIN, RealSet, generator, load, score, scored
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from calibrant import (
    BinningCalibrator,
    BlendCalibrator,
    CalibratedClassifier,
    Calibrator,
    DriftMonitor,
    SubgroupCalibrator,
)

Line = dict[str, Any]
UNSEEN_SPLITS = 10
SPLITS = {"unseen_large": 1, "unseen_few": 3, "unseen_our_few": 3}
"""Of parts that have fewer."""
UNSEEN_MODELS = ("logistic", "lightgbm", "forest")
SIZES = (100, 300, 1_000, 3_000)
CONFIDENCE = 0.9
N_FOLDS = 5


def isotonic_clipped(s: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Isotonic regression whose predictions keep half a row's distance from 0 and 1."""
    least = 1 / (2 * len(y))
    fitted = IsotonicRegression(out_of_bounds="clip").fit(s, y)
    return np.clip(fitted.predict(test), least, 1 - least)


def probmetrics(name: str) -> Method:
    def run(s: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
        from probmetrics.calibrators import get_calibrator

        fitted = get_calibrator(name).fit(np.column_stack([1 - s, s]), y)
        return fitted.predict_proba(np.column_stack([1 - test, test]))[:, 1]

    return run


def probcal_automatic(s: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
    from probcal import CalibratorSelector

    return CalibratorSelector().fit(s, y).predict_proba(test)


def netcal_beta(s: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
    from netcal.scaling import BetaCalibration

    fitted = BetaCalibration()
    fitted.fit(s, y)
    return np.ravel(fitted.transform(test))


def ours(make: type) -> Method:
    return lambda s, y, test: make().fit(s, y).predict(test)


RIVALS: dict[str, Method] = {
    "raw score": lambda s, y, test: test,
    "scikit-learn sigmoid": scikit_learn("sigmoid"),
    "scikit-learn isotonic": scikit_learn("isotonic"),
    "isotonic, clipped at 1/(2n)": isotonic_clipped,
    "scikit-learn temperature": scikit_learn("temperature"),
    "betacal": betacal,
    "probmetrics beta": probmetrics("beta"),
    "probmetrics quadratic": probmetrics("quadratic-scaling"),
    "probmetrics recommended": probmetrics("logistic"),
    "probcal automatic": probcal_automatic,
    "probcal CrossVennAbers": probcal("CrossVennAbers"),
    "venn-abers": venn_abers,
    "netcal beta": netcal_beta,
}
OURS: dict[str, Method] = {
    "calibrant": ours(Calibrator),
    "calibrant binning": ours(BinningCalibrator),
}
FEW = (100, 300, 1_000)
RIVALS_BY_SIZE = {
    name: RIVALS[name]
    for name in (
        "scikit-learn sigmoid",
        "scikit-learn isotonic",
        "probmetrics beta",
        "probmetrics quadratic",
    )
} | {"probcal Spline": probcal("Spline")}
OURS_BY_SIZE = {"BlendCalibrator": ours(BlendCalibrator), "calibrant": ours(Calibrator)}


def unseen_part(
    methods: dict[str, Method],
    real: RealSet,
    model: str,
    split: str,
    cache_folder: Path,
    *,
    sizes: Sequence[int] = (),
) -> Iterator[Line]:
    """Rows split at random: each method is fitted to the calibration rows, or to the first few of
    them, and measured on the test rows.

    scikit-learn's calibrators take the log odds of a logistic regression, as they would in
    `CalibratedClassifierCV`.
    """
    scores, y, n = scored(real, model, int(split), cache_folder)
    smallest = np.finfo(float).eps
    decisions = logit(np.clip(scores, smallest, 1 - smallest))
    for size, (name, method) in itertools.product(sizes or (n,), methods.items()):
        if size > n or len(np.unique(y[:size])) < 2:
            continue
        given, run = scores, method
        if model == "logistic" and name in BY_DECISIONS:
            given, run = decisions, BY_DECISIONS[name]
        common = {"set": real.name, "model": model, "split": split, "method": name, "rows": size}
        try:
            found = measure(run(given[:size], y[:size], given[n:]), y[n:])
        except Exception as error:  # whatever a peer raises is counted, and told on the page
            yield {**common, "failed": type(error).__name__}
            continue
        yield {**common, "failed": "", **found}


def half_widths(rows: np.ndarray, positives: np.ndarray, n_at_once: int) -> np.ndarray:
    """Half the widths of exact limits on each rate, for `n_at_once` regions simultaneously."""
    tail = (1 - CONFIDENCE) / (2 * n_at_once)
    lower = np.nan_to_num(beta.ppf(tail, positives, rows - positives + 1), nan=0.0)
    upper = np.nan_to_num(beta.isf(tail, positives + 1, rows - positives), nan=1.0)
    return (upper - lower) / 2


def unseen_guarantees_part(
    real: RealSet, model: str, split: str, cache_folder: Path
) -> Iterator[Line]:
    """Guarantees from independent draws of a known population, by number of rows.

    All rows that did not train the model are the population. The oracle is told the regions of the
    fitted calibrator, may count all rows that were drawn, and knows that predictions are fixed:
    its epsilon is half the width of the widest of the exact limits. The other columns take its
    advantages away one after another.
    """
    scores, y, _ = scored(real, model, int(split), cache_folder)
    for name, make in {"calibrant": Calibrator, "calibrant binning": BinningCalibrator}.items():
        for n in SIZES:
            drawn = generator(real.name, model, split, n).integers(0, len(y), n)
            fitted = make().fit(scores[drawn], y[drawn], classes=(0, 1))
            guarantee = fitted.guarantee_
            rows, positives, _ = counts(fitted, scores[drawn], y[drawn])
            counted = np.asarray(guarantee.counts, dtype=float)
            at_rates = counted * positives / np.maximum(rows, 1)
            n_regions = len(rows)
            yield {
                "set": real.name,
                "model": model,
                "split": split,
                "method": name,
                "n": n,
                "regions": n_regions,
                "broken": int(is_broken(fitted, scores, y)),
                "vacuous": int(guarantee.is_vacuous),
                "epsilon": guarantee.epsilon,
                "average_epsilon": guarantee.average_epsilon,
                "one_region": half_widths(rows, positives, 1).max(),
                "oracle": half_widths(rows, positives, n_regions).max(),
                "counted_rows": half_widths(counted, at_rates, n_regions).max(),
            }


CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: LogisticRegression(max_iter=2000),
    "lightgbm": lambda: _lightgbm(),
    "forest": lambda: RandomForestClassifier(100, random_state=0),
    "bayes": GaussianNB,
}


def _lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, verbose=-1, random_state=0)


class Probabilities(NamedTuple):
    """What a classifier predicts for new rows, and what it guarantees."""

    method: str
    p: np.ndarray
    epsilon: float = np.nan


Classifiers = Callable[[str, np.ndarray, np.ndarray, np.ndarray], Iterator[Probabilities]]
FEW_TRAINING = (80, 150, 300, 600, 1_000)


@cache
def prepared(real: RealSet) -> tuple[np.ndarray, np.ndarray]:
    """The columns as numbers, for classifiers; labels are not used."""
    table, y = load(real)
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    others = OneHotEncoder(max_categories=40, handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (others, make_column_selector(dtype_exclude="number")),
    )
    return columns.fit_transform(table.drop(columns=list(set(real.drop)))), y


def unseen_classifiers_part(
    run: Classifiers,
    real: RealSet,
    model: str,
    split: str,
    cache_folder: Path,
    *,
    sizes: Sequence[int] = (),
) -> Iterator[Line]:
    """Whole classifiers on the same rows: 70% fit, or the first few of them, and 30% test.

    scikit-learn's ways and cross-fitted Venn-Abers share the five models of the folds, and the
    model of all rows; each gives what its own class would give.
    """
    X, y = prepared(real)
    order = generator(real.name, "classifiers", int(split)).permutation(len(y))
    n = int(0.7 * len(y))
    new = order[n:]
    for size in sizes or (n,):
        known = order[:size]
        if size > n or np.bincount(y[known], minlength=2).min() < N_FOLDS:
            continue
        for name, p, epsilon in run(model, X[known], y[known], X[new]):
            common = {"set": real.name, "model": model, "split": split, "method": name}
            yield {**common, "rows": size, "epsilon": epsilon, **measure(p, y[new])}


def our_classifier(
    model: str, X: np.ndarray, y: np.ndarray, new: np.ndarray
) -> Iterator[Probabilities]:
    """The probabilities of `CalibratedClassifier` for new rows."""
    fitted = CalibratedClassifier(CLASSIFIERS[model]()).fit(X, y)
    p = fitted.predict_proba(new)[:, 1]
    yield Probabilities("calibrant CalibratedClassifier", p, fitted.guarantee_.epsilon)


def rival_classifiers(
    model: str, X: np.ndarray, y: np.ndarray, new: np.ndarray
) -> Iterator[Probabilities]:
    """The probabilities of the other classifiers for new rows."""
    make = CLASSIFIERS[model]
    whole = make().fit(X, y)
    yield Probabilities("uncalibrated, all rows", whole.predict_proba(new)[:, 1])
    folds = [
        (clone(whole).fit(X[others], y[others]), inside)
        for others, inside in StratifiedKFold(N_FOLDS).split(X, y)
    ]
    for method in ("sigmoid", "isotonic", "temperature"):
        each = [
            CalibratedClassifierCV(FrozenEstimator(one), method=method, ensemble=False)
            .fit(X[inside], y[inside])
            .predict_proba(new)[:, 1]
            for one, inside in folds
        ]
        yield Probabilities(f"scikit-learn {method}", np.mean(each, axis=0))
    single = one_model(whole, folds, X, y, new)
    yield Probabilities("scikit-learn sigmoid, ensemble=False", single)
    yield Probabilities("venn-abers, cross-fitted", cross_venn_abers(folds, X, y, new))


Folds = list[tuple[Any, np.ndarray]]


def response(model: Any, X: np.ndarray) -> np.ndarray:
    """What scikit-learn's calibrators take: decision values where a model has them."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X))
    return np.asarray(model.predict_proba(X)[:, 1])


def one_model(
    whole: Any, folds: Folds, X: np.ndarray, y: np.ndarray, new: np.ndarray
) -> np.ndarray:
    """One curve, fitted to what the folds predict outside themselves, over one model of all rows."""
    inside = np.concatenate([rows for _, rows in folds])
    outputs = np.concatenate([response(one, X[rows]) for one, rows in folds])
    decides = hasattr(whole, "decision_function")
    run = BY_DECISIONS["scikit-learn sigmoid"] if decides else scikit_learn("sigmoid")
    return run(outputs, y[inside], response(whole, new))


def cross_venn_abers(folds: Folds, X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Cross Venn-Abers predictor: geometric means over folds, as in the package venn-abers."""
    from venn_abers import VennAbers

    pairs = []
    for one, inside in folds:
        fitted = VennAbers()
        fitted.fit(p_cal=one.predict_proba(X[inside]), y_cal=y[inside])
        pairs.append(fitted.predict_proba(p_test=one.predict_proba(new))[1])
    smallest = 1e-300
    logs = [
        np.log(np.maximum(np.column_stack([1 - each[:, 0], each[:, 1]]), smallest))
        for each in pairs
    ]
    against, in_favour = np.exp(np.mean(logs, axis=0)).T
    return in_favour / (against + in_favour)


ATTRIBUTES = {
    "smokers": ("gender", "age", "afam", "hispanic"),
    "arrests": ("sex", "age", "colour"),
    "insured adults": ("fml", "age", "nwhite"),
    "doctor consulted": ("gender", "age"),
    "votes in 2016": ("female", "age", "racef"),
}
"""Sets on which subgroups are repaired, and what defines their subgroups."""


def unseen_subgroups_part(
    real: RealSet, model: str, split: str, cache_folder: Path
) -> Iterator[Line]:
    """A model that may not use the attributes, repaired with them: `SubgroupCalibrator` and mcgrad."""
    table, y = load(real)
    names = list(ATTRIBUTES[real.name])
    attributes = table[names]
    attributes = attributes.assign(
        **{
            name: attributes[name].astype(str)
            for name in attributes.select_dtypes(exclude="number")
        }
    )
    order = generator(real.name, "subgroups", split).permutation(len(y))
    n = int(TRAIN * len(y))
    scores = score(real, model, table, y, order[:n], drop=tuple(names))
    middle = n + int(CALIBRATE * len(y))
    known, new = order[n:middle], order[middle:]
    rows = {"set": real.name, "model": model, "split": split, "rows": len(known)}
    before = time.process_time()
    fitted = SubgroupCalibrator().fit(scores[known], y[known], attributes=attributes.iloc[known])
    p = fitted.predict(scores[new], attributes=attributes.iloc[new])
    seconds = time.process_time() - before
    epsilon = fitted.guarantee_.epsilon
    found = measure(p, y[new])
    yield {**rows, "method": "SubgroupCalibrator", "epsilon": epsilon, "seconds": seconds, **found}
    before = time.process_time()
    p = mcgrad(scores, y, attributes, known, new)
    seconds = time.process_time() - before
    yield {**rows, "method": "mcgrad", "seconds": seconds, **measure(p, y[new])}
    yield {**rows, "method": "raw score", **measure(scores[new], y[new])}


def mcgrad(
    scores: np.ndarray, y: np.ndarray, attributes: pd.DataFrame, known: np.ndarray, new: np.ndarray
) -> np.ndarray:
    """What mcgrad predicts for new rows."""
    from mcgrad import methods

    frame = attributes.assign(p_=scores, y_=y)
    numbers = list(attributes.select_dtypes(include="number"))
    others = [name for name in attributes if name not in numbers]
    fitted = methods.MCGrad()
    fitted.fit(
        df_train=frame.iloc[known].reset_index(drop=True),
        prediction_column_name="p_",
        label_column_name="y_",
        categorical_feature_column_names=others,
        numerical_feature_column_names=numbers,
    )
    return np.asarray(fitted.predict(frame.iloc[new].reset_index(drop=True), "p_", others, numbers))


LARGE = ("women in service",)
LARGE_ROWS = (100_000, 1_000_000)
LARGE_TRAIN = 20_000


def unseen_large_part(real: RealSet, model: str, split: str, cache_folder: Path) -> Iterator[Line]:
    """Many rows, drawn with replacement from all rows of a large table that did not train."""
    table, y = load(replace(real, rows=10_000_000))
    train = generator(real.name, "large", split).permutation(len(y))[:LARGE_TRAIN]
    scores = np.delete(score(real, model, table, y, train), train)
    y = np.delete(y, train)
    for n in LARGE_ROWS:
        drawn = generator(real.name, model, "large", split, n).integers(0, len(y), n)
        before = time.process_time()
        fitted = Calibrator().fit(scores[drawn], y[drawn])
        seconds = time.process_time() - before
        rows, positives, _ = counts(fitted, scores[drawn], y[drawn])
        yield {
            "set": real.name,
            "model": model,
            "split": split,
            "n": n,
            "regions": len(rows),
            "seconds": seconds,
            "broken": int(is_broken(fitted, scores, y)),
            "epsilon": fitted.guarantee_.epsilon,
            "oracle": half_widths(rows, positives, len(rows)).max(),
        }


LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
RUNS = 4  # streams of each set and model
STREAM = 3_000  # labels of a stream
BATCH = 100
FLIPPED = 0.1  # of the negatives become positive


def unseen_monitors_part(
    real: RealSet, model: str, split: str, cache_folder: Path
) -> Iterator[Line]:
    """After how many labels a monitor warns: rows as in calibration, and rows whose rate is higher
    by a tenth of its distance from 1, at several levels of confidence.
    """
    scores, y, _ = scored(real, model, int(split), cache_folder)
    rng = generator(real.name, model, "monitors", split)
    for run, changed in itertools.product(range(RUNS), (False, True)):
        known = rng.integers(0, len(y), 1_000)
        fitted = Calibrator().fit(scores[known], y[known], classes=(0, 1))
        later = rng.integers(0, len(y), STREAM)
        labels = y[later] | ((rng.random(STREAM) < FLIPPED) & changed)
        for level in LEVELS:
            monitor = DriftMonitor(fitted, confidence_level=level, random_state=0)
            delay = np.nan
            for start in range(0, STREAM, BATCH):
                part = slice(start, start + BATCH)
                monitor.update(scores[later[part]], labels[part])
                if monitor.alarm:
                    delay = start + BATCH
                    break
            common = {"set": real.name, "model": model, "split": split, "run": run}
            yield {**common, "changed": changed, "level": level, "labels": delay}


UNSEEN_PARTS: dict[str, Callable[..., Iterator[Line]]] = {
    "unseen": partial(unseen_part, RIVALS),
    "unseen_classifiers": partial(unseen_classifiers_part, rival_classifiers),
    "unseen_ours": partial(unseen_part, OURS),
    "unseen_guarantees": unseen_guarantees_part,
    "unseen_our_classifiers": partial(unseen_classifiers_part, our_classifier),
    "unseen_sizes": partial(unseen_part, RIVALS_BY_SIZE, sizes=FEW),
    "unseen_our_sizes": partial(unseen_part, OURS_BY_SIZE, sizes=FEW),
    "unseen_few": partial(unseen_classifiers_part, rival_classifiers, sizes=FEW_TRAINING),
    "unseen_our_few": partial(unseen_classifiers_part, our_classifier, sizes=FEW_TRAINING),
    "unseen_subgroups": unseen_subgroups_part,
    "unseen_large": unseen_large_part,
    "unseen_monitors": unseen_monitors_part,
}


ONLY = {
    "unseen_subgroups": tuple(ATTRIBUTES),
    "unseen_large": LARGE,
    "unseen_monitors": tuple(ATTRIBUTES),
}
"""The sets of parts that have some."""


def unseen_units(names: Sequence[str]) -> dict[str, list[tuple[str, str, tuple[str, str]]]]:
    """What there is to do, all sets of a split before the next, so that a run that is stopped has
    whole splits.
    """
    return {
        part: [
            (part, name, (model, str(split)))
            for split in range(SPLITS.get(part, UNSEEN_SPLITS))
            for name in names
            if name in ONLY.get(part, names)
            for model in UNSEEN_MODELS
        ]
        for part in UNSEEN_PARTS
    }


def whole_splits(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines of splits in which all sets and models are done."""
    cells = lines.drop_duplicates(["set", "model", "split"]).groupby("split").size()
    n_cells = len(lines.drop_duplicates(["set", "model"]))
    return lines[lines.split.isin(cells.index[cells == n_cells])]
