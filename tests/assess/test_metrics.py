"""Metrics: the paper's definitions, agreement with peers, and intervals that hold as often as they
say.
"""

import math
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import fft, special, stats

from calibrant import Partition, scored
from calibrant.assess.metrics.bin_sums import binned, read_forecasts
from calibrant.assess.metrics.ece import debiased_square, ece_in
from calibrant.assess.metrics.smooth import _fixed_point
from calibrant.cells.entries import Entries
from calibrant.intervals import Interval
from calibrant.limits.bet_limits import bet_limits
from calibrant.limits.bet_units import BetUnits
from calibrant.limits.non_identical import non_identical
from calibrant.metrics import (
    Estimate,
    auc,
    brier_score,
    debiased_ece,
    ece,
    log_loss,
    reliability_table,
    smooth_ece,
    sweep_bins,
)
from calibrant.sample.sources.memory import MemoryRows
from worlds.binary import WORLDS, World
from worlds.guarantees import assert_kept

ROWS = 150
ALPHA = 0.1
SIMULATED = [world for world in WORLDS if world.name not in ("constant", "near-empty")]
LEVEL = 1e-4  # there are some 40 binomial tests here


def peer_data() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The rows that the frozen numbers of other packages were computed on."""
    rng = np.random.default_rng(2024)
    data = {}
    for name, draw in {
        "continuous": lambda: (rng.uniform(size=500), lambda s: s**2),
        "tenths": lambda: (np.round(rng.uniform(size=500), 1), lambda s: s),
        "rare": lambda: (rng.beta(0.5, 8, size=500), lambda s: s),
    }.items():
        scores, rate = draw()
        data[name] = scores, (rng.uniform(size=500) < rate(scores)).astype(int)
    return data


# uncertainty-calibration 0.1.4: plugin_ce and unbiased_square_ce over get_equal_prob_bins(10), and
# plugin_ce over get_equal_bins(10). netcal 1.4.0: ECE(10) and MCE(10), with equal_intervals True
# and False for ECE.
FROZEN = {
    "continuous": {
        "l1": 0.19000360428977872,
        "l2": 0.2057390439116601,
        "max": 0.3097221125390588,
        "debiased_square": 0.039704183544767443,
        "quantile_l1": 0.1900036042897788,
        "quantile_l2": 0.20632716540933413,
        "smooth": 0.18974384757864893,
    },
    "rare": {
        "l1": 0.016014991316926023,
        "l2": 0.04032115891670078,
        "max": 0.35638513679809136,
        "debiased_square": 0.0002663630928083622,
        "quantile_l1": 0.020044661072228562,
        "quantile_l2": 0.029357588480946217,
        "smooth": 0.021347604631620446,
    },
}


@pytest.mark.parametrize("name", FROZEN)
def test_ece_agrees_with_uncertainty_calibration_and_netcal(name: str) -> None:
    scores, y = peer_data()[name]
    expected = FROZEN[name]
    for norm in ("l1", "l2", "max"):
        assert ece(y, scores, norm=norm, strategy="uniform").value == pytest.approx(
            expected[norm], abs=1e-12
        )
    for norm in ("l1", "l2"):
        value = ece(y, scores, norm=norm, strategy="quantile").value
        assert value == pytest.approx(expected[f"quantile_{norm}"], abs=1e-12)
    square = debiased_ece(y, scores, strategy="uniform").value ** 2
    assert square == pytest.approx(expected["debiased_square"], abs=1e-12)


def test_peers_put_scores_on_an_edge_into_other_bins_than_the_paper() -> None:
    # The paper's bins are [a, b). uncertainty-calibration closes them on the right; netcal compares
    # with the doubles of linspace, where 3 * 0.1 lies above 0.3, so that 0.3, 0.6 and 0.7 fall one
    # bin too low and others do not.
    scores, y = peer_data()["tenths"]
    assert np.linspace(0, 1, 11)[3] > 0.3
    exact = sum(
        np.mean(scores == value) * abs(y[scores == value].mean() - value)
        for value in np.unique(scores[scores < 0.9])
    )
    last = scores >= 0.9  # the paper's last bin is closed: 0.9 and 1.0 share it
    exact += np.mean(last) * abs(y[last].mean() - scores[last].mean())
    assert ece(y, scores, strategy="uniform").value == pytest.approx(exact, abs=1e-12)
    assert ece(y, scores, strategy="uniform").value != pytest.approx(0.0276, abs=1e-3)  # netcal's
    assert ece(y, scores, norm="l2", strategy="uniform").value != pytest.approx(
        0.05684274624389, abs=1e-3
    )  # the other


@pytest.mark.parametrize("name", FROZEN)
def test_smooth_ece_agrees_with_relplot(name: str) -> None:
    # relplot 1.0.3 finds the fixed point to 1e-3 and cuts its kernel off at 1/2; ours is exact on a
    # finer grid
    scores, y = peer_data()[name]
    assert smooth_ece(y, scores).value == pytest.approx(FROZEN[name]["smooth"], abs=1e-3)


def test_smooth_ece_is_the_mean_gap_where_all_gaps_have_one_sign() -> None:
    # a kernel that reflects at the ends keeps mass, so nothing may be lost; relplot loses 2.6e-4
    # here
    scores, y = peer_data()["continuous"]
    assert smooth_ece(y, scores).value == pytest.approx(abs(y.mean() - scores.mean()), abs=1e-9)


@pytest.mark.broad
def test_smooth_ece_solves_its_own_equation_with_a_kernel_written_out() -> None:
    scores, y = peer_data()["rare"]
    width = smooth_ece(y, scores, n_cells=2**14).value
    t = (np.arange(4000) + 0.5) / 4000
    images = np.concatenate([2 * k + sign * scores for k in range(-2, 3) for sign in (1, -1)])
    weights = np.tile(y - scores, 10)
    smoothed = stats.norm.pdf((t[:, None] - images) / width) @ weights / width / scores.size
    assert np.abs(smoothed).mean() == pytest.approx(width, abs=1e-5)


def test_scores_on_edges_follow_the_papers_half_open_bins() -> None:
    # [0, 0.5) and [0.5, 1]: 0.5 belongs above, 1.0 to the last
    assert ece(
        [0, 1, 1, 0], [0.2, 0.5, 1.0, 0.4], n_bins=2, strategy="uniform"
    ).value == pytest.approx(0.5 * 0.3 + 0.5 * 0.25)


def test_few_score_values_are_taken_exactly_and_many_are_not() -> None:
    rng = np.random.default_rng(0)
    scores = np.round(rng.uniform(size=4000), 2)
    y = (rng.uniform(size=4000) < scores).astype(int)
    exact = ece(y, scores)
    by_hand = sum(np.mean(scores == v) * abs(y[scores == v].mean() - v) for v in np.unique(scores))
    assert exact.exact
    assert exact.value == pytest.approx(by_hand)
    assert not ece(y, scores, strategy="uniform").exact
    assert not ece(y, rng.uniform(size=4000)).exact
    assert exact.value >= ece(y, scores, strategy="uniform").value  # bins average error away


def test_calibrator_with_finitely_many_values_has_exact_metrics() -> None:
    from calibrant import BinningCalibrator

    rng = np.random.default_rng(1)
    scores = rng.uniform(size=4000)
    y = (rng.uniform(size=4000) < scores**2).astype(int)
    prediction = BinningCalibrator(n_bins=10).fit(scores[:2000], y[:2000]).predict(scores[2000:])
    assert ece(y[2000:], prediction).exact
    split = brier_score(y[2000:], prediction)
    assert split.exact
    assert split.within_bins == pytest.approx(0.0, abs=1e-15)


def test_brier_score_is_the_sum_of_its_parts() -> None:
    rng = np.random.default_rng(2)
    scores = rng.uniform(size=1000)
    y = (rng.uniform(size=1000) < scores**2).astype(int)
    for strategy in ("uniform", "quantile", "values"):
        score = brier_score(y, scores, strategy=strategy)
        assert score.value == pytest.approx(np.mean((y - scores) ** 2))
        assert score.value == pytest.approx(
            score.calibration + score.refinement + score.within_bins
        )
        assert score.refinement == pytest.approx(score.uncertainty - score.resolution)


def test_proper_scores_agree_with_scikit_learn() -> None:
    from sklearn.metrics import brier_score_loss
    from sklearn.metrics import log_loss as sklearn_log_loss

    scores, y = peer_data()["continuous"]
    assert brier_score(y, scores).value == pytest.approx(brier_score_loss(y, scores), abs=1e-14)
    assert log_loss(y, scores).value == pytest.approx(sklearn_log_loss(y, scores), abs=1e-14)


def test_impossible_label_makes_log_loss_infinite_and_clipping_makes_it_finite() -> None:
    loss = log_loss([0, 1], [0.5, 0.0])
    assert math.isinf(loss.value)
    assert loss.heuristic
    clipped = log_loss([0, 1], [0.5, 0.0], clip=1e-3)
    assert clipped.value == pytest.approx((math.log(2) - math.log(1e-3)) / 2)
    assert not clipped.heuristic


@pytest.mark.broad
def test_debiasing_removes_the_upward_bias_of_many_bins() -> None:
    rng = np.random.default_rng(3)
    plain = []
    debiased = []
    for _ in range(200):
        scores = rng.uniform(size=500)
        y = rng.uniform(size=500) < scores
        plain.append(ece(y, scores, norm="l2", n_bins=50, strategy="uniform").value ** 2)
        debiased.append(
            debiased_square(binned(read_forecasts(y, scores, 1, (0, 1)), 50, "uniform"))
        )
    error = np.std(debiased) / math.sqrt(200)
    assert np.mean(plain) > 20 * error
    assert abs(np.mean(debiased)) < 4 * error


def sweep_by_definition(y: np.ndarray, scores: np.ndarray) -> int:
    order = np.argsort(scores)
    for n_bins in range(2, scores.size + 1):
        cell = ((np.arange(scores.size) + 0.5) * n_bins / scores.size).astype(int)
        rates = np.array([y[order][cell == b].mean() for b in np.unique(cell)])
        if (np.diff(rates) < 0).any():
            return n_bins - 1
    return scores.size


@pytest.mark.parametrize("seed", range(5))
def test_sweep_stops_where_a_rate_first_falls(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.uniform(size=300)
    y = (rng.uniform(size=300) < scores).astype(int)
    assert sweep_bins(y, scores) == sweep_by_definition(y, scores)
    swept = ece(y, scores, n_bins="sweep")
    assert swept.heuristic
    assert "looking at the labels" in swept.basis


def test_flipping_labels_and_scores_leaves_every_error_unchanged(monkeypatch) -> None:
    # bets on other scores are made in another order; here the order is the same
    monkeypatch.setattr(MemoryRows, "fingerprint", lambda rows: 0)
    scores, y = peer_data()["continuous"]
    for metric in (ece, debiased_ece, brier_score, log_loss, smooth_ece):
        here = metric(y, scores)
        there = metric(1 - y, 1 - scores)
        assert here.value == pytest.approx(there.value, abs=1e-9)
        assert (here.lower, here.upper) == pytest.approx((there.lower, there.upper), abs=1e-9)


@pytest.mark.broad
def test_higher_confidence_contains_lower() -> None:
    scores, y = peer_data()["continuous"]
    for metric in (ece, debiased_ece, brier_score, log_loss, smooth_ece):
        wide = metric(y, scores, confidence_level=0.99)
        narrow = metric(y, scores, confidence_level=0.8)
        assert wide.lower <= narrow.lower <= narrow.upper <= wide.upper


@pytest.mark.parametrize(
    "metric", [ece, debiased_ece, smooth_ece, brier_score, log_loss, sweep_bins]
)
def test_scored_data_give_the_numbers_of_arrays(metric) -> None:
    scores, y = peer_data()["continuous"]
    data = scored({"p": scores, "y": y}, score="p", label="y")
    assert metric(data) == metric(y, scores)
    with pytest.raises(TypeError, match="scores must be None with scored data"):
        metric(data, scores)
    with pytest.raises(TypeError, match="pass them first, in the place of the labels"):
        metric(None, data)
    with pytest.raises(TypeError, match="scores must be an array; got None"):
        metric(y)


def test_estimate_as_text_rounds_its_limits_outwards() -> None:
    estimate = Estimate("l1-ECE", 0.14, 0.12346, 0.15671, 0.999, False, "this", "that")
    assert estimate.sentence == "l1-ECE: 0.14, exact 99.9% CI 0.123 to 0.157 for this."


def test_reliability_table_refuses_regions_that_are_not_bins_of_one_score() -> None:
    scores, y = peer_data()["continuous"]
    halves = Partition.from_function(lambda s: np.asarray(s) > 0.5, [False, True])
    with pytest.raises(
        TypeError,
        match="partition must be bins of one score, without segments; got FunctionPartition",
    ):
        reliability_table(y, scores, partition=halves)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scores": [0.1, 1.2]}, "probabilities in"),
        ({"norm": "l3"}, "norm must be one of"),
        ({"n_bins": 0}, "n_bins must be an int >= 1"),
        ({"n_bins": "many"}, "n_bins must be an int >= 1 or \"sweep\"; got 'many'"),
        ({"strategy": "width"}, "strategy must be one of"),
        ({"confidence_level": 1.0}, "confidence_level must be"),
        ({"y": [1, 1]}, "two classes"),
        ({"y": [0, 1, 1]}, "same number of rows"),
    ],
)
def test_bad_input_is_refused_by_name(arguments: dict, message: str) -> None:
    given = {"y": [0, 1], "scores": [0.1, 0.9], **arguments}
    with pytest.raises(ValueError, match=message):
        ece(given.pop("y"), given.pop("scores"), **given)


@pytest.mark.broad
@pytest.mark.parametrize("tail", [0.4, 0.1, 0.02, 1e-3])
def test_limits_hold_for_any_unlike_labels(tail: float) -> None:
    # exact miss probabilities by convolution; plain Clopper-Pearson exceeds the tail when all
    # labels but one are sure
    rng = np.random.default_rng(5)
    limits_of = {
        n: [non_identical(n, np.arange(n + 1), tail, plain) for plain in (False, True)]
        for n in range(1, 12)
    }
    worst = plain_worst = 0.0
    for trial in range(400):
        n = int(rng.integers(1, 12))
        rates = [
            rng.uniform(size=n),
            rng.beta(0.1, 0.1, size=n),
            np.append(np.ones(n - 1), 1 - 1.1 * tail),
        ][trial % 3]
        pmf = np.array([1.0])
        for rate in rates:
            pmf = np.convolve(pmf, [1 - rate, rate])
        limits, plain = limits_of[n]
        worst = max(
            worst, pmf[rates.mean() > limits.upper].sum(), pmf[rates.mean() < limits.lower].sum()
        )
        plain_worst = max(plain_worst, pmf[rates.mean() > plain.upper].sum())
    assert worst <= tail * (1 + 1e-9)
    assert worst > 0.3 * tail
    if tail == 0.4:
        assert plain_worst > tail


def remembered(function):
    """The same limits, computed once per count; a simulation meets the same counts again and again."""
    memory: dict[tuple, tuple[float, float]] = {}

    def limits(counts, positives, tail, identical=False):
        columns = np.broadcast_arrays(counts, positives, tail, identical)
        keys = list(zip(*(column.tolist() for column in columns), strict=True))
        if new := sorted(set(keys) - memory.keys()):
            found = function(*(np.array(column) for column in zip(*new, strict=True)))
            memory.update(
                zip(new, zip(found.lower.tolist(), found.upper.tolist(), strict=True), strict=True)
            )
        lower, upper = np.array([memory[key] for key in keys]).T
        return Interval(lower, upper)

    return limits


def binned_truth(scores: np.ndarray, rates: np.ndarray, cells: np.ndarray, norm: str) -> float:
    """The calibration error of the scores seen, in these bins, with the true rates in place of
    labels.
    """
    gaps = np.bincount(cells, rates - scores)
    counts = np.maximum(np.bincount(cells), 1)
    mass = counts / scores.size
    gap = np.abs(gaps / counts)
    if norm == "max":
        return gap.max()
    return (mass @ gap) if norm == "l1" else math.sqrt(mass @ gap**2)


@pytest.mark.slow
@pytest.mark.parametrize("world", SIMULATED, ids=lambda world: world.name)
def test_valid_intervals_hold_as_often_as_they_say(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sys.modules["calibrant.assess.metrics.ece"], "non_identical", remembered(non_identical)
    )
    rng = np.random.default_rng(7 + WORLDS.index(world))
    grid = (np.arange(100_000) + 0.5) / 100_000
    support = np.concatenate([grid, world.atoms])
    mass = np.concatenate([np.full(grid.size, world.continuous / grid.size), world.atom_mass])
    rate = world.rate(support)
    expected_brier = mass @ (rate * (1 - support) ** 2 + (1 - rate) * support**2)
    clipped = np.clip(support, 0.01, 0.99)
    expected_loss = mass @ -(rate * np.log(clipped) + special.xlog1py(1 - rate, -clipped))
    options = {"confidence_level": 1 - ALPHA, "classes": (0, 1)}
    slack = 1e-9

    def simulate() -> Iterator[dict[str, bool]]:
        while True:
            missed = {}
            scores, y = world.draw(rng, ROWS)
            rates = world.rate(scores)
            cells = np.searchsorted(np.arange(1, 10) / 10, scores, side="right")
            bins = binned(
                read_forecasts(y, scores, 1, (0, 1)), 10, "uniform"
            )  # once for the three norms
            for norm in ("l1", "l2", "max"):
                found = ece_in(bins, norm, 1 - ALPHA, "", swept=False)
                truth = binned_truth(scores, rates, cells, norm)
                missed[norm] = not found.lower - slack <= truth <= found.upper + slack
            found = smooth_ece(y, scores, n_cells=64, **options)
            residual = (
                np.bincount(np.minimum((scores * 64).astype(int), 63), rates - scores, minlength=64)
                / ROWS
            )
            missed["smooth"] = (
                not found.lower - slack <= _fixed_point(fft.dct(residual)) <= found.upper + slack
            )
            found = brier_score(y, scores, strategy="uniform", **options)
            missed["brier"] = not found.lower <= expected_brier <= found.upper
            found = log_loss(y, scores, clip=0.01, **options)
            missed["log loss"] = not found.lower <= expected_loss <= found.upper
            yield missed

    assert_kept(simulate(), ALPHA, caught=0.18)


def test_intervals_are_not_vacuous() -> None:
    scores, y = WORLDS[0].draw(np.random.default_rng(0), 100_000)
    for metric, width in ((ece, 0.02), (smooth_ece, 0.03), (brier_score, 0.005)):
        found = metric(y, scores)
        assert found.upper - found.lower < width
    assert ece(y, scores, norm="l2").upper - ece(y, scores, norm="l2").lower < 0.04


class AsGiven(np.random.Generator):
    """Leaves units in the order in which they come."""

    def permutation(self, n):
        return np.arange(n)


def test_brier_interval_does_not_suffer_from_sorted_rows() -> None:
    rng = np.random.default_rng(11)
    scores = rng.uniform(size=5_000)
    y = rng.uniform(size=5_000) < scores
    order = np.argsort(-((y - scores) ** 2))
    # bets on rows in the order of their losses win against the true mean, too
    draws = Entries(np.zeros(5_000, dtype=int), (y - scores)[order] ** 2, 1)
    units = BetUnits.of(draws, np.zeros(1), np.ones(1), AsGiven(np.random.PCG64(0)))
    assert bet_limits(units, np.full(1, 0.025)).lower[0] > 1 / 6
    found = brier_score(y[order], scores[order])
    assert found.lower < 1 / 6 < found.upper
    assert found.upper - found.lower < 0.015


def test_auc_of_published_ct_ratings() -> None:
    """Hanley and McNeil (1982), table 1: 58 normal and 51 abnormal images.

    Stata's manual gives DeLong's limits.
    """
    y = np.repeat([0, 1], [58, 51])
    ratings = np.repeat([1, 2, 3, 4, 5, 1, 2, 3, 4, 5], [33, 6, 6, 11, 2, 3, 2, 2, 11, 33])
    found = auc(y, ratings)
    assert round(found.value, 4) == 0.8932
    assert (round(found.lower, 5), round(found.upper, 5)) == (0.83295, 0.95339)
