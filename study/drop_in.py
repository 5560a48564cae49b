"""CalibratedClassifier beside scikit-learn's CalibratedClassifierCV, both with defaults and on the
same rows: the part `wrapper` of the study.

Rows of each set are split at random: 70% fit, 30% test. Reported are the log loss relative to
that of scikit-learn's default (sigmoid), and relative to the better of sigmoid and isotonic in
hindsight; the difference in AUC; epsilon relative to that of one model calibrated on a quarter of
the rows (``cv=None``); and ratios of the times to fit and to predict and of pickled sizes.
"""

import pickle
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sets import MODELS, RealSet, generator, load
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from calibrant import CalibratedClassifier

CHOSEN_ON = (
    "census",
    "late flights",
    "mortgages",
    "loans",
    "late payment",
    "deaths",
    "Titanic",
    "recurrence",
    "insured",
    "doctor visits",
    "German credit",
    "page blocks",
    "tumours",
    "yeast",
)
"""Sets on which the number of models, their curve and the movement of probabilities were chosen."""

KINDS = ("logistic", "lightgbm", "forest")
MOST_ROWS = 4_000
SPLIT = 0
TIMES = 3  # what is short is timed up to so many times, and the fastest counts
SHORT = 0.5  # seconds


def model(kind: str) -> Any:
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
    return make_pipeline(columns, MODELS[kind]())


def wrapper_part(real: RealSet, kind: str, cache: Path) -> Iterator[dict[str, Any]]:
    """One line: `CalibratedClassifier` and scikit-learn's class on the same rows."""
    table, y = load(real)
    features = table.drop(columns=list(set(real.drop)))
    order = generator(real.name, "wrapper", SPLIT).permutation(len(y))[:MOST_ROWS]
    n = int(0.7 * len(order))
    X = features.iloc[order[:n]]
    X_test = features.iloc[order[n:]]
    known = y[order[:n]]
    truth = y[order[n:]]
    ours, fit_ours = timed(lambda: CalibratedClassifier(model(kind)).fit(X, known))
    theirs, fit_theirs = timed(lambda: CalibratedClassifierCV(model(kind)).fit(X, known))
    other = CalibratedClassifierCV(model(kind), method="isotonic").fit(X, known)
    one = CalibratedClassifier(model(kind), cv=None).fit(X, known)
    p, predict_ours = timed(lambda: ours.predict_proba(X_test)[:, 1])
    q, predict_theirs = timed(lambda: theirs.predict_proba(X_test)[:, 1])
    loss = log_loss(truth, p)
    sigmoid = log_loss(truth, q)
    isotonic = log_loss(truth, other.predict_proba(X_test)[:, 1])
    yield {
        "set": real.name,
        "model": kind,
        "rows": n,
        "log loss, %": 100 * (loss / sigmoid - 1),
        "log loss against the better, %": 100 * (loss / min(sigmoid, isotonic) - 1),
        "AUC": roc_auc_score(truth, p) - roc_auc_score(truth, q),
        "epsilon": ours.guarantee_.epsilon,
        "epsilon over one model's": ours.guarantee_.epsilon / one.guarantee_.epsilon,
        "fit": fit_ours / fit_theirs,
        "predict": predict_ours / predict_theirs,
        "size": len(pickle.dumps(ours)) / len(pickle.dumps(theirs)),
    }


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What the work gives, and its processor time: the shortest, if it is short."""
    seconds = []
    for _ in range(TIMES):
        begun = time.process_time()
        found = work()
        seconds.append(time.process_time() - begun)
        if sum(seconds) > SHORT:
            break
    return found, min(seconds)
