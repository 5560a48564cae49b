"""CalibratedClassifier beside CalibratedClassifierCV on few rows: python benchmarks/dropin.py.

Both have their defaults and the same rows. Printed for each number of rows: the geometric mean of
the log loss over that of scikit-learn's sigmoid and temperature, how often it is larger than
sigmoid's, and the median epsilon. The tables are those of `tools/realdata.py`, the models those of
`study/sets.py`. Rows are drawn at random, by set, number of rows and split. The others test, at most
2,000.
"""

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss

from calibrant import CalibratedClassifier
from calibrant.errors import WeakGuaranteeWarning

sys.path.append(str(Path(__file__).parents[1] / "study"))
from drop_in import model
from sets import BY_NAME, generator, load

SETS = (
    "mortgages",
    "loans",
    "credit",
    "late payment",
    "deaths",
    "Titanic",
    "German credit",
    "page blocks",
    "yeast",
    "breast cancer",
    "pupils",
    "happiness",
    "prenatal care",
    "union women",
)
KINDS = ("logistic", "forest", "lightgbm", "bayes")
SIZES = (80, 150, 300, 600, 1_000)
MOST_TEST_ROWS = 2_000
FEWEST_TEST_ROWS = 300
FEWEST_OF_A_CLASS = 5  # which scikit-learn's five folds need


class Cell(NamedTuple):
    """One set, model, number of rows and split."""

    name: str
    kind: str
    n_rows: int
    split: int


class Rows(NamedTuple):
    """Rows to fit, and rows to test."""

    X: pd.DataFrame
    y: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray

    def loss(self, classifier: CalibratedClassifier | CalibratedClassifierCV) -> float:
        """The log loss of a fitted classifier on the test rows."""
        return float(log_loss(self.y_test, classifier.predict_proba(self.X_test)))


def rows_of(cell: Cell) -> Rows | None:
    """The rows of a cell; None if there are too few."""
    real = BY_NAME[cell.name]
    table, y = load(real)
    features = table.drop(columns=list(set(real.drop)))
    order = generator(cell.name, cell.n_rows, cell.split).permutation(len(y))
    chosen = order[: cell.n_rows]
    others = order[cell.n_rows :][:MOST_TEST_ROWS]
    if others.size < FEWEST_TEST_ROWS or np.bincount(y[chosen]).min() < FEWEST_OF_A_CLASS:
        return None
    return Rows(features.iloc[chosen], y[chosen], features.iloc[others], y[others])


def cells(n_splits: int) -> Iterator[Cell]:
    """All cells, those of one set together."""
    for name in SETS:
        for n_rows in SIZES:
            for split in range(n_splits):
                for kind in KINDS:
                    yield Cell(name, kind, n_rows, split)


def compared(cell: Cell, rows: Rows) -> dict[str, float]:
    """Log losses of the three classifiers, and epsilon."""
    ours = CalibratedClassifier(model(cell.kind)).fit(rows.X, rows.y)
    found = {"ours": rows.loss(ours), "epsilon": ours.guarantee_.epsilon}
    for method in ("sigmoid", "temperature"):
        theirs = CalibratedClassifierCV(model(cell.kind), method=method).fit(rows.X, rows.y)
        found[method] = rows.loss(theirs)
    return found


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """One line for each number of rows."""
    over = np.log(found["ours"] / found["sigmoid"])
    of_temperature = np.log(found["ours"] / found["temperature"])
    by_size = found.assign(
        over_sigmoid=over, behind=over > 0.0, over_temperature=of_temperature
    ).groupby("n_rows")
    return pd.DataFrame(
        {
            "over sigmoid": np.exp(by_size["over_sigmoid"].mean()),
            "behind in": by_size["behind"].mean(),
            "over temperature": np.exp(by_size["over_temperature"].mean()),
            "median epsilon": by_size["epsilon"].median(),
            "cells": by_size.size(),
        }
    )


def main() -> None:
    """Print the figures for each number of rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=1)
    n_splits = parser.parse_args().splits
    warnings.simplefilter("ignore", WeakGuaranteeWarning)
    warnings.filterwarnings("ignore", module="sklearn")
    lines = []
    for cell in cells(n_splits):
        rows = rows_of(cell)
        if rows is not None:
            lines.append({**cell._asdict(), **compared(cell, rows)})
    print(summary(pd.DataFrame(lines)).round(4).to_string())


if __name__ == "__main__":
    main()
