"""Cutting and counting: what the bins and the tally of some rows are, however the rows are given."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import BinningCalibrator, Partition, Tally
from calibrant.calibrators.regions.binned_rows import cut_and_count
from calibrant.sample.reader import read_rows

some_scores = st.lists(
    st.sampled_from([-1.0, 0.0, 0.25, 0.5, 0.75, 1.0]) | st.floats(-2, 2), min_size=4, max_size=40
)


@pytest.mark.broad
@given(some_scores, st.integers(1, 4))
def test_quantile_bins_are_those_of_the_partition_made_from_the_scores(values, n_bins) -> None:
    scores = np.array(values)
    codes = (np.arange(scores.size) % 2).astype(np.uint8)
    binned = cut_and_count(
        read_rows(scores, codes, classes=(0, 1)), BinningCalibrator(n_bins, pilot=None)
    )
    partition = binned.partition
    tally = binned.tally
    counts, positives, uncounted = partition.count(scores, codes)
    assert partition == type(partition).uniform_mass(scores, n_bins)
    np.testing.assert_array_equal(tally.counts, counts)
    np.testing.assert_array_equal(tally.positives, positives)
    assert tally.uncounted == uncounted


@pytest.mark.broad
@given(some_scores, st.integers(1, 4))
def test_repeats_equal_repeated_rows(values, n_bins) -> None:
    scores = np.array(values)
    codes = (np.arange(scores.size) % 3 == 0).astype(np.uint8)
    repeats = np.arange(scores.size) % 4
    repeats[0] = 4
    bins = BinningCalibrator(n_bins, pilot=None)
    short = cut_and_count(read_rows(scores, codes, classes=(0, 1), sample_weight=repeats), bins)
    long = cut_and_count(
        read_rows(np.repeat(scores, repeats), np.repeat(codes, repeats), classes=(0, 1)), bins
    )
    assert short.partition == long.partition
    assert short.tally == long.tally


def test_parameters_beside_a_tally_are_checked() -> None:
    bins = Partition.fixed_width(1)
    with pytest.raises(ValueError, match="n_bins must be an int >= 1"):
        BinningCalibrator.from_tally(bins, Tally.from_counts([5], [2]), n_bins=0)


def test_segments_may_be_a_column() -> None:
    scores = np.arange(8.0)
    y = [0, 1] * 4
    segments = np.array(["a", "b"] * 4)
    flat, column = (
        BinningCalibrator(1, segment_rule=None).fit(scores, y, segments=given)
        for given in (segments, segments[:, None])
    )
    assert flat.tally_ == column.tally_


def test_a_tied_edge_without_others_counts_in_the_bin_that_absorbs_it():
    scores = np.concatenate([np.arange(400) / 1000, [0.5] * 6, 0.6 + np.arange(400) / 1000])
    fits = (
        BinningCalibrator(2, random_state=seed).fit(scores, np.arange(806) % 2)
        for seed in range(20)
    )
    bins = next(
        one.partition_.as_bins() for one in fits if one.partition_.has_absorbed
    )  # the look has missed the tie
    assert (bins.has_absorbed, bins.layout.n_uncounted) == (True, 0)
    rows, positives, uncounted = bins.gather(np.array([3, 2, 5]), np.array([1, 1, 2]))
    assert (rows.tolist(), positives.tolist(), uncounted) == ([3, 7], [1, 3], 0)
