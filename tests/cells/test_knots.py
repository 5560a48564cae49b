"""Rows counted at knots keep every average of a curve that is straight between knots."""

import numpy as np
import pytest

from calibrant import Partition, Tally
from calibrant.cells.bins import SegmentedScores
from calibrant.cells.knots import Knots
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.segmented_partition import SegmentedPartition
from calibrant.params.random import RandomSource

RNG = np.random.default_rng(0)


class EvenHashes:
    """Hashes whose uniform numbers are spread evenly over [0, 1)."""

    key = 0

    def __init__(self, n_rows):
        self.bits = (np.arange(n_rows) * (2.0**64 / n_rows)).astype(np.uint64)

    def hashes(self, keys):
        return self.bits[keys.astype(np.intp)]


@pytest.mark.parametrize("score", [0.0, 0.1, 0.2, 0.35, 0.5, 0.61, 0.99, 1.0, -3.0, 7.0])
def test_the_mean_over_knots_is_the_value_of_the_curve(score):
    regions = ScorePartition(np.array([0.5]))
    knots = Knots.between(regions, [np.array([0.0, 0.2, 0.4, 0.7, 1.0])])
    n_rows = 1 << 12
    prepared = np.full(n_rows, score)
    counts = knots.count(prepared, np.zeros(n_rows, dtype=np.uint8), EvenHashes(n_rows))
    values = RNG.uniform(size=knots.n_knots)
    found = float((counts.sum(axis=(1, 2)) * values).sum() / n_rows)
    cell = int(knots.cells.regions_of(np.array([score]))[0])
    begin, end = (ends[cell] for ends in knots.cells.layout.ends)
    share = (score - begin) / (end - begin) if np.isfinite(end - begin) else 0.0
    low = values[knots.first[cell]]
    high = values[knots.last[cell]]
    assert found == pytest.approx(low + share * (high - low), abs=2.0 / n_rows)


def test_counts_add_and_depend_on_keys_alone():
    scores = RNG.uniform(size=3_000)
    y = (RNG.uniform(size=3_000) < scores).astype(np.uint8)
    knots = Knots.between(ScorePartition(np.array([0.3, 0.6])), [np.linspace(0.0, 1.0, 20)])
    source = RandomSource(7)
    keys = np.arange(3_000, dtype=np.uint64)
    whole = knots.count(scores, y, source)
    parts = [
        knots.count(scores[rows], y[rows], source, keys[rows])
        for rows in (slice(0, 900), slice(900, None))
    ]
    np.testing.assert_array_equal(parts[0] + parts[1], whole)
    order = RNG.permutation(3_000)
    np.testing.assert_array_equal(knots.count(scores[order], y[order], source, keys[order]), whole)
    assert whole.sum() == 3_000
    halves = whole.sum(axis=(0, 2))
    assert abs(halves[0] - 1_500) < 150


def test_edges_are_doubled_and_rows_stay_in_their_region():
    scores = np.round(RNG.uniform(size=5_000), 2)
    y = (RNG.uniform(size=5_000) < scores).astype(np.uint8)
    regions = Partition.fixed_width(4).as_bins()
    knots = Knots.between(regions, [np.linspace(0.01, 0.99, 30)])
    counts = knots.count(scores, y, RandomSource(3))
    tally = Tally.from_data(regions, scores, y)
    np.testing.assert_array_equal(
        np.add.reduceat(counts.sum(axis=(1, 2)), knots.starts[:-1]), tally.counts
    )
    np.testing.assert_array_equal(
        np.add.reduceat(counts[:, :, 1].sum(axis=1), knots.starts[:-1]), tally.positives
    )
    at_edge = np.flatnonzero(np.abs(knots.score - 0.25) < 1e-12)
    assert knots.region[at_edge].tolist() == [0, 1]
    for score, knot in ((0.25, at_edge[1]), (np.nextafter(0.25, 0.0), at_edge[0])):
        found = knots.count(np.full(50, score), np.zeros(50, dtype=np.uint8), RandomSource(1))
        assert found.sum(axis=(1, 2))[knot] == 50


def test_tied_scores_at_a_knot_are_counted_there():
    knots = Knots.between(ScorePartition(np.array([0.5])), [np.array([0.1, 0.3, 0.8])])
    found = knots.count(np.full(200, 0.3), np.ones(200, dtype=np.uint8), RandomSource(1))
    assert found[knots.score == 0.3].sum() == 200


def test_edges_that_count_nowhere_or_are_absorbed_are_places_of_their_own():
    scores = np.sort(np.concatenate([RNG.uniform(size=200), np.full(5, 0.5)]))
    first = np.searchsorted(scores, 0.5) + 1
    absorbing = ScorePartition(
        np.array([0.5]),
        first_rank=np.array([first]),
        last_rank=np.array([first + 4]),
        n_rows=205,
        absorbing=1,
    )
    single = ScorePartition(
        scores[[50]], first_rank=np.array([51]), last_rank=np.array([51]), n_rows=205, absorbing=1
    )
    for regions, at_edge in ((absorbing, 5), (single, 1)):
        knots = Knots.between(regions, [np.linspace(0.0, 1.0, 9)])
        counts = knots.count(scores, np.zeros(205, dtype=np.uint8), RandomSource(2))
        assert counts[: knots.n_knots].sum() == 205 - at_edge
        assert counts[knots.n_knots :].sum(axis=(1, 2)).tolist() == [at_edge]
        knot, share = knots.places(scores)
        assert (knot < 0).sum() == at_edge
        assert not share[knot < 0].any()


def test_counts_of_regions_are_views_of_counts_at_knots():
    """Tied and untied edges, in segments of which one has bins that other rows cut."""
    n_rows = 4_000
    scores = np.where(RNG.uniform(size=n_rows) < 0.1, 0.4, RNG.uniform(size=n_rows))
    scores[:5] = 0.1
    y = (RNG.uniform(size=n_rows) < scores).astype(np.uint8)
    prepared = SegmentedScores(scores, RNG.integers(0, 2, n_rows))
    cells = SegmentedPartition(
        {
            "own": ScorePartition.at(np.array([0.1, 0.4, 0.9])),
            "other": ScorePartition(np.array([0.4])),
        }
    )
    knots = Knots.between(cells.if_untied(), [np.linspace(0.0, 1.0, 9), np.array([0.2, 0.7])])
    rows, positives = knots.of_cells(knots.count(prepared, y, RandomSource(2)))
    expected = Tally.of_codes(cells, prepared, y)
    np.testing.assert_array_equal(rows, expected.counts)
    np.testing.assert_array_equal(positives, expected.positives)


def test_segments_have_knots_of_their_own():
    regions = SegmentedPartition(
        {"a": ScorePartition(np.array([0.5])), "b": ScorePartition(np.empty(0))}
    )
    knots = Knots.between(regions, [np.array([0.2, 0.7]), np.array([10.0, 20.0])])
    assert knots.segment.tolist() == [0, 0, 0, 0, 1, 1]
    assert knots.region.tolist() == [0, 0, 1, 1, 2, 2]
    prepared = SegmentedScores(np.array([0.2, 0.7, 10.0, 5.0, 25.0]), np.array([0, 0, 1, 1, 1]))
    found = knots.count(prepared, np.zeros(5, dtype=np.uint8), RandomSource(2)).sum(axis=(1, 2))
    assert found.tolist() == [1, 0, 0, 1, 2, 1]


def test_a_cell_of_a_single_value_is_constant():
    regions = ScorePartition.at(np.array([0.5]))
    knots = Knots.between(regions, [np.array([0.0, 1.0])])
    assert np.diff(knots.starts).tolist() == [2, 1, 2]
