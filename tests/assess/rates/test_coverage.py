"""`rate` in worlds with a known truth: limits miss no more often than they say."""

import numpy as np
import pytest
from scipy.stats import binomtest

from calibrant import rate

LEVEL = 1e-3


def is_kept(missed, draws, alpha):
    return binomtest(int(missed), draws, alpha, alternative="greater").pvalue > LEVEL


def labelled(good, rng, n_labels):
    y = np.full(good.size, np.nan)
    drawn = rng.choice(good.size, n_labels, replace=False)
    y[drawn] = good[drawn]
    return y


def judged(good, rng, sensitivity, specificity):
    return np.where(
        good == 1, rng.random(good.size) < sensitivity, rng.random(good.size) >= specificity
    )


@pytest.mark.parametrize("method", ["exact", "labels", "bets"])
@pytest.mark.parametrize(
    ("share", "sensitivity", "specificity"),
    [(0.98, 0.98, 0.5), (0.5, 0.9, 0.9), (0.9, 1.0, 1.0), (0.8, 0.6, 0.5)],
)
@pytest.mark.slow
def test_the_rate_among_the_items_is_covered(share, sensitivity, specificity, method):
    rng = np.random.default_rng(1)
    good = (np.arange(400) < 400 * share).astype(int)
    draws = 60 if method == "bets" else 150
    missed = 0
    for seed in range(draws):
        judge = judged(good, rng, sensitivity, specificity)
        found = rate(
            labelled(good, rng, 40), judge, confidence_level=0.8, method=method, random_state=seed
        )
        missed += not found.lower <= good.mean() <= found.upper
    assert is_kept(missed, draws, 0.2)


@pytest.mark.slow
def test_a_file_sorted_by_label_is_no_harm():
    """Labelled rows stand sorted by label: bets in a random order hold. Bets in the order of the
    file would miss; their limits cross, which is said, and they decide nothing.
    """
    rng = np.random.default_rng(2)
    missed = {False: 0, True: 0}
    doubtful = {False: 0, True: 0}
    draws = 60
    for seed in range(draws):
        good = (np.arange(300) < 150).astype(int)  # sorted
        scores = rng.random(300)
        y = labelled(good, rng, 60)
        for sequential in missed:  # True takes the file's order
            found = rate(
                y,
                scores,
                confidence_level=0.8,
                method="bets",
                sequential=sequential,
                random_state=seed,
            )
            missed[sequential] += not found.lower <= 0.5 <= found.upper
            doubtful[sequential] += found.is_doubtful
    assert is_kept(missed[False], draws, 0.2)
    assert missed[True] == 0
    assert doubtful[True] == draws  # the attack works
    assert doubtful[False] <= 3


@pytest.mark.slow
def test_groups_hold_where_rows_alone_break():
    """Ten answers to each question, all alike: rows alone miss far more often than they say."""
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(200), 10)
    missed = {"groups": 0, "rows": 0}
    draws = 80
    for seed in range(draws):
        good = np.repeat((rng.permutation(200) < 160).astype(int), 10)
        flipped = rng.random(good.size) < 0.05
        good = np.where(flipped, 1 - good, good)
        judge = judged(good, rng, 0.8, 0.6)
        drawn = rng.choice(200, 40, replace=False)
        y = np.where(np.isin(groups, drawn), good, np.nan)
        whole = rate(y, judge, confidence_level=0.8, groups=groups, random_state=seed)
        rows = rate(y, judge, confidence_level=0.8)
        missed["groups"] += not whole.lower <= good.mean() <= whole.upper
        missed["rows"] += not rows.lower <= good.mean() <= rows.upper
    assert is_kept(missed["groups"], draws, 0.2)
    assert not is_kept(missed["rows"], draws, 0.2)


@pytest.mark.slow
def test_limits_hold_at_every_look():
    """Looked at after each 20 labels, limits of single looks are broken at some time.

    Those of all looks are not.

    Limits of all looks never loosen, as the next test says, so the last look says whether any was
    broken.
    """
    rng = np.random.default_rng(4)
    missed = 0
    ever = 0
    draws = 60
    for seed in range(draws):
        good = (np.arange(600) < 300).astype(int)
        judge = judged(good, rng, 0.7, 0.7)
        when = rng.permutation(600)
        looks = [np.where(when < looked, good, np.nan) for looked in range(20, 301, 20)]
        singles = [rate(y, judge, confidence_level=0.7, method="labels") for y in looks]
        ever += any(not found.lower <= 0.5 <= found.upper for found in singles)
        last = rate(looks[-1], judge, confidence_level=0.7, sequential=when, random_state=seed)
        missed += not last.lower <= 0.5 <= last.upper
    assert is_kept(missed, draws, 0.3)
    assert not is_kept(ever, draws, 0.3)


@pytest.mark.broad
def test_a_later_look_never_loosens_a_limit():
    rng = np.random.default_rng(5)
    good = (rng.random(500) < 0.7).astype(int)
    scores = judged(good, rng, 0.8, 0.8) + rng.random(
        500
    )  # many cells, which must be the same at every look
    when = rng.permutation(500)
    lower = 0.0
    upper = 1.0
    for looked in range(10, 400, 15):
        found = rate(np.where(when < looked, good, np.nan), scores, sequential=when)
        assert found.lower >= lower
        assert found.upper <= upper
        lower = found.lower
        upper = found.upper


def test_the_numbers_that_are_tried_at_every_look_do_not_depend_on_the_look():
    """With 20,480 items every fifth number of positives is tried, however many labels there are."""
    rng = np.random.default_rng(9)
    good = (rng.random(20_480) < 0.7).astype(int)
    when = rng.permutation(20_480)
    for looked in (60, 120):
        found = rate(np.where(when < looked, good, np.nan), good, sequential=when)
        last_ruled_out = round(found.lower * 20_480) - 1
        assert last_ruled_out > looked
        assert last_ruled_out % 5 == 0


@pytest.mark.slow
def test_the_population_is_covered_and_limits_of_the_items_do_not_cover_it():
    """Of 200 items 100 are labelled, with a perfect judge: the items' rate is nearly known, the
    population's is not.
    """
    rng = np.random.default_rng(6)
    too_high = {"items": 0, "population": 0}
    too_low = {"items": 0, "population": 0}
    draws = 120
    for _ in range(draws):
        good = (rng.random(200) < 0.8).astype(int)
        y = labelled(good, rng, 100)
        for target in too_high:
            found = rate(y, good, confidence_level=0.8, target=target)
            too_high[target] += found.lower > 0.8
            too_low[target] += found.upper < 0.8
    for missed in (too_high, too_low):
        assert is_kept(missed["population"], draws, 0.1)
        assert not is_kept(missed["items"], draws, 0.1)


@pytest.mark.slow
def test_all_segments_hold_at_once():
    rng = np.random.default_rng(7)
    missed = 0
    draws = 100
    segments = np.arange(600) % 4
    for _ in range(draws):
        good = (rng.random(600) < 0.6 + 0.1 * segments).astype(int)
        judge = judged(good, rng, 0.8, 0.7)
        found = rate(labelled(good, rng, 160), judge, segments=segments, confidence_level=0.7)
        held = found.lower <= good.mean() <= found.upper
        for part in found.segments:
            held &= part.lower <= good[segments == part.segment].mean() <= part.upper
        missed += not held
    assert is_kept(missed, draws, 0.3)


@pytest.mark.slow
def test_a_random_draw_is_rarely_called_otherwise():
    rng = np.random.default_rng(8)
    flagged = 0
    draws = 400
    for _ in range(draws):
        good = (rng.random(300) < 0.7).astype(int)
        scores = rng.random(300).round(2)
        found = rate(labelled(good, rng, 50), scores, method="labels")
        assert found.draw is not None
        flagged += found.draw.refuted
    assert is_kept(flagged, draws, 0.01)
