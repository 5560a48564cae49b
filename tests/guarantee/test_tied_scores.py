"""Tied scores: the look, the cut and the absorbed edge hold what they guarantee, and serve."""

from collections.abc import Callable, Iterator
from itertools import count

import numpy as np
import pytest
from scipy import stats

from calibrant import BinningCalibrator
from calibrant.calibrators.regions.binned_rows import look_size, split_size
from calibrant.limits import region_limits
from worlds.guarantees import assert_kept

ALPHA = 0.1
N = 400
N_BINS = 4
Rates = Callable[[int], np.ndarray]


def jumps(size: int) -> np.ndarray:
    """Neighbouring values have rates as unlike as can be: wherever an edge lies, the rate jumps
    there.
    """
    return np.where(np.arange(size) % 2 == 0, 0.02, 0.98)


def spikes(size: int) -> np.ndarray:
    """Only every seventh value is positive."""
    return (np.arange(size) % 7 == 0).astype(float)


def masses(size: int, rates: Rates) -> np.ndarray:
    """Of each value; with spikes, those that are positive are 25 times as frequent."""
    mass = np.where(np.arange(size) % 7 == 0, 5.0, 0.2) if rates is spikes else np.ones(size)
    return mass / mass.sum()


def broken(
    size: int, rates: Rates, *, sort: bool = False, weights: bool = False
) -> tuple[int, int, int]:
    """Fail if fits have too often a region whose rate lies outside its limits.

    Returns the number of fits; how many absorb an edge; how many are cut.
    """
    rng = np.random.default_rng([size, len(rates.__name__), sort, weights])
    values = np.arange(size) / size
    rate = rates(size)
    mass = masses(size, rates)
    absorbing = []
    cut = []

    def simulate() -> Iterator[dict[str, bool]]:
        for seed in count():
            which = rng.choice(size, size=N, p=mass)
            y = rng.uniform(size=N) < rate[which]
            order = np.argsort(y, kind="stable") if sort else np.arange(N)
            once = {"sample_weight": np.ones(N)} if weights else {}
            fitted = BinningCalibrator(N_BINS, random_state=seed).fit(
                values[which[order]], y[order], **once, classes=(0, 1)
            )
            region = fitted.partition_.assign(values)
            inside = fitted.partition_.membership(values) >= 0
            held = np.bincount(region[inside], mass[inside], fitted.partition_.n_regions)
            hits = np.bincount(region[inside], (mass * rate)[inside], fitted.partition_.n_regions)
            true = hits / np.maximum(held, 1e-300)
            guarantee = fitted.guarantee_
            absorbing.append(guarantee.statement.n_absorbed > 0)
            cut.append(guarantee.statement.cutting > 0)
            yield {
                "rates": bool(((true < guarantee.lower) | (true > guarantee.upper))[held > 0].any())
            }

    return assert_kept(simulate(), ALPHA, caught=0.2), sum(absorbing), sum(cut)


def p_value(misses: int, draws: int, level: float = ALPHA) -> float:
    return float(stats.binomtest(misses, draws, level, alternative="greater").pvalue)


@pytest.mark.slow
@pytest.mark.parametrize("rates", [jumps, spikes])
@pytest.mark.parametrize("size", [12, 100, 1_500, 4_000])
def test_limits_hold_with_few_values_and_with_many(size: int, rates: Rates) -> None:
    draws, absorbing, cut = broken(size, rates)
    if size == 12:
        assert cut == draws
    if (size, rates) == (4_000, jumps):
        assert min(absorbing, cut, draws - cut) > draws // 20  # each branch is taken


@pytest.mark.slow
@pytest.mark.parametrize("size", [100, 4_000])
def test_limits_hold_in_a_file_sorted_by_label(size: int) -> None:
    broken(size, jumps, sort=True)


@pytest.mark.slow
def test_limits_hold_without_a_look_where_rows_have_weights() -> None:
    draws, absorbing, _ = broken(1_500, jumps, weights=True)
    assert absorbing > draws // 2


def shares_missed(size: int, *, less: int = 0) -> tuple[int, int]:
    """How often the bound on the share of the value at a fixed rank is too small, where all values
    are equally likely.

    Of 200 rows, the value v of rank 100 and the next edge, of rank 110; the bound is that of tail
    0.05.
    """
    rng = np.random.default_rng(size)
    rows = np.sort(rng.integers(size, size=(20_000, 200)), axis=1)
    v = rows[:, [99]]
    w = rows[:, [109]]
    apart = (v < w)[:, 0]
    tied = (rows == v).sum(axis=1)[apart]
    between = ((rows > v) & (rows < w)).sum(axis=1)[apart]
    bound = region_limits.upper_limit(tied - less, tied - less + between, 0.05)
    share = 1.0 / (w - v)[apart, 0]
    return int(np.count_nonzero(share > bound)), 20_000


@pytest.mark.parametrize("size", [20, 60, 200, 1_000])
@pytest.mark.broad
def test_the_share_of_an_edge_that_was_selected_is_bounded(size: int) -> None:
    assert p_value(*shares_missed(size), 0.05) > 1e-3


def lowest_missed(less: int) -> tuple[int, int]:
    """The same for the value of rank 1, an atom below all other scores, and no next edge: its rows
    are hardly selected.

    Its share is such that the binomial limit of tail 0.05 is nearly exact.
    """
    n = 200
    draws = 100_000
    share = float(stats.beta.ppf(0.95, 3, n - 3)) + 1e-6  # two rows or fewer are just too few
    tied = np.random.default_rng(0).binomial(n, share, size=draws)
    tied = tied[tied > 0]
    bound = region_limits.upper_limit(tied - less, n - less, 0.05)
    return int(np.count_nonzero(share > bound)), draws


def test_with_one_row_less_the_bound_is_too_small() -> None:
    assert p_value(*lowest_missed(0), 0.05) > 1e-3
    assert p_value(*lowest_missed(1), 0.05) < 1e-6


def test_tied_scores_are_served_by_default() -> None:
    rng = np.random.default_rng(0)
    rates = rng.uniform(size=10_000)
    y = rng.uniform(size=10_000) < rates
    untied = BinningCalibrator(10, pilot=None).fit(rates, y).guarantee_
    scores = {
        "2": rates.round(2),
        "4": rates.round(4),
        "6": rates.round(6),
        "forest": rng.binomial(100, rates) / 100,
    }
    for name, tied in scores.items():
        found = BinningCalibrator(10).fit(tied, y).guarantee_
        assert len(found.regions) == 10, name
        assert found.epsilon < 1.25 * untied.epsilon, name
    assert BinningCalibrator(10).fit(rates, y).guarantee_.epsilon < 1.025 * untied.epsilon


def test_each_segment_has_its_look() -> None:
    rng = np.random.default_rng(1)
    scores = rng.uniform(size=6_000)
    segments = np.repeat(["tied", "untied"], 3_000)
    scores[:3_000] = scores[:3_000].round(2)
    fitted = BinningCalibrator(5).fit(scores, rng.uniform(size=6_000) < scores, segments=segments)
    said = fitted.guarantee_.statement
    parts = fitted.partition_.bins_by_segment
    assert (said.looked, said.cutting) == (look_size(3_000, 5), split_size(3_000, 5))
    assert (parts["tied"].cuts_own_sample, parts["untied"].cuts_own_sample) == (False, True)
    assert fitted.tally_.n_rows == 6_000 - said.looked - said.cutting
    assert "pilot rows checked for ties, not counted" in fitted.guarantee_.details
    assert (
        "pilot rows used only to choose bins, because scores are tied" in fitted.guarantee_.details
    )


def test_an_absorbed_edge_is_saved_and_predicted_with_its_bin() -> None:
    rng = np.random.default_rng(3)
    scores = np.repeat(rng.uniform(size=300), 2)  # each value twice, so that every edge is tied
    y = rng.uniform(size=600) < scores
    fitted = BinningCalibrator(4).fit(scores, y, sample_weight=np.ones(600))
    assert fitted.guarantee_.statement.n_absorbed == 3
    assert fitted.tally_.counts.sum() == 600
    edges = fitted.partition_.edges
    assert fitted.partition_.assign(edges).tolist() == [1, 2, 3]
    assert fitted.guarantee_.regions[1].startswith(f"[{edges[0]:.6g}, ")
    again = BinningCalibrator.from_dict(fitted.to_dict())
    assert again.to_dict() == fitted.to_dict()
    np.testing.assert_array_equal(again.guarantee_.upper, fitted.guarantee_.upper)
    apart = BinningCalibrator(4, pilot=None).fit(scores, y).guarantee_
    assert len(apart.regions) == 7
    assert fitted.guarantee_.epsilon < 0.5 * apart.epsilon
