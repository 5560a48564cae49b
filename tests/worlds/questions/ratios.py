"""Density ratios."""

from typing import Any

import numpy as np
import pandas as pd

from calibrant.ratios import ULSIF, LogisticRatio
from worlds.questions.base import (
    QUESTIONS,
    SMOOTH,
    World,
    question,
    refused,
)

LATER = World("smooth", 700, seed=2)
SOURCE = np.stack([SMOOTH.scores, SMOOTH.new], axis=1)[:600]
TARGET = np.stack([LATER.scores**0.5, LATER.new], axis=1)[:500]
FAR = TARGET + np.array([3.0, 0.0])
PLACES = np.array([[0.1, 0.2], [0.5, 0.5], [0.9, 0.1], [0.99, 0.99], [2.0, 2.0]])


def of_ratio(ratio: Any, source: Any = SOURCE, target: Any = TARGET) -> Any:
    """Weights and what to know of them."""
    fitted = ratio.fit(source, target)
    settings = [
        getattr(fitted, name, None) for name in ("bandwidth_", "penalty_", "scores_", "coef_")
    ]
    return [fitted.predict(PLACES), fitted.predict(source), settings, fitted.diagnostics_]


RATIOS = {
    "uLSIF": lambda: ULSIF(centers=20, n_jobs=1),
    "uLSIF small penalty": lambda: ULSIF(
        centers=15, penalty=[1e-4, 0.01], bandwidth=[0.3, 2.0], n_jobs=1
    ),
    "uLSIF raw": lambda: ULSIF(centers=TARGET[:9], standardize=False, n_jobs=2),
    "logistic": lambda: LogisticRatio(),
}
for _name, _make in RATIOS.items():

    def estimated(make: Any = _make) -> Any:
        return of_ratio(make())

    def estimated_far(make: Any = _make) -> Any:
        return of_ratio(make(), SOURCE[:90], FAR[:80])

    def estimated_few(make: Any = _make) -> Any:
        return of_ratio(make(), SOURCE[:25], TARGET[:31])

    QUESTIONS[f"ratio {_name}"] = estimated
    QUESTIONS[f"ratio {_name} far"] = estimated_far
    QUESTIONS[f"ratio {_name} few"] = estimated_few


@question
def ratios_with_more_rows_than_a_batch() -> Any:
    source = np.concatenate([SOURCE] * 4)[:2300, :1]
    source = source + np.arange(2300)[:, None] / 2**14
    target = np.concatenate([TARGET] * 5)[:2200, :1] - np.arange(2200)[:, None] / 2**15
    ratio = ULSIF(centers=6, bandwidth=0.5, penalty=0.1, n_jobs=1).fit(source, target)
    return [ratio.coef_, ratio.scores_, ratio.predict(source), ratio.diagnostics_]


@question
def ratio_of_a_constant_column() -> Any:
    source = np.stack([SMOOTH.scores[:200], np.ones(200)], axis=1)
    target = np.stack([SMOOTH.scores[200:400] ** 2, np.ones(200)], axis=1)
    return of_ratio(ULSIF(centers=5, bandwidth=[0.5, 1.0]), source, target)


@question
def refusals_of_ratios() -> Any:
    named = pd.DataFrame(SOURCE, columns=["a", "b"])
    other = pd.DataFrame(TARGET, columns=["b", "a"])
    fitted = ULSIF(centers=3, n_jobs=1).fit(named, named)
    return [
        refused(lambda: ULSIF().fit(SOURCE, TARGET[:, :1])),
        refused(lambda: ULSIF().fit(SOURCE[:1], TARGET)),
        refused(lambda: ULSIF().fit(SOURCE, TARGET[:1])),
        refused(lambda: ULSIF(centers=2, n_jobs=1).fit(SOURCE[:2], TARGET[:2])),
        refused(lambda: ULSIF().fit(named, other)),
        refused(lambda: fitted.predict(other)),
        refused(lambda: fitted.predict(SOURCE[:, :1])),
        refused(lambda: ULSIF(penalty=0.0).fit(SOURCE, TARGET)),
        refused(lambda: ULSIF(penalty=[0.1, -1.0]).fit(SOURCE, TARGET)),
        refused(lambda: ULSIF(bandwidth=[]).fit(SOURCE, TARGET)),
        refused(lambda: ULSIF(bandwidth="wide").fit(SOURCE, TARGET)),
        refused(lambda: ULSIF(bandwidth=np.inf).fit(SOURCE, TARGET)),
        refused(lambda: ULSIF(centers=0).fit(SOURCE, TARGET)),
        refused(lambda: ULSIF(centers=[[1.0, 2.0, 3.0]]).fit(SOURCE, TARGET)),
        refused(lambda: ULSIF(centers=[[np.nan, 2.0]]).fit(SOURCE, TARGET)),
        refused(lambda: ULSIF().fit([["x", "y"]] * 3, TARGET)),
        refused(lambda: ULSIF().fit(np.full((3, 2), np.nan), TARGET)),
        refused(lambda: ULSIF().fit(np.zeros((3, 2, 2)), TARGET)),
        refused(lambda: LogisticRatio().fit(named.iloc[:1], named)),
        refused(lambda: LogisticRatio(classifier="forest").fit(named, named)),
    ]
