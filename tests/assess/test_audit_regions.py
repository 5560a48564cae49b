"""The regions of an audit: bins of about equal mass, halved again and again, and single values."""

import numpy as np
import pytest

from calibrant import Partition, Tally, audit, scored
from calibrant.assess.audit.findings import finest_bins
from calibrant.assess.metrics.bin_sums import few_values
from calibrant.cells.score_counts import ScoreCounts, ScoreSums
from calibrant.limits.non_identical import non_identical


def test_table_is_one_row_per_region_and_resolutions_nest() -> None:
    rng = np.random.default_rng(20)
    scores = np.round(rng.uniform(size=5_000), 2)
    table = audit(rng.uniform(size=5_000) < scores, scores, n_bins=8).table
    frame = table.to_frame()
    assert list(frame.columns[:5]) == ["segment", "resolution", "low", "high", "counts"]
    for level in np.unique(table.resolution):
        here = table.resolution == level
        assert table.counts[here].sum() == 5_000
        assert (table.low[here][1:] > table.high[here][:-1]).all()  # no tie is torn apart
    assert table.is_finest.sum() == np.unique(scores).size
    assert set(frame["verdict"]) <= {"no sign of error", "scores too low", "scores too high"}


def regions_by_hand(scores: np.ndarray, n_bins: int, finite: bool) -> list[list[list[int]]]:
    """Rows of every region, coarse to fine, from the definition: bins by middle rank, then halves."""
    n = scores.size
    middle = [np.count_nonzero(scores < s) + np.count_nonzero(scores == s) / 2 for s in scores]
    bins = np.array([min(int(rank * n_bins / n), n_bins - 1) for rank in middle])
    levels = [bins]
    while np.unique(levels[0]).size > 1:
        levels.insert(0, levels[0] // 2)
    if finite:
        levels.append(np.unique(scores, return_inverse=True)[1])
    groups = [[np.flatnonzero(level == b).tolist() for b in np.unique(level)] for level in levels]
    return [
        group for group, finer in zip(groups, [*groups[1:], None], strict=True) if group != finer
    ]


@pytest.mark.parametrize(
    ("n", "decimals", "n_bins", "finite"),
    [
        (97, 6, 8, False),
        (97, 1, 8, False),
        (260, 1, 8, True),
        (260, 1, 16, True),
        (41, 2, 5, False),
        (219, 1, 3, False),
    ],
)
def test_every_region_and_limit_is_the_documented_one(
    n: int, decimals: int, n_bins: int, finite: bool
) -> None:
    rng = np.random.default_rng(n + n_bins)
    scores = np.sort(np.round(rng.uniform(size=n) ** 2, decimals))
    y = (rng.uniform(size=n) < 0.5).astype(int)
    report = audit(y, scores, n_bins=n_bins, confidence_level=0.9)
    assert (report.upper_bound is not None) == finite
    expected = regions_by_hand(scores, n_bins, finite)
    table = report.table
    row = 0
    for level, regions in enumerate(expected):
        tail = (1 - (1 - 0.1 * 0.85 / len(expected)) ** (1 / len(regions))) / 2
        for members in regions:
            low = scores[members].min()
            high = scores[members].max()
            count = len(members)
            k = int(y[members].sum())
            limits = non_identical([count], [k], tail, [low == high])
            mean = scores[members].mean()
            assert (table.resolution[row], table.low[row], table.high[row]) == (level, low, high)
            assert (table.counts[row], table.rate[row]) == (count, k / count)
            assert table.mean_score[row] == pytest.approx(mean, abs=1e-12)
            assert table.lower[row] == pytest.approx(limits.lower[0], rel=1e-9)
            assert table.upper[row] == pytest.approx(limits.upper[0], rel=1e-9)
            error = max(limits.lower[0] - mean, mean - limits.upper[0], 0.0)
            assert table.error[row] == pytest.approx(error, abs=1e-9)
            row += 1
    assert row == table.counts.size


@pytest.mark.parametrize(
    ("n", "bins"), [(1, 1), (7, 1), (8, 2), (63, 2), (64, 4), (511, 4), (512, 8), (10**6, 64)]
)
def test_auto_takes_about_the_cube_root_of_the_rows(n: int, bins: int) -> None:
    assert finest_bins(n, "auto") == bins
    assert finest_bins(n, 5) == min(n, 5)


def test_a_score_is_finite_from_twenty_rows_a_value_and_up_to_a_thousand_values() -> None:
    assert few_values(5, 100)
    assert not few_values(5, 99)
    assert few_values(1, 1)
    assert few_values(1_000, 20_000)
    assert not few_values(1_001, 10**6)
    assert not few_values(None, 10**6)


def test_cells_of_a_tally_are_its_regions_with_rows() -> None:
    scores = np.array([0.25, 0.5, 0.5, 0.75, 0.25])
    partition = Partition.fixed_width(10)
    tally = Tally.from_data(partition, scores, [0, 1, 1, 0, 1])
    sums = ScoreSums.of(scores, partition.membership(scores), partition.n_regions)
    for are_values in (True, False):
        cells = ScoreCounts.of_tally(tally, sums, are_values=are_values)
        np.testing.assert_array_equal(cells.scores, [0.25, 0.5, 0.75])
        np.testing.assert_array_equal(cells.high, [0.25, 0.5, 0.75])
        np.testing.assert_array_equal(cells.counts, [2, 2, 1])
        np.testing.assert_array_equal(cells.positives, [1, 2, 0])
        np.testing.assert_array_equal(cells.total, [0.5, 1.0, 0.75])
        assert (cells.n_rows, cells.n_values) == (5, 3 if are_values else None)


@pytest.mark.parametrize("n_bins", [3, 7, "auto"])
@pytest.mark.parametrize("n", [1_203, 2_048])
def test_files_and_arrays_have_the_same_regions_beyond_a_thousand_values(
    n: int, n_bins: int | str
) -> None:
    rng = np.random.default_rng(n)
    scores = np.round(rng.uniform(size=n), 5)
    y = (rng.uniform(size=n) < scores).astype(int)
    near = audit(y, scores, n_bins=n_bins)
    far = audit(scored({"p": scores, "y": y}, score="p", label="y"), n_bins=n_bins)
    for name in ("resolution", "low", "high", "counts", "rate", "lower", "upper"):
        np.testing.assert_array_equal(getattr(far.table, name), getattr(near.table, name))


def test_files_and_arrays_have_the_same_regions_in_segments_with_few_and_many_values() -> None:
    rng = np.random.default_rng(3)
    names = np.repeat(["few", "many"], [300, 1_100])
    scores = np.where(names == "few", np.round(rng.uniform(size=1_400), 1), rng.uniform(size=1_400))
    y = (rng.uniform(size=1_400) < scores).astype(int)
    near = audit(y, scores, segments=names).table
    far = audit(scored({"p": scores, "y": y, "g": names}, score="p", label="y", segment="g")).table
    for name in ("segment", "resolution", "low", "high", "counts", "rate", "lower", "upper"):
        np.testing.assert_array_equal(getattr(far, name), getattr(near, name))
