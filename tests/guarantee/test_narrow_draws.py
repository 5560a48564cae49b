"""Rows sorted by label, with features close together: the hold-out is still a random draw.

A fingerprint of rounded features would depend on the number of positive rows alone. With a fixed
seed, the held-out rows of a sorted file would then be the same in every data set of a size, and
some seeds would miss far too often.
"""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from calibrant import CalibratedClassifier, Calibrator

RATE = 0.5
DRAWS = 400
FEATURES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "times of one day": lambda rng, n: 1_700_000_000 + 86_400 * rng.uniform(size=(n, 1)),
    "seconds of one day": lambda rng, n: 1_700_000_000 + rng.integers(0, 86_400, size=(n, 1)),
    "probabilities": lambda rng, n: rng.uniform(0.981, 0.988, size=(n, 1)),
    "years": lambda rng, n: rng.integers(2000, 2024, size=(n, 1)),
    "one value": lambda rng, n: np.ones((n, 1)),
}
MODELS = {"prior": DummyClassifier(strategy="prior"), "logistic": LogisticRegression()}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::calibrant.errors.WeakGuaranteeWarning"),
    # of the logistic regression: times are not scaled, so that they stay close together
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def sorted_rows(kind: str, n: int, draw: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features that say nothing about the labels, labels in order, and features of new rows."""
    rng = np.random.default_rng([39, draw])
    labels = np.sort(rng.uniform(size=n) < RATE)
    return FEATURES[kind](rng, n), labels, FEATURES[kind](rng, 500)


def is_missed(guarantee, predictions: np.ndarray) -> bool:
    """Whether a limit excludes the rate, which is the same in all regions."""
    if len(guarantee.regions) == 1 and abs(predictions.mean() - RATE) > guarantee.epsilon:
        return True
    return bool((guarantee.lower > RATE).any() or (guarantee.upper < RATE).any())


def assert_kept(missed: int, alpha: float) -> None:
    assert binomtest(missed, DRAWS, alpha, alternative="greater").pvalue > 0.01


# With features rounded to 6 binary digits, the first three missed 92, 92 and 59 of 400. Which seeds
# miss is chance: seed 1 of the third is the worst of 0 to 3.
@pytest.mark.parametrize(
    ("model", "kind", "n", "seed", "alpha"),
    [
        ("prior", "times of one day", 90, 0, 0.1),
        ("prior", "seconds of one day", 90, 0, 0.1),
        ("logistic", "times of one day", 56, 1, 0.1),
        ("logistic", "times of one day", 56, 1, 0.5),
        ("prior", "probabilities", 90, 0, 0.1),
        ("prior", "years", 90, 0, 0.1),
        ("prior", "times of one day", 90, 0, 0.5),
    ],
)
def test_a_classifier_keeps_its_guarantee(model, kind, n, seed, alpha) -> None:
    missed = 0
    for draw in range(DRAWS):
        X, y, new = sorted_rows(kind, n, draw)
        classifier = CalibratedClassifier(
            MODELS[model], confidence_level=1.0 - alpha, random_state=seed
        )
        fitted = classifier.fit(X, y)
        missed += is_missed(fitted.guarantee_, fitted.predict_proba(new)[:, 1])
    assert_kept(missed, alpha)


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_with_one_value_the_guarantee_is_over_rows_and_seed(alpha) -> None:
    missed = 0
    for draw in range(DRAWS):
        X, y, new = sorted_rows("one value", 90, draw)
        classifier = CalibratedClassifier(
            MODELS["prior"], confidence_level=1.0 - alpha, random_state=draw
        )
        fitted = classifier.fit(X, y)
        assert "over rows and seed" in fitted.guarantee_.sentence
        missed += is_missed(fitted.guarantee_, fitted.predict_proba(new)[:, 1])
    assert_kept(missed, alpha)


@pytest.mark.parametrize("alpha", [0.1, 0.5])
@pytest.mark.parametrize("kind", ["times of one day", "probabilities"])
def test_a_calibrator_of_narrow_scores_keeps_its_guarantee(kind, alpha) -> None:
    missed = 0
    for draw in range(DRAWS):
        X, y, new = sorted_rows(kind, 90, draw)
        calibrator = Calibrator(confidence_level=1.0 - alpha)
        fitted = calibrator.fit(X[:, 0], y)
        missed += is_missed(fitted.guarantee_, fitted.predict(new[:, 0]))
    assert_kept(missed, alpha)
