"""Worked examples against numbers that other software publishes.

They are facts, cited where they are used.
"""

import numpy as np
import pytest

from calibrant import compare_models
from calibrant.intervals import MonotoneBand
from calibrant.metrics import auc

# Ranks of the 113 patients with a subarachnoid haemorrhage of Turck et al. (2010), which R's pROC
# has as `aSAH`: 41 with a poor outcome, then 72 with a good one. Grades of WFNS from 1 to 5; the
# order of S100B as digits of base 36.
WFNS = "32455552521254425552525245441442255225555111151221221112121134141551124112212122111121211324214115422111312244111"  # noqa: E501
S100B = "85b7pus2j42nlrufuuu2uh04dufu3f856du9uiuup8951qc55131462c268c1b9k4tqb2oq63431859a114143b43j6g25i21em5a39521caqcatr"  # noqa: E501
POOR = np.repeat([1, 0], [41, 72])


def ranks(text):
    return np.array([int(digit, 36) for digit in text]) / 36


def test_delong_agrees_with_proc_of_r_for_one_score():
    """`ci.auc` of pROC: 0.8237 and 0.7314, with limits 0.6301 and 0.8326 for S100B."""
    found = auc(POOR, ranks(WFNS)), auc(POOR, ranks(S100B))
    assert found[0].value == pytest.approx(0.823678861788618, abs=1e-14)
    assert found[1].value == pytest.approx(0.731368563685637, abs=1e-14)
    assert (found[1].lower, found[1].upper) == pytest.approx((0.6301182, 0.8326189), abs=1e-7)


def test_delong_agrees_with_proc_of_r_for_two_scores():
    """`roc.test` of pROC: the difference of both areas, Z = 2.209, p = 0.02718, limits 0.0104 and
    0.1742.
    """
    models = {"wfns": ranks(WFNS), "s100b": ranks(S100B)}
    (found,) = (one for one in compare_models(POOR, models).differences if one.measure == "AUC")
    assert not found.is_proved
    assert found.value == pytest.approx(0.823678861788618 - 0.731368563685637, abs=1e-14)
    assert (found.lower, found.upper) == pytest.approx(
        (0.0104061769564846, 0.174214419249478), abs=1e-12
    )


def uniforms_of_r(seed, n):
    """What `set.seed(seed); runif(n)` draws in R: its own start of the Mersenne Twister."""
    state = []
    for _ in range(50 + 625):
        seed = (69069 * seed + 1) % 2**32
        state.append(seed)
    bits = np.random.MT19937()
    bits.state = {
        "bit_generator": "MT19937",
        "state": {"key": np.array(state[51:], dtype=np.uint32), "pos": 624},
    }
    return bits.random_raw(n) / 2.0**32


def test_band_finds_the_miscalibration_that_calibrationband_of_r_publishes():
    """The README of calibrationband 0.2: 10,000 draws, 95 %.

    The diagonal leaves its band from 0.0396 to 0.299 and from 0.693 to 0.951. The draws are
    repeated here. Ours proves both, and a little more, as it is narrower.
    """
    drawn = uniforms_of_r(123, 20_000)
    assert drawn[:3].round(7).tolist() == [
        0.2875775,
        0.7883051,
        0.4089769,
    ]  # known to every user of R
    scores = drawn[:10_000]
    chance = drawn[10_000:]
    rate = 1.0 / (1.0 + (1.0 / scores * (1.0 - scores)) ** 1.8)
    y = np.where(
        rate <= 0.5, chance >= 1.0 - rate, chance < rate
    )  # as `rbinom` turns a draw into one label
    at = np.sort(scores)
    for given in (scores, scores.round(3)):  # the README rounds to 3 digits
        lower, upper = MonotoneBand(confidence_level=0.95).fit(given, y).predict_interval(at).T
        off = (at < lower) | (at > upper)
        assert off[(at >= 0.0396) & (at <= 0.299)].all()
        assert off[(at >= 0.693) & (at <= 0.951)].all()
        assert not off[(at <= 0.02) | (at >= 0.98) | ((at > 0.35) & (at < 0.5))].any()
        assert (lower <= np.sort(rate)).all()
        assert (np.sort(rate) <= upper).all()
