"""The comparison of calibrators: fitted to one half, judged by `compare_models` on the other."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from calibrant import (
    BinningCalibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    Tally,
    compare_calibrators,
    compare_models,
)
from calibrant.assess.compare_models import calibrators as module
from calibrant.intervals import clopper_pearson
from calibrant.limits.error_budget import budgets
from worlds.guarantees import assert_rare


class Recorded(PlattCalibrator):
    """A calibrator that keeps what was fitted, and to which scores."""

    fits: list = []  # noqa: RUF012

    def fit(self, scores, y, **named):
        self.fits.append((self, np.asarray(scores)))
        return super().fit(scores, y, **named)


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=3_000)
    return (rng.uniform(size=3_000) < scores**2).astype(int), scores


def test_it_is_compare_models_on_the_rows_that_no_calibrator_saw(rows) -> None:
    y, scores = rows
    Recorded.fits.clear()
    found = compare_calibrators(y, scores, {"platt": Recorded(), "bins": BinningCalibrator(8)})
    assert found.models == ("uncalibrated", "platt", "bins")
    [(platt, seen)] = Recorded.fits
    fitting = np.isin(scores, seen)  # scores are distinct
    assert found.n_fitted == fitting.sum() == 1_500
    assert found.n_rows == 1_500
    bins = BinningCalibrator(8, pos_label=1).fit(scores[fitting], y[fitting], classes=(0, 1))
    new = scores[~fitting]
    models = {"uncalibrated": new, "platt": platt.predict(new), "bins": bins.predict(new)}
    expected = compare_models(y[~fitting], models)
    np.testing.assert_array_equal(found.brier, expected.brier)
    np.testing.assert_array_equal(found.log_loss, expected.log_loss)
    lowest = found.models[np.argmin(found.brier)]
    assert found.differences == tuple(
        one for one in expected.differences if one.is_proved and lowest in (one.first, one.second)
    )
    assert found.guarantee[2].sentence == bins.guarantee_.sentence
    assert found.epsilon[2] == bins.guarantee_.epsilon
    assert found.guarantee[0] is None
    assert np.isnan(found.epsilon[:2]).all()


def test_without_a_list_the_calibrators_of_the_package_are_compared(rows) -> None:
    y, scores = rows
    usual = ("curve", "binning", "scaling-binning", "platt", "isotonic")
    found = compare_calibrators(y, scores)
    assert found.models == ("uncalibrated", *usual, "temperature", "beta", "venn-abers")
    assert compare_calibrators(y, 10 * scores - 5).models == (*usual, "venn-abers")
    weighted = compare_calibrators(
        y, 10 * scores - 5, importance_weight=np.ones(y.size), weight_bound=1.0
    )
    assert weighted.models == usual


class RecordedBins(BinningCalibrator):
    """Bins that keep what was fitted."""

    fits: list = []  # noqa: RUF012

    def fit(self, scores, y, **named):
        self.fits.append(self)
        return super().fit(scores, y, **named)


def missed_differences(order: str, draws: int) -> int:
    """In how many draws of a world with 24 scores a limit on a difference does not hold.

    The expected losses of what was fitted are known exactly. Rates of 24 bins, each from about four
    rows, look far better on the rows they come from.
    """
    values = (np.arange(24) + 0.5) / 24
    methods = {
        f"{n_bins} bins": RecordedBins(n_bins, partition="uniform", value="mean")
        for n_bins in (2, 6, 24)
    }
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(draws):
        kind = rng.integers(24, size=200)
        y = (rng.uniform(size=200) < values[kind]).astype(int)
        if order == "sorted":  # a division into first and last rows would not do
            ranked = np.lexsort([kind, y])
            kind = kind[ranked]
            y = y[ranked]
        RecordedBins.fits.clear()
        found = compare_calibrators(y, values[kind], methods, confidence_level=0.8)
        fits = zip(methods, RecordedBins.fits, strict=True)
        predictions = {name: fitted.predict(values) for name, fitted in fits}
        predictions["uncalibrated"] = values
        expected = {}
        for name, p in predictions.items():
            clipped = np.clip(p, 0.001, 0.999)
            log_losses = -(values * np.log(clipped) + (1 - values) * np.log(1 - clipped))
            brier = values * (1 - p) ** 2 + (1 - values) * p**2
            expected[name] = {"Brier score": brier.mean(), "log loss": log_losses.mean()}
        assert len(found.differences) == 6
        missed += any(
            not one.lower
            <= expected[one.first][one.measure] - expected[one.second][one.measure]
            <= one.upper
            for one in found.differences
        )
    return missed


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::calibrant.errors.CalibrantWarning")  # empty bins
@pytest.mark.parametrize("order", ["mixed", "sorted"])
def test_limits_hold_for_all_fitted_calibrators_and_both_losses_at_once(order: str) -> None:
    assert_rare(missed_differences(order, 100), 100, 0.2)


@pytest.mark.filterwarnings("ignore::calibrant.errors.CalibrantWarning")
def test_limits_would_not_hold_on_the_rows_that_were_fitted(monkeypatch) -> None:
    same = [(np.arange(100), np.arange(100))]
    monkeypatch.setattr(module, "folds_of", lambda keys, source, n_folds: same)
    missed = missed_differences("mixed", 20)
    assert stats.binomtest(missed, 20, 0.2, alternative="greater").pvalue < 1e-6


def test_a_method_that_is_clearly_worse_is_shown_to_be_worse(rows) -> None:
    y, scores = rows
    found = compare_calibrators(y, scores, [PlattCalibrator()])
    assert {one.better for one in found.differences} == {"Platt"}
    assert found.best == "Platt"
    assert found.verdict == "ok"
    assert found.sentence.startswith("'Platt' is better than 'uncalibrated': its Brier score is")
    same = compare_calibrators(y, 10 * scores - 5, {"a": PlattCalibrator(), "b": PlattCalibrator()})
    assert same.best is None
    assert same.verdict == "unclear"
    assert same.sentence.startswith("The data cannot tell which method is better")


def test_only_calibrators_with_a_proof_have_an_epsilon(rows) -> None:
    found = compare_calibrators(
        *rows, [PlattCalibrator(), IsotonicCalibrator(), BinningCalibrator(n_bins=10)]
    )
    assert np.isnan(found.epsilon[:3]).all()
    assert 0 < found.epsilon[3] < 0.2
    assert "No distribution-free guarantee" in str(found.guarantee[1])


def test_scores_that_are_no_probabilities_have_no_row_of_their_own(rows) -> None:
    y, scores = rows
    found = compare_calibrators(y, 10 * scores - 5, [PlattCalibrator(), IsotonicCalibrator()])
    assert found.models == ("Platt", "Isotonic")
    with pytest.raises(ValueError, match="calibrators must be at least two, as these scores"):
        compare_calibrators(y, 10 * scores - 5, [PlattCalibrator()])


def test_same_classes_get_numbered_names(rows) -> None:
    found = compare_calibrators(
        *rows, [BinningCalibrator(5), BinningCalibrator(10), BinningCalibrator(20)]
    )
    assert found.models[1:] == ("Binning", "Binning 2", "Binning 3")


@pytest.mark.broad
def test_text_labels_and_two_columns_work(rows) -> None:
    y, scores = rows
    plain = compare_calibrators(y, scores, [BinningCalibrator(5)])
    columns = np.column_stack([1 - scores, scores])
    named = compare_calibrators(
        np.where(y, "yes", "no"), columns, [BinningCalibrator(5)], pos_label="yes"
    )
    np.testing.assert_allclose(named.brier, plain.brier)
    # where the first class is positive, the first column is for it
    first = compare_calibrators(
        np.where(y, "a", "b"), columns[:, ::-1], [BinningCalibrator(5)], pos_label="a"
    )
    np.testing.assert_allclose(first.brier, plain.brier)
    assert named.guarantee[1].positive_label == "yes"
    assert "the true rate is within" in named.guarantee[1].sentence  # "yes" says no more
    assert "the true rate of 'a' is within" in first.guarantee[1].sentence


def test_given_calibrators_stay_unfitted(rows) -> None:
    calibrator = BinningCalibrator(5)
    compare_calibrators(*rows, [calibrator])
    assert not hasattr(calibrator, "guarantee_")
    assert calibrator.pos_label is None
    assert calibrator.confidence_level == 0.9


def test_table_reads_well_and_becomes_a_frame(rows) -> None:
    found = compare_calibrators(
        *rows, {"Platt": PlattCalibrator(), "ten bins": BinningCalibrator(10)}
    )
    table, _ = found.tables()
    text = table.text()
    assert text.heads == ["method", "guaranteed within", "Brier score", "log loss", "AUC", "ECE"]
    assert [row[0] for row in text.rows] == ["uncalibrated", "Platt", "ten bins"]
    assert text.rows[0][1] == ""
    printed = float(text.rows[2][1].removesuffix(" points")) / 100
    assert found.epsilon[2] <= printed < 1.1 * found.epsilon[2]
    assert table.about in found.details
    assert "The methods were fitted to 1,500 other rows;" in found.details
    frame = found.to_frame().set_index("method")
    assert list(frame.index) == ["uncalibrated", "Platt", "ten bins"]
    assert frame.loc["ten bins", "epsilon"] == found.epsilon[2]


def test_the_sentence_of_many_methods_leaves_the_limits_to_the_table(rows) -> None:
    many = compare_calibrators(*rows, [BinningCalibrator(n_bins) for n_bins in range(2, 6)])
    assert "All exact limits hold together." in many.details
    assert "is lower by" not in many.sentence
    few = compare_calibrators(*rows, [PlattCalibrator()])
    assert "its Brier score is lower by" in few.sentence


@pytest.mark.broad
def test_guarantees_share_alpha(rows) -> None:
    contenders = {
        "platt": PlattCalibrator(),
        "5": BinningCalibrator(5),
        "9": BinningCalibrator(9, confidence_level=0.8),
    }
    found = compare_calibrators(*rows, contenders)
    for place, alpha in {2: 0.1, 3: 0.2}.items():
        assert found.guarantee[place].confidence_level == pytest.approx(1 - alpha / 2)


def test_the_best_of_many_splits_is_covered() -> None:
    # one bin, a fifth of 100 rows counted: the smallest epsilon is that of the split that drew the
    # fewest positives
    splits = [BinningCalibrator(1, pilot=80, random_state=seed) for seed in range(8)]
    rng = np.random.default_rng(5)
    scores = rng.uniform(size=200)
    Recorded.fits.clear()
    found = compare_calibrators(scores < 0.5, scores, [Recorded(), *splits])
    own = Recorded.fits[0][1]
    counted = [clone(split).fit(own, own < 0.5, classes=(0, 1)) for split in splits]
    draws = 2_000
    rate = 0.15
    missed = {0.1: 0, 0.1 / 8: 0}
    for alpha in missed:  # the limits depend on the count alone, and are those of the fits
        limits = clopper_pearson(
            Tally.from_counts([20] * 21, np.arange(21)), 1 - (1 - budgets(alpha)[0]) ** 21
        )
        fits = (
            counted
            if alpha == 0.1
            else [SimpleNamespace(guarantee_=g) for g in found.guarantee[2:]]
        )
        for split, fit in zip(counted, fits, strict=True):
            k = split.tally_.positives[0]
            assert fit.guarantee_.lower[0] == pytest.approx(limits.lower[k], rel=1e-9)
            assert fit.guarantee_.upper[0] == pytest.approx(limits.upper[k], rel=1e-9)
        epsilon = np.maximum(limits.upper - np.arange(21) / 20, np.arange(21) / 20 - limits.lower)
        is_missed = (limits.lower > rate) | (limits.upper < rate)
        assert [split.tally_.counts[0] for split in counted] == [20] * 8
        labels = rng.uniform(size=(draws, 100)) < rate
        members = [
            np.random.default_rng(seed).permutation(100)[:20] for seed in range(8)
        ]  # any fixed splits
        positives = np.stack([labels[:, rows].sum(axis=1) for rows in members], axis=1)
        best = np.take_along_axis(positives, epsilon[positives].argmin(axis=1)[:, None], axis=1)[
            :, 0
        ]
        missed[alpha] = int(is_missed[best].sum())
    assert (
        stats.binomtest(missed[0.1], draws, 0.1, alternative="greater").pvalue < 1e-6
    )  # the attack works
    assert_rare(missed[0.1 / 8], draws, 0.1)


@pytest.mark.parametrize(
    ("calibrators", "options", "message"),
    [
        ([], {}, "calibrators must contain at least one calibrator; got none"),
        (PlattCalibrator(), {}, "calibrators must be a mapping"),
        (["platt"], {}, "calibrators must have fit, predict and get_params; got str"),
        ([PlattCalibrator()], {"groups": np.zeros(3_000, int)}, "max_group_size must be given"),
        (
            [PlattCalibrator()],
            {"groups": np.zeros(3_000, int), "max_group_size": 3},
            "rows must be of at least two groups",
        ),
        ([PlattCalibrator()], {"importance_weight": np.ones(3_000)}, "weight_bound must be given"),
    ],
    ids=["none", "bare", "text", "no size", "one group", "no bound"],
)
def test_bad_input_is_refused_by_name(rows, calibrators, options: dict, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        compare_calibrators(*rows, calibrators, **options)


def test_groups_are_never_divided(rows) -> None:
    y, scores = rows
    groups = np.arange(y.size) // 3
    Recorded.fits.clear()
    compare_calibrators(y, scores, [Recorded()], groups=groups, max_group_size=3)
    fitting = np.isin(scores, Recorded.fits[0][1])
    assert (fitting.reshape(-1, 3) == fitting[::3, None]).all()
    assert 0.4 < fitting.mean() < 0.6


def test_a_guarantee_that_ignores_the_groups_is_not_proved(rows) -> None:
    class Blind(BinningCalibrator):
        def fit(self, scores, y, *, classes=None):
            return super().fit(scores, y, classes=classes)

    y, scores = rows
    groups = np.arange(y.size) // 3
    calibrators = {"blind": Blind(5), "bins": BinningCalibrator(5)}
    found = compare_calibrators(y, scores, calibrators, groups=groups, max_group_size=3)
    assert np.isnan(found.epsilon[1])
    assert not found.guarantee[1].is_proved
    assert found.epsilon[2] < 0.5


def test_stranger_without_a_guarantee_is_compared_too(rows) -> None:
    class Stranger(LogisticRegression):
        def fit(self, scores, y):
            return super().fit(np.asarray(scores)[:, None], y)

        def predict(self, scores):
            return super().predict_proba(np.asarray(scores)[:, None])[:, 1]

    found = compare_calibrators(*rows, {"stranger": Stranger()})
    assert np.isnan(found.epsilon[1])
    assert found.guarantee[1] is None


@pytest.mark.broad
def test_any_kind_of_random_state_divides_the_rows(rows) -> None:
    for random_state in (3, np.random.default_rng(3), np.random.RandomState(3), None):
        found = compare_calibrators(*rows, [PlattCalibrator()], random_state=random_state)
        assert found.brier[1] < 0.2
        again = compare_calibrators(*rows, [PlattCalibrator()], random_state=found.seed)
        np.testing.assert_array_equal(found.brier, again.brier)
