"""The messages that the page on troubleshooting explains are those that users meet."""

import warnings
from pathlib import Path

import numpy as np
import pytest

from calibrant import (
    BetaCalibrator,
    BinningCalibrator,
    Calibrator,
    PlattCalibrator,
    audit,
    scored,
    threshold,
)
from calibrant.errors import WeakGuaranteeWarning

PAGE = Path(__file__).parents[2] / "docs" / "use" / "troubleshooting.md"
RNG = np.random.default_rng(0)
SCORES = RNG.uniform(size=200)
Y = RNG.uniform(size=200) < SCORES
CALIBRATOR = Calibrator()

ERRORS = {
    "y must contain two classes; got one class only": lambda: CALIBRATOR.fit(SCORES, np.ones(200)),
    "y must contain two classes; got 3": lambda: CALIBRATOR.fit(SCORES, np.arange(200) % 3),
    "labels between 0 and 1 are not outcomes; were scores and y swapped?": lambda: audit(SCORES, Y),
    "pos_label must name the positive class": lambda: CALIBRATOR.fit(
        SCORES, np.where(Y, "late", "on time")
    ),
    "y must have no missing values": lambda: CALIBRATOR.fit(SCORES, np.where(Y, np.nan, 1.0)),
    "scores must be finite; got nan": lambda: CALIBRATOR.fit(np.where(Y, np.nan, SCORES), Y),
    "scores must be probabilities in [0, 1]": lambda: BetaCalibrator().fit(10 * SCORES, Y),
    "scores and y must have the same number of rows": lambda: CALIBRATOR.fit(SCORES[1:], Y),
    "n_bins must be at most the number of rows that cut the bins": lambda: BinningCalibrator(
        n_bins=500
    ).fit(SCORES, Y),
    "sample_weight must be whole numbers >= 0": lambda: CALIBRATOR.fit(
        SCORES, Y, sample_weight=SCORES
    ),
    "alpha must be left out": lambda: BinningCalibrator(alpha=0.1),
    "there is no file": lambda: scored("nothing.csv", score="p", label="y"),
}

SENTENCES = {
    "Nothing is guaranteed: weight_bound was not given": lambda: (
        BinningCalibrator(n_bins=2).fit(SCORES, Y, importance_weight=SCORES).guarantee_
    ),
    "No distribution-free guarantee exists": lambda: PlattCalibrator().fit(SCORES, Y).guarantee_,
    "A precision of 90% cannot be guaranteed": lambda: threshold(
        Y[:20], SCORES[:20], precision=0.9
    ),
}


@pytest.mark.parametrize("message", ERRORS)
def test_errors_on_the_page_are_raised(message):
    assert message in PAGE.read_text("utf-8")
    with pytest.raises((ValueError, TypeError)) as raised:
        ERRORS[message]()
    assert message in str(raised.value)


@pytest.mark.parametrize("message", SENTENCES)
def test_sentences_on_the_page_are_said(message):
    assert message in PAGE.read_text("utf-8")
    assert message in str(SENTENCES[message]())


def test_the_warning_on_the_page_is_given():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        BinningCalibrator(n_bins=50).fit(SCORES, Y)
    assert seen[0].category is WeakGuaranteeWarning
    assert "the guarantee says" in str(seen[0].message)
    assert "`WeakGuaranteeWarning: the guarantee says" in PAGE.read_text("utf-8")
