"""The audit: what it proves is so, as often as it says, and it proves what there is to prove."""

import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from calibrant import BinningCalibrator, audit
from calibrant.assess.audit.plain_evidence import PlainEvidence
from calibrant.errors import InvalidValueError
from calibrant.intervals import Interval
from calibrant.limits.non_identical import non_identical
from calibrant.sample.reader import read_judged
from calibrant.text import numbers
from worlds.binary import WORLDS, World
from worlds.guarantees import assert_kept

ROWS = 200
ALPHA = 0.1
SIMULATED = [world for world in WORLDS if world.name != "constant"]


@pytest.fixture
def remembered_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits depend on counts alone, and simulations meet the same counts again and again."""
    memory: dict[tuple, tuple[float, float]] = {}

    def limits(counts, positives, tail, identical):
        keys = list(
            zip(counts.tolist(), positives.tolist(), tail.tolist(), identical.tolist(), strict=True)
        )
        if new := sorted(set(keys) - memory.keys()):
            found = non_identical(*(np.array(column) for column in zip(*new, strict=True)))
            memory.update(
                zip(new, zip(found.lower.tolist(), found.upper.tolist(), strict=True), strict=True)
            )
        lower, upper = np.array([memory[key] for key in keys]).T
        return Interval(lower, upper)

    monkeypatch.setattr(
        sys.modules["calibrant.assess.audit.plain_evidence"], "non_identical", limits
    )


class Truth:
    """Largest and average calibration error of a world whose score is s, or `rate(s)`, which is
    calibrated.
    """

    def __init__(self, world: World, calibrated: bool) -> None:
        grid = (np.arange(20_000) + 0.5) / 20_000
        support = np.concatenate([grid if world.continuous else grid[:0], world.atoms])
        mass = np.full(support.size, world.continuous / grid.size)
        mass[support.size - world.atoms.size :] = world.atom_mass
        error = np.zeros(support.size) if calibrated else np.abs(world.rate(support) - support)
        # 1e-6: between neighbouring points of the grid the error may be larger by that much
        self.largest = error.max() + 1e-6
        self.average = mass @ error + 1e-6
        self.world = world

    def unseen(self, scores: np.ndarray) -> float:
        return self.world.atom_mass[~np.isin(self.world.atoms, scores)].sum()


def broken(report, truth: Truth, scores: np.ndarray, s: np.ndarray) -> dict[str, bool]:
    """Which of the claims of one audit are false in truth; `s` are the world's own scores."""
    order = np.argsort(scores, kind="stable")
    rates = np.concatenate([[0.0], np.cumsum(truth.world.rate(s)[order])])
    table = report.table
    first = np.searchsorted(scores[order], table.low, side="left")
    last = np.searchsorted(scores[order], table.high, side="right")
    mean_rate = (rates[last] - rates[first]) / (last - first)
    claims = {
        "table": bool(((mean_rate < table.lower - 1e-9) | (mean_rate > table.upper + 1e-9)).any()),
        "largest": report.lower_bound > truth.largest,
        "average": report.average_lower_bound > truth.average,
    }
    if report.upper_bound is not None:
        claims["upper"] = bool(
            np.abs(truth.world.rate(s) - scores).max() > report.upper_bound + 1e-9
        )
        claims["unseen"] = truth.unseen(s) > report.unseen_mass
    claims["any"] = any(claims.values())
    return claims


@pytest.mark.slow
@pytest.mark.parametrize("calibrated", [True, False], ids=["calibrated", "miscalibrated"])
@pytest.mark.parametrize("world", SIMULATED, ids=lambda world: world.name)
@pytest.mark.usefixtures("remembered_limits")
def test_no_claim_is_false_more_often_than_stated(world: World, calibrated: bool) -> None:
    truth = Truth(world, calibrated)
    rng = np.random.default_rng(50 + WORLDS.index(world))

    def simulate() -> Iterator[dict[str, bool]]:
        while True:
            s, y = world.draw(rng, ROWS)
            scores = world.rate(s) if calibrated else s
            report = audit(y, scores, confidence_level=1 - ALPHA, classes=(0, 1))
            called = {"called miscalibrated": report.is_miscalibrated} if calibrated else {}
            yield broken(report, truth, scores, s) | called

    assert_kept(simulate(), ALPHA, caught=0.18)


@pytest.mark.slow
@pytest.mark.usefixtures("remembered_limits")
def test_segments_share_one_error_budget() -> None:
    # calibrated in every segment, one of which is small; labels are rare in another
    rng = np.random.default_rng(9)

    def simulate() -> Iterator[dict[str, bool]]:
        while True:
            segment = rng.choice(3, p=[0.1, 0.4, 0.5], size=150)
            scores = np.round(rng.uniform(size=150), 1) * np.array([1.0, 0.01, 0.5])[segment]
            y = rng.uniform(size=150) < scores
            report = audit(y, scores, segments=segment, confidence_level=1 - ALPHA, classes=(0, 1))
            yield {"findings": report.worst is not None}

    assert_kept(simulate(), ALPHA, caught=0.18)


@pytest.mark.broad
@pytest.mark.parametrize("offset", [0.05, -0.05])
def test_score_off_by_five_points_is_always_caught_at_1e5_rows(offset: float) -> None:
    rng = np.random.default_rng(10)
    for _ in range(20):
        scores = rng.uniform(0.05, 0.95, size=100_000)
        y = rng.uniform(size=100_000) < scores + offset
        report = audit(y, scores)
        assert 0.04 < report.lower_bound <= 0.05
        assert 0.04 < report.average_lower_bound <= 0.05
        assert report.worst.direction == ("scores too low" if offset > 0 else "scores too high")


def test_error_in_a_narrow_range_is_found_and_named() -> None:
    rng = np.random.default_rng(11)
    scores = rng.uniform(size=100_000)
    off = (scores > 0.6) & (scores < 0.65)
    report = audit(rng.uniform(size=100_000) < scores + 0.2 * off, scores)
    assert 0.12 < report.lower_bound <= 0.2
    assert report.worst.direction == "scores too low"
    assert report.worst.high - report.worst.low < 0.1
    assert report.worst.low < 0.65
    assert report.worst.high > 0.6


@pytest.mark.broad
@pytest.mark.parametrize("name", ["smooth", "atoms", "forest"])
def test_bounds_are_tight_as_rows_grow(name: str) -> None:
    world = next(world for world in WORLDS if world.name == name)
    truth = Truth(world, calibrated=False)
    rng = np.random.default_rng(12)
    largest = []
    average = []
    for n in (1_000, 30_000, 1_000_000):
        s, y = world.draw(rng, n)
        report = audit(y, s)
        largest.append(report.lower_bound / truth.largest)
        average.append(report.average_lower_bound / truth.average)
    assert largest == sorted(largest)
    assert average == sorted(average)
    assert 0.95 < largest[-1] <= 1
    assert 0.95 < average[-1] <= 1


def test_cancelling_errors_are_not_averaged_away() -> None:
    # too high below 1/2 and too low above: right on average, and wrong everywhere
    rng = np.random.default_rng(13)
    scores = rng.uniform(0.1, 0.9, size=50_000)
    y = rng.uniform(size=50_000) < scores + 0.1 * np.sign(scores - 0.5)
    report = audit(y, scores)
    assert report.table.error[0] == 0.0
    assert report.average_lower_bound > 0.08


def test_finitely_many_scores_have_an_upper_bound_that_shrinks() -> None:
    rng = np.random.default_rng(14)
    bounds = []
    for n in (1_000, 100_000):
        scores = rng.choice([0.1, 0.3, 0.8], size=n)
        report = audit(rng.uniform(size=n) < scores, scores)
        bounds.append(report.upper_bound)
    assert bounds[1] < 0.015 < bounds[0]
    assert report.upper_bound_reason is None
    assert report.verdict == "ok"
    (note,) = (text for text in report.notes if text.startswith("no observed score"))
    assert f"by more than {numbers.points(numbers.upper(bounds[1]))}" in note
    assert report.unseen_mass < 0.03


def test_continuous_scores_have_no_upper_bound_and_the_reason_is_given() -> None:
    rng = np.random.default_rng(15)
    scores = rng.uniform(size=10_000)
    report = audit(rng.uniform(size=10_000) < scores, scores)
    assert report.upper_bound is None
    assert report.upper_bound_reason.startswith(
        "the 10,000 rows have more than 1,000 distinct scores"
    )
    assert report.verdict == "ok"
    assert report.sentence.startswith("No sign that scores are miscalibrated")
    assert report.worst is None


def test_binned_score_is_proved_nearly_right() -> None:
    rng = np.random.default_rng(16)
    scores = rng.uniform(size=200_000)
    y = rng.uniform(size=200_000) < scores**2
    calibrator = BinningCalibrator(n_bins=10).fit(scores[:100_000], y[:100_000])
    report = audit(y[100_000:], calibrator.predict(scores[100_000:]))
    assert report.upper_bound < 0.05
    assert report.lower_bound < 0.02


def test_segments_reveal_what_cancels_between_them() -> None:
    rng = np.random.default_rng(18)
    scores = rng.uniform(0.2, 0.8, size=40_000)
    segments = rng.integers(2, size=40_000)
    y = rng.uniform(size=40_000) < scores + 0.1 * (2 * segments - 1)
    assert not audit(y, scores).is_miscalibrated
    report = audit(y, scores, segments=segments)
    assert report.lower_bound == report.average_lower_bound == 0.0
    assert report.within_segments.lower_bound > 0.08
    assert report.within_segments.average_lower_bound > 0.08
    assert report.verdict == "problem"
    least = numbers.points(numbers.lower(report.within_segments.lower_bound))
    assert f"some scores are off by at least {least} within segments" in report.notes
    assert not any("off by at least" in note and "within" not in note for note in report.notes)
    assert {finding.direction for finding in report.findings} == {
        "scores too low",
        "scores too high",
    }


@pytest.mark.broad
@pytest.mark.usefixtures("remembered_limits")
def test_bounds_of_the_score_hold_with_segments_whose_errors_cancel() -> None:
    # E[Y | score] = score exactly, and off by 0.15 in both segments; alpha is shared as stated
    rng = np.random.default_rng(24)
    alpha = 0.3

    def simulate() -> Iterator[dict[str, bool]]:
        while True:
            scores = rng.choice([0.2, 0.4, 0.6, 0.8], size=400)
            segments = rng.integers(2, size=400)
            y = rng.uniform(size=400) < scores + 0.15 * (2 * segments - 1)
            report = audit(y, scores, segments=segments, confidence_level=1 - alpha, classes=(0, 1))
            within = report.within_segments
            yield {
                "of the score": (
                    report.lower_bound > 0
                    or report.average_lower_bound > 0
                    or report.is_miscalibrated
                ),
                "within": (
                    not within.lower_bound - 1e-9 <= 0.15 <= within.upper_bound
                    or within.average_lower_bound > 0.15
                ),
            }

    assert_kept(simulate(), alpha, caught=0.45)


@pytest.mark.parametrize("bound", [0.29, 0.0619, 0.00042, 0.1, 0.3, 0.999, 1e-7])
def test_text_never_rounds_a_bound_in_its_favour_and_keeps_exact_ones(bound: float) -> None:
    report = audit([0] * 50, [1.0] * 50, classes=(0, 1))
    wrong = replace(report, lower_bound=bound, average_lower_bound=bound)
    (note,) = (one for one in wrong.shown() if one.startswith("some scores"))
    said = float(note.split("at least ")[1].split()[0]) / 100
    assert 0.9 * bound < said <= bound + 1e-15
    if bound in (0.29, 0.1, 0.3, 0.999):
        assert said == pytest.approx(bound, abs=1e-15)
    if bound < 0.5:
        right = replace(report, lower_bound=0.0, upper_bound=bound, unseen_mass=0.1)
        (note,) = (one for one in right.shown() if one.startswith("no observed"))
        said = float(note.split("by more than ")[1].split()[0]) / 100
        assert bound - 1e-15 <= said < 1.1 * bound


def test_flipping_labels_and_scores_mirrors_the_report() -> None:
    rng = np.random.default_rng(21)
    scores = rng.uniform(size=3_000)
    y = (rng.uniform(size=3_000) < scores**2).astype(int)
    here = audit(y, scores)
    there = audit(1 - y, 1 - scores)
    assert here.lower_bound == pytest.approx(there.lower_bound, abs=1e-9)
    assert here.average_lower_bound == pytest.approx(there.average_lower_bound, abs=1e-9)
    assert {here.worst.direction, there.worst.direction} == {"scores too high", "scores too low"}


def test_rows_in_any_order_give_the_same_report_and_inputs_stay_as_they_were() -> None:
    rng = np.random.default_rng(22)
    scores = rng.uniform(size=1_000)
    y = (rng.uniform(size=1_000) < scores).astype(int)
    before = scores.copy(), y.copy()
    order = rng.permutation(1_000)
    assert audit(y, scores).lower_bound == audit(y[order], scores[order]).lower_bound
    assert np.array_equal(scores, before[0])
    assert np.array_equal(y, before[1])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_prove_nothing(n: int) -> None:
    report = audit(np.ones(n, dtype=int), np.full(n, 0.5), classes=(0, 1))
    assert report.verdict != "problem"
    assert not report.is_miscalibrated
    assert report.lower_bound == report.average_lower_bound == 0.0


def test_sure_scores_that_are_wrong_are_proved_wrong() -> None:
    report = audit([0] * 50, [1.0] * 50, classes=(0, 1))
    assert report.lower_bound > 0.9
    assert report.upper_bound == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"scores": [0.1, -0.5]},
            r"scores must be probabilities in \[0, 1\]; got -0.5 at row index 1",
        ),
        ({"segments": [1]}, "segments must have one entry per score, 2; got 1"),
        ({"n_bins": 0}, "n_bins must be an int >= 1"),
        ({"confidence_level": 0}, "confidence_level must be"),
        ({"y": [1, 1]}, "name both"),
        ({"y": ["a", "b"]}, "pos_label must name the positive class"),
    ],
)
def test_bad_input_is_refused_by_name(arguments: dict, message: str) -> None:
    given = {"y": [0, 1], "scores": [0.1, 0.9], **arguments}
    with pytest.raises(ValueError, match=message):
        audit(given.pop("y"), given.pop("scores"), **given)


def test_an_error_within_the_tolerance_is_told_and_is_no_miscalibration() -> None:
    rng = np.random.default_rng(13)
    scores = rng.uniform(0.1, 0.9, size=50_000)
    y = rng.uniform(size=50_000) < scores + 0.03
    strict = audit(y, scores)
    assert strict.verdict == "problem"
    assert strict.sentence.startswith("Scores are too low by at least 2.")
    for tolerance in (0.0, 0.01, 0.03, 0.2):
        report = audit(y, scores, tolerance=tolerance)
        assert (
            report.lower_bound == strict.lower_bound
        )  # the tolerance changes the verdict, and no bound
        assert (
            report.is_miscalibrated
            == (report.worst is not None)
            == (tolerance < strict.lower_bound)
        )
    assert audit(y, scores, tolerance=0.01).verdict == "problem"
    assert report.verdict == "ok"
    assert "No sign that scores are off by more than 20 points" in report.sentence
    assert report.notes[0].startswith("some scores are off by at least 2.")
    assert report.notes[0].endswith("within the tolerance")
    for wrong in (-0.1, 1.0, np.nan):
        with pytest.raises(ValueError, match="tolerance must be a number from 0 to below 1; got"):
            audit(y, scores, tolerance=wrong)


def test_every_region_lies_in_its_parent_also_where_the_first_value_is_common() -> None:
    rng = np.random.default_rng(31)
    scores = np.concatenate(
        [np.full(600, 0.01), rng.uniform(0.1, 1.0, size=400)]
    )  # it fills four of eight bins
    rows = read_judged(rng.integers(2, size=1_000), scores, classes=None, pos_label=None)
    found = PlainEvidence.of(rows, 8).resolutions(0, 0.1)
    table = found.table
    parent = found.parent
    assert parent[0] == -1
    assert (table.resolution[1:] == table.resolution[parent[1:]] + 1).all()
    assert (
        (table.low[1:] >= table.low[parent[1:]]) & (table.high[1:] <= table.high[parent[1:]])
    ).all()
    held = np.bincount(parent[1:], table.counts[1:], minlength=table.counts.size)
    coarse = table.resolution < table.resolution[-1]
    assert (held[coarse] == table.counts[coarse]).all()


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ([-2.0, 0.5, 3.0, 0.1], "if these are logits, use 1 / (1 + exp(-score)); otherwise turn"),
        ([20.0, 50.0, 99.0, 1.0], "divide by 100 if these are percentages"),
        ([200.0, 500.0, 0.0, 1.0], "row index 0, and 2 such rows in all: turn scores into"),
    ],
)
def test_scores_that_are_no_probabilities_get_advice_that_fits_them(scores, words):
    with pytest.raises(InvalidValueError) as caught:
        audit([0, 1, 0, 1], scores)
    assert words in str(caught.value)
