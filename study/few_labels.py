"""A rate from few labels and many verdicts: how often limits miss, and how wide they are. The parts
`rate` and `rate_groups` of the study.

calibrant is run beside ppi_py (PPI++) and truescore on the same items. Both rest on the central
limit theorem. Of 4,000 items a known share is positive. A judge passes positives with its
sensitivity and fails negatives with its specificity. Items and verdicts are fixed; in each draw n
items are drawn at random and labelled. Limits at 95 % miss if the share is outside. The column "p"
is the probability of at least so many misses if 5 % is the truth.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binom

from calibrant import rate

N_ITEMS = 4_000
ALPHA = 0.05
DRAWS = 1_000
GROUP_DRAWS = 200
JUDGES = {
    "perfect": (1.0, 1.0),
    "very good": (0.98, 0.95),
    "good": (0.95, 0.90),
    "lenient": (0.98, 0.50),
    "fair": (0.90, 0.70),
    "poor": (0.70, 0.60),
    "useless": (0.50, 0.50),
}
RATES = (0.98, 0.90, 0.70)
LABELS = (50, 100, 200, 500)
QUESTIONS = 400
ANSWERS = 10
QUESTIONS_DRAWN = (20, 50, 100)

Limits = tuple[float, float]


class Draw(NamedTuple):
    """Verdicts of all items, and the labels of those that were drawn."""

    verdicts: np.ndarray
    drawn: np.ndarray
    labels: np.ndarray

    @property
    def missing(self) -> np.ndarray:
        """Labels of all items, NaN where there is none."""
        y = np.full(self.verdicts.size, np.nan)
        y[self.drawn] = self.labels
        return y

    @property
    def unlabelled(self) -> np.ndarray:
        """Verdicts of items without a label."""
        return np.delete(self.verdicts, self.drawn)


def automatic(draw: Draw) -> Limits:
    found = rate(draw.missing, draw.verdicts, confidence_level=1 - ALPHA)
    return found.lower, found.upper


def labels_alone(draw: Draw) -> Limits:
    found = rate(draw.missing, draw.verdicts, confidence_level=1 - ALPHA, method="labels")
    return found.lower, found.upper


def ppi(draw: Draw) -> Limits:
    from ppi_py import ppi_mean_ci

    verdicts = draw.verdicts.astype(float)
    low, high = ppi_mean_ci(
        draw.labels.astype(float), verdicts[draw.drawn], draw.unlabelled.astype(float), alpha=ALPHA
    )
    return float(np.squeeze(low)), float(np.squeeze(high))


def truescore(draw: Draw) -> Limits:
    from truescore import ppi_estimate

    found = ppi_estimate(draw.verdicts, draw.labels, draw.drawn, alpha=ALPHA)
    return float(found.low), float(found.high)


METHODS: dict[str, Callable[[Draw], Limits]] = {
    "auto": automatic,
    "labels": labels_alone,
    "ppi_py": ppi,
    "truescore": truescore,
}


def draws(
    share: float, judge: tuple[float, float], n_labels: int, count: int
) -> Iterator[tuple[Draw, float]]:
    rng = np.random.default_rng(
        [round(1000 * share), n_labels, *(round(1000 * part) for part in judge)]
    )
    n_positive = round(share * N_ITEMS)
    positive = (np.arange(N_ITEMS) < n_positive).astype(int)
    sensitivity, specificity = judge
    passed = round(sensitivity * n_positive)
    failed = round(specificity * (N_ITEMS - n_positive))
    verdicts = np.concatenate(
        [np.arange(n_positive) < passed, np.arange(N_ITEMS - n_positive) >= failed]
    ).astype(int)
    for _ in range(count):
        drawn = rng.choice(N_ITEMS, n_labels, replace=False)
        yield Draw(verdicts, drawn, positive[drawn]), positive.mean()


def rate_part(share: str, judge: str, labels: str, count: int = DRAWS) -> Iterator[dict[str, Any]]:
    """One line for each method: how often it missed, on which side, and its mean width."""
    too_high = dict.fromkeys(METHODS, 0)
    too_low = dict.fromkeys(METHODS, 0)
    widths: dict[str, list[float]] = {method: [] for method in METHODS}
    for draw, truth in draws(float(share), JUDGES[judge], int(labels), count):
        for method, limits_of in METHODS.items():
            low, high = limits_of(draw)
            too_high[method] += low > truth + 1e-12
            too_low[method] += high < truth - 1e-12
            widths[method].append(high - low)
    for method in METHODS:
        total = int(too_high[method] + too_low[method])
        yield {
            "rate": float(share),
            "judge": judge,
            "labels": int(labels),
            "method": method,
            "draws": count,
            "too high": int(too_high[method]),
            "too low": int(too_low[method]),
            "missed": total / count,
            "p": float(binom.sf(total - 1, count, ALPHA)),
            "width": float(np.mean(widths[method])),
        }


def answers(judge: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The question of each answer, whether it is good, and its verdict.

    Answers to a question are alike; the same answers are given to every judge.
    """
    question = np.repeat(np.arange(QUESTIONS), ANSWERS)
    rng = np.random.default_rng(7)
    easy = rng.permutation(QUESTIONS) < 0.8 * QUESTIONS
    chance = np.where(easy[question], 0.95, 0.2)
    positive = (rng.random(question.size) < chance).astype(int)
    sensitivity, specificity = JUDGES[judge]
    passed = np.where(positive == 1, sensitivity, 1.0 - specificity)
    random = np.random.default_rng([7, list(JUDGES).index(judge)]).random(question.size)
    return question, positive, (random < passed).astype(int)


def rate_groups_part(
    judge: str, n_questions: str, count: int = GROUP_DRAWS
) -> Iterator[dict[str, Any]]:
    """Ten answers to each of 400 questions, which are alike: whole questions are drawn and
    labelled.
    """
    n_groups = int(n_questions)
    question, positive, verdicts = answers(judge)
    truth = positive.mean()
    rng = np.random.default_rng([7, list(JUDGES).index(judge), n_groups])
    missed = {"groups": 0, "rows": 0}
    widths: dict[str, list[float]] = {"groups": [], "rows": []}
    for seed in range(count):
        drawn = np.isin(question, rng.choice(QUESTIONS, n_groups, replace=False))
        y = np.where(drawn, positive, np.nan)
        for method, groups in (("groups", question), ("rows", None)):
            found = rate(y, verdicts, groups=groups, confidence_level=1 - ALPHA, random_state=seed)
            missed[method] += not found.lower - 1e-12 <= truth <= found.upper + 1e-12
            widths[method].append(found.upper - found.lower)
    for method, misses in missed.items():
        yield {
            "judge": judge,
            "labels": ANSWERS * n_groups,
            "method": method,
            "draws": count,
            "missed": misses / count,
            "p": float(binom.sf(misses - 1, count, ALPHA)),
            "width": float(np.mean(widths[method])),
        }
