"""Limits with shares of a budget that were fixed beforehand, and limits of curves without pilot
rows.
"""

import numpy as np
import pytest
from scipy import stats

from calibrant import Calibrator, Partition
from calibrant.calibrators.curve.fitted_curve import CurveProof
from calibrant.errors import CalibrantError
from calibrant.intervals import get_method
from calibrant.limits.error_budget import absorbed_budget, n_fixed_ranks
from calibrant.limits.kolmogorov import kolmogorov_distance, rank_distance
from calibrant.limits.region_limits import absorbed_shares, region_limits
from worlds.guarantees import assert_rare

LEVEL = 1e-4


def draw(n, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.uniform(size=n)
    return scores, (rng.uniform(size=n) < scores**3).astype(int)


@pytest.mark.broad
def test_few_drawn_rows_or_none_decide_nothing():
    for options in ({"pilot": None}, {"pilot": 5}, {"partition": Partition.fixed_width(4)}):
        model = Calibrator(**({"n_bins": 4} if "partition" not in options else {}), **options).fit(
            *draw(300)
        )
        assert model._fitted_curve.parts.shares is None
        np.testing.assert_array_equal(model._fitted_curve.parts.upper, 1.0)


@pytest.mark.broad
@pytest.mark.parametrize("tied", [False, True])
def test_limits_at_ranks_hold_at_once_and_are_narrow_at_the_ends(tied):
    rng = np.random.default_rng(6)
    draws = 200
    n = 50
    level = 0.1
    missed = 0
    grid = np.linspace(0.0, 1.0, 41)
    for _ in range(draws):
        x = rng.uniform(size=n) ** 2
        x = np.ceil(x * 10) / 10 if tied else x
        rows = np.histogram(x, grid)[0]
        near = rank_distance(rows, np.zeros(40, dtype=int), np.ones(1), np.array([level]))
        truth = np.sqrt(np.floor(grid[1:] * 10 + 1e-9) / 10 if tied else grid[1:])
        shares = np.array([(x <= end + 1e-9).mean() for end in grid[1:]])
        missed += bool((np.abs(shares - truth) > near).any())
    assert_rare(missed, draws, level, level=LEVEL)
    ends = rank_distance(
        np.ones(n, dtype=int), np.zeros(n, dtype=int), np.ones(1), np.array([level])
    )
    tail = level / (2 * n)
    assert ends[0] == pytest.approx(stats.beta.isf(tail, 2, n - 1), rel=1e-9)
    assert ends[0] < 0.75 * ends[n // 2]


def test_shares_of_distances_are_exact_levels():
    found = kolmogorov_distance(np.array([40, 90]), 0.05, np.array([0.2, 0.8]))
    for rows, share, limit in zip((40, 90), (0.2, 0.8), found, strict=True):
        assert limit == pytest.approx(stats.kstwo.isf(1 - 0.95**share, rows), rel=0.01)


@pytest.mark.parametrize("n", [400, 3000])
def test_a_closer_look_never_widens_what_koksma_allows_by_much(n):
    scores, y = draw(n, seed=3)
    scores = scores**3
    model = Calibrator("beta", n_bins=2, pilot=None).fit(scores, y)
    guarantee = model.guarantee_
    regions = model.partition_.as_bins()
    budget = CurveProof(regions, model.tally_, model.interval, model.confidence_level).for_curve
    plain = model.pieces_.variation(regions) * kolmogorov_distance(
        model.tally_.counts, budget, np.full(2, 0.5)
    )
    assert (guarantee.margin <= 1.12 * plain + 1e-3).all()
    assert guarantee.margin[1] < plain[1]
    again = Calibrator.from_dict(model.to_dict())
    np.testing.assert_array_equal(again.guarantee_.radius, guarantee.radius)
    np.testing.assert_array_equal(again.predict_interval(scores), model.predict_interval(scores))


def test_the_budget_of_a_curve_adds_up_to_alpha():
    """The shares are those of the documentation: 5% for masses, a tenth of the rest for how rows
    are distributed if there are no pilot rows, and 1% of it for the edges that bins may absorb.
    """
    scores, y = draw(300)
    model = Calibrator(n_bins=4, pilot=None, confidence_level=0.92).fit(scores, y)
    proof = CurveProof(model.partition_, model.tally_, model.interval, 0.92)
    assert proof.for_limits == pytest.approx(0.95 * 0.08)
    assert proof.for_curve == pytest.approx(0.1 * 0.95 * 0.08)
    assert proof.for_rates + proof.for_curve == pytest.approx(proof.for_limits)
    assert n_fixed_ranks(model.partition_) == 0
    assert proof.for_bets == proof.for_limits
    model = Calibrator(n_bins=4, confidence_level=0.92).fit(scores, y)
    assert n_fixed_ranks(model.partition_) == 3  # the edges between four regions
    proof = CurveProof(model.partition_, model.tally_, model.interval, 0.92)
    of_edges = absorbed_budget(model.partition_, proof.for_limits)
    assert of_edges == pytest.approx(0.01 * 0.95 * 0.08)
    assert proof.for_bets + of_edges == pytest.approx(proof.for_limits)


def test_the_bound_on_an_absorbed_edge_costs_one_per_cent_of_alpha():
    """Each rank that was fixed has an equal part of it, and the rates have the rest."""
    rng = np.random.default_rng(3)
    scores = np.round(rng.uniform(size=400) * 1_500) / 1_500
    y = (rng.uniform(size=400) < scores).astype(int)
    model = Calibrator(n_bins=4, random_state=2).fit(scores, y)
    partition = model.partition_
    assert partition.has_absorbed
    alpha = 0.08
    bins = partition.as_bins()
    at_edge = model.tally_.absorbed.counts
    region = bins.count_regions[bins.absorbed_cells]
    between = model.tally_.counts[region] - at_edge
    tail = 0.01 * alpha / n_fixed_ranks(partition)
    expected = stats.beta.isf(tail, at_edge + 1, between)
    np.testing.assert_allclose(absorbed_shares(partition, alpha)[region], expected, rtol=1e-9)
    alone = np.flatnonzero(~np.isin(np.arange(partition.n_regions), region))[0]
    found = region_limits(partition, model.tally_, get_method("clopper-pearson"), alpha)
    level = 1 - (1 - 0.99 * alpha) ** (1.0 / partition.n_regions)
    hits = model.tally_.positives[alone]
    rows = model.tally_.counts[alone]
    limit = stats.beta.isf(level / 2, hits + 1, rows - hits)
    assert found.upper[alone] == pytest.approx(limit, rel=1e-9)


def test_limits_are_those_of_the_interval_and_curves_beyond_one_are_refused():
    model = Calibrator(n_bins=3, interval="hoeffding").fit(*draw(1000))
    expected = CurveProof(model.partition_, model.tally_, "hoeffding", 0.9).rates()
    np.testing.assert_array_equal(model.guarantee_.lower, expected.lower)
    for name in ("left", "right"):
        state = model.to_dict()
        state["state"]["curve"][name] = [*state["state"]["curve"][name][:-1], 1.05]
        with pytest.raises(CalibrantError, match=name):
            Calibrator.from_dict(state)


@pytest.mark.filterwarnings("ignore::calibrant.errors.WeakGuaranteeWarning")
def test_errors_that_few_rows_leave_open_are_from_minus_1_to_1():
    scores, y = draw(6)
    errors = Calibrator(n_bins=3, pilot=None).fit(scores, y, classes=(0, 1)).guarantee_.errors
    assert errors.lower.min() == -1.0
    assert (errors.lower >= -1.0).all()
    assert (errors.upper <= 1.0).all()


@pytest.mark.parametrize("n", [60, 80, 101])
def test_from_60_rows_on_a_first_curve_has_its_pilot_rows_and_epsilon_is_near_that_of_more_rows(n):
    def median_epsilon(n_rows: int) -> float:
        found = []
        for seed in range(15):
            rng = np.random.default_rng([seed, n_rows])
            scores = rng.beta(0.6, 1.2, n_rows)
            y = rng.random(n_rows) < scores
            found.append(Calibrator(random_state=seed).fit(scores, y).guarantee_.epsilon)
        return float(np.median(found))

    fitted = Calibrator().fit(np.linspace(0.01, 0.99, n), np.arange(n) % 3 == 0)
    assert n - fitted.tally_.n_rows >= 12
    few = median_epsilon(n)
    assert few < 1.25 * np.sqrt(120 / n) * median_epsilon(120)
    assert few < 0.75 * median_epsilon(59)


def test_pilot_rows_leave_a_row_for_each_bin():
    scores, y = draw(60)
    assert Calibrator(n_bins=60).fit(scores, y).partition_.n_regions == 60
