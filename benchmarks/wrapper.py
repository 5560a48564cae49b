"""CalibratedClassifier beside scikit-learn's CalibratedClassifierCV, both with defaults and on the
same rows.

    python benchmarks/wrapper.py              # the sets that played no part in choosing the
    defaults python benchmarks/wrapper.py --sets all   # all sets of the study python
    benchmarks/wrapper.py --sets chosen --splits 2

Rows of each set are split at random: 70% fit, 30% test. Reported are the log loss relative to
that of scikit-learn's default (sigmoid), and relative to the better of sigmoid and isotonic in
hindsight; the difference in AUC; epsilon relative to that of one model calibrated on a quarter of
the rows (``cv=None``); and ratios of the times to fit and to predict and of pickled sizes. Needs
what `make study` needs.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "study"), str(ROOT / "tools")]

from sets import MODELS, SETS, generator, load  # noqa: E402

from calibrant import CalibratedClassifier  # noqa: E402

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


def model(kind: str) -> object:
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


def compared(real: object, kind: str, split: int) -> dict[str, object]:
    """One line of the table."""
    table, y = load(real)
    features = table.drop(columns=list(set(real.drop)))
    order = generator(real.name, "wrapper", split).permutation(len(y))[:MOST_ROWS]
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
    return {
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


def timed(work: object) -> tuple[object, float]:
    begun = time.process_time()
    found = work()
    return found, time.process_time() - begun


def main() -> None:
    """Print a line for each set and model, and the summary."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", choices=("fresh", "chosen", "all"), default="fresh")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--csv", metavar="FILE")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    wanted = {"fresh": (False,), "chosen": (True,), "all": (False, True)}[options.sets]
    lines = []
    for real in SETS:
        if (real.name in CHOSEN_ON) not in wanted:
            continue
        for kind in KINDS:
            lines.extend(compared(real, kind, split) for split in range(options.splits))
            print(
                {
                    name: round(value, 3) if isinstance(value, float) else value
                    for name, value in lines[-1].items()
                }
            )
    table = pd.DataFrame(lines)
    if options.csv:
        table.to_csv(options.csv, index=False)
    figures = table.drop(columns=["set", "model", "rows"])
    summary = pd.DataFrame(
        {
            "median": figures.median(),
            "worst": figures.max(),
            "share above 1": (figures > 1).mean(),
            **{f"median, {kind}": figures[table.model == kind].median() for kind in KINDS},
        }
    )
    print(summary.round(3).to_string())
    print(
        f"{len(table)} lines; log loss smaller than scikit-learn's in"
        f" {np.mean(table['log loss, %'] < 0):.0%}"
    )


if __name__ == "__main__":
    main()
