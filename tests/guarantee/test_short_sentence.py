"""The first sentence of every guarantee: at most 35 words, with its assumption.

Relative limits of rare events.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from calibrant import (
    BinningCalibrator,
    CalibratedClassifier,
    Calibrator,
    ClassWiseCalibrator,
    IsotonicCalibrator,
    LabelShiftCalibrator,
    OnlineCalibrator,
    Partition,
    PlattCalibrator,
    ShiftCalibrator,
    TopLabelCalibrator,
    VennAbersCalibrator,
    audit,
    plan,
)
from calibrant.guarantee.relative import relative_limits
from calibrant.guarantee.words import MOST_WORDS, n_words
from calibrant.limits.interval import Interval
from calibrant.ratios import LogisticRatio
from worlds.guarantees import assert_kept
from worlds.guarantees_of_counts import guarantee

pytestmark = pytest.mark.filterwarnings("ignore")

N = 1_200


class Rows:
    """Scores, labels and what may stand beside them."""

    def __init__(self, rate: float) -> None:
        rng = np.random.default_rng(0)
        self.scores = rng.beta(1.0, 1.0 / rate - 1.0, size=N)
        self.y = (rng.uniform(size=N) < self.scores).astype(int)
        self.weights = rng.uniform(0.5, 1.0, size=N)
        self.groups = np.arange(N) // 4
        self.segments = np.where(rng.uniform(size=N) < 0.5, "north", "south")
        self.features = np.column_stack([self.scores, rng.normal(size=N)])
        self.columns = np.column_stack(
            [self.scores, (1.0 - self.scores) / 2.0, (1.0 - self.scores) / 2.0]
        )
        self.classes = np.where(self.y == 1, 0, rng.integers(1, 3, size=N))


KINDS: dict[str, Callable[[Rows], Any]] = {
    "bins": lambda rows: BinningCalibrator(4).fit(rows.scores, rows.y),
    "fixed bins": lambda rows: BinningCalibrator(4, partition="uniform").fit(rows.scores, rows.y),
    "curve": lambda rows: Calibrator(n_bins=4).fit(rows.scores, rows.y),
    "segments": lambda rows: BinningCalibrator(3).fit(rows.scores, rows.y, segments=rows.segments),
    "curve in segments": (
        lambda rows: Calibrator(n_bins=3).fit(rows.scores, rows.y, segments=rows.segments)
    ),
    "weights": (
        lambda rows: BinningCalibrator(3).fit(
            rows.scores, rows.y, importance_weight=rows.weights, weight_bound=1.0
        )
    ),
    "weights without a bound": (
        lambda rows: Calibrator(n_bins=3).fit(rows.scores, rows.y, importance_weight=rows.weights)
    ),
    "groups": lambda rows: BinningCalibrator(3).fit(rows.scores, rows.y, groups=rows.groups),
    "curve with groups": (
        lambda rows: Calibrator(n_bins=3).fit(rows.scores, rows.y, groups=rows.groups)
    ),
    "equal groups": (
        lambda rows: BinningCalibrator(3).fit(
            rows.scores, rows.y, groups=rows.groups, group_target="groups"
        )
    ),
    "weighted groups": (
        lambda rows: Calibrator(n_bins=3).fit(
            rows.scores,
            rows.y,
            groups=rows.groups,
            importance_weight=rows.weights,
            weight_bound=1.0,
        )
    ),
    "stream": lambda rows: OnlineCalibrator(Partition.fixed_width(3)).fit(rows.scores, rows.y),
    "stream of groups": (
        lambda rows: OnlineCalibrator(Partition.fixed_width(3)).fit(
            rows.scores, rows.y, groups=rows.groups
        )
    ),
    "covariate shift": (
        lambda rows: ShiftCalibrator(n_bins=3).fit(
            rows.scores, rows.y, importance_weight=rows.weights, weight_bound=1.0
        )
    ),
    "estimated weights": (
        lambda rows: ShiftCalibrator(n_bins=3).fit(
            rows.scores,
            rows.y,
            X=rows.features,
            X_target=rows.features[:300],
            ratio=LogisticRatio(),
        )
    ),
    "label shift": lambda rows: LabelShiftCalibrator(3).fit(rows.scores, rows.y, target_prior=0.3),
    "label shift in segments": (
        lambda rows: LabelShiftCalibrator(2).fit(
            rows.scores, rows.y, segments=rows.segments, target_prior=0.3
        )
    ),
    "top label": lambda rows: TopLabelCalibrator(3).fit(rows.columns, rows.classes),
    "top label with groups": (
        lambda rows: TopLabelCalibrator(3).fit(rows.columns, rows.classes, groups=rows.groups)
    ),
    "top label with weights": (
        lambda rows: TopLabelCalibrator(3).fit(
            rows.columns, rows.classes, importance_weight=rows.weights, weight_bound=1.0
        )
    ),
    "class-wise": lambda rows: ClassWiseCalibrator(3).fit(rows.columns, rows.classes),
    "class-wise with groups": (
        lambda rows: ClassWiseCalibrator(3).fit(rows.columns, rows.classes, groups=rows.groups)
    ),
    "Platt": lambda rows: PlattCalibrator().fit(rows.scores, rows.y),
    "isotonic": lambda rows: IsotonicCalibrator().fit(rows.scores, rows.y),
    "Venn-Abers": lambda rows: VennAbersCalibrator().fit(rows.scores, rows.y),
    "classifier": (
        lambda rows: CalibratedClassifier(LogisticRegression()).fit(rows.features, rows.y)
    ),
    "classifier with groups": (
        lambda rows: CalibratedClassifier(LogisticRegression()).fit(
            rows.features, rows.y, groups=rows.groups
        )
    ),
    "classifier without rows held out": (
        lambda rows: CalibratedClassifier(LogisticRegression(), calibration_size=0).fit(
            rows.features, rows.y
        )
    ),
    "out-of-fold scores": (
        lambda rows: CalibratedClassifier(LogisticRegression(), BinningCalibrator(2), cv=3).fit(
            rows.features, rows.y
        )
    ),
    "out-of-fold Venn-Abers": (
        lambda rows: CalibratedClassifier(LogisticRegression(), VennAbersCalibrator(), cv=3).fit(
            rows.features, rows.y
        )
    ),
}


@pytest.mark.broad
@pytest.mark.parametrize("rate", [0.5, 0.02])
@pytest.mark.parametrize("kind", KINDS)
def test_the_first_sentence_has_at_most_35_words_and_carries_its_assumption(
    kind: str, rate: float
) -> None:
    found = KINDS[kind](Rows(rate)).guarantee_
    said = found.sentence
    assert n_words(said) <= MOST_WORDS == 35
    assert said.endswith(".")
    assert said.count(". ") == said.count("i.i.d. ")  # one sentence
    assert said in found.details
    if found.is_proved:
        assert "(90% confidence" in said
        assert ", if " in said
        assert "true" in said
    else:
        assert said.startswith(("Nothing is guaranteed: ", "No "))


def test_a_class_with_a_long_name_is_named_in_the_details() -> None:
    name = "a customer who left us within a year of their first order"
    found = guarantee([500] * 4, [100] * 4, positive_label=name)
    assert n_words(found.sentence) <= MOST_WORDS
    assert name not in found.sentence
    assert f"This is the rate of {name!r}." in found.details


def test_caveats_that_do_not_fit_are_told_in_the_details() -> None:
    long = " ".join(["word"] * 40)
    found = guarantee([500], [100]).with_caveat("weights were guessed").with_caveat(long)
    assert found.sentence == "Nothing is guaranteed: weights were guessed."
    assert f"Nothing is guaranteed: weights were guessed; and {long}." in found.details
    alone = guarantee([500], [100]).with_caveat(long)
    assert alone.sentence == "Nothing is guaranteed; the details say why."
    assert long in alone.details


# Relative limits

inside = st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0)).map(sorted)


@given(
    rate=inside,
    prediction=inside,
    slack=st.tuples(st.floats(0.0, 0.5), st.floats(0.0, 0.5)),
    known=st.booleans(),
)
def test_relative_limits_follow_from_limits_that_hold(rate, prediction, slack, known) -> None:
    low, truth, high = rate
    least, average, most = prediction
    if average == 0.0:
        return
    errors = Interval(
        np.array([truth - average - slack[0]]), np.array([truth - average + slack[1]])
    )
    found = relative_limits(
        Interval(np.array([low]), np.array([high])),
        Interval(np.array([least]), np.array([most])),
        errors if known else None,
    )
    ratio = truth / average
    assert found.lower[0] <= ratio * (1.0 + 1e-9) + 1e-9
    assert found.upper[0] >= ratio * (1.0 - 1e-9) - 1e-9


def test_relative_limits_of_a_prediction_of_zero_say_nothing() -> None:
    zero = Interval(np.zeros(1), np.zeros(1))
    found = relative_limits(Interval(np.array([0.1]), np.array([0.2])), zero)
    assert (found.lower[0], found.upper[0]) == (0.0, np.inf)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [BinningCalibrator, Calibrator])
def test_relative_limits_hold_in_all_regions_at_once(kind: type) -> None:
    """Scores are uniform on a fine grid of [0, 0.1], and the true rate is half the score, plus a
    jump.
    """
    grid = (np.arange(5_000) + 0.5) / 50_000
    rates = np.where(grid < 0.03, 0.5 * grid, 0.5 * grid + 0.01)
    rng = np.random.default_rng(0)

    def simulate() -> Iterator[dict[str, bool]]:
        while True:
            place = rng.integers(grid.size, size=4_000)
            noise = rng.uniform(-0.5, 0.5, size=4_000) / 50_000
            fitted = kind(n_bins=3, confidence_level=0.5, random_state=rng).fit(
                grid[place] + noise, rng.uniform(size=4_000) < rates[place]
            )
            found = fitted.guarantee_
            region = fitted.partition_.regions_of(grid)
            predicted = fitted.predict(grid)
            truth = np.array(
                [rates[region == b].sum() / predicted[region == b].sum() for b in range(3)]
            )
            off = (truth < found.relative.lower - 1e-3) | (truth > found.relative.upper + 1e-3)
            yield {"relative limits": bool(off.any())}

    assert_kept(simulate(), 0.5, caught=0.7)


def test_rare_events_are_stated_as_multiples_of_the_prediction() -> None:
    all_told = guarantee([20_000] * 2, [200, 400])
    assert all_told.is_rare
    low = all_told.relative.lower.min()
    high = all_told.relative.upper.max()
    said = (
        f"is between {np.floor(low * 100) / 100:g} and {np.ceil(high * 100) / 100:g} times the"
        " prediction ("
    )
    assert said in all_told.sentence
    assert (
        f"Over all 2 score ranges, the bound is {np.ceil(all_told.epsilon * 1e4) / 1e2:g} point"
        in all_told.details
    )
    some = guarantee([20_000] * 3, [0, 300, 400])
    assert "In 2 of 3 score ranges, the true rate is between" in some.sentence
    assert f", elsewhere at most {np.ceil(some.upper[0] * 1e5) / 1e5:g} (" in some.sentence
    none = guarantee([100] * 2, [1, 2])
    assert none.is_rare
    assert "is within" in none.sentence
    frequent = guarantee([20_000] * 2, [2_000, 4_000])
    assert not frequent.is_rare
    assert "times" not in frequent.sentence


def test_an_audit_and_a_plan_of_rare_events_state_multiples() -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.0, 0.02, size=40_000)
    found = audit((rng.uniform(size=40_000) < 2.0 * scores).astype(int), scores)
    assert found.is_rare
    worst = found.worst
    row = int(np.argmax(found.table.error))
    assert worst.relative_lower == pytest.approx(
        found.table.lower[row] / found.table.mean_score[row]
    )
    assert 1.0 < worst.relative_lower < 2.0 < worst.relative_upper
    planned = plan(n=100_000, n_bins=5, base_rate=0.01)
    fitted = guarantee(
        [planned.rows_per_bin] * 5, [round(0.01 * planned.rows_per_bin)] * 5, value="jeffreys"
    )
    assert planned.relative.lower[0] == pytest.approx(fitted.relative.lower[0])
    assert planned.relative.upper[0] == pytest.approx(fitted.relative.upper[0])
    assert "In a bin with 1% positive rows, the true rate is between" in planned.details
    assert plan(n=100_000, n_bins=5, base_rate=0.1).relative is None


@pytest.mark.broad
def test_relative_limits_of_a_weighted_audit_hold_for_the_population() -> None:
    rng = np.random.default_rng(1)
    scores = rng.uniform(0.005, 0.02, size=20_000)
    y = (rng.uniform(size=20_000) < 2.0 * scores).astype(int)
    found = audit(
        y, scores, importance_weight=rng.uniform(0.5, 1.0, size=20_000), weight_bound=1.0
    ).table
    assert (found.relative_lower <= 2.0).all()
    assert (found.relative_upper >= 2.0).all()
    assert found.relative_upper.min() < 5.0
