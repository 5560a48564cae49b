"""Rows by score: what a loop counts; very many scores of pilot rows are thinned, where totals, ends
and heavy scores stay.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import Calibrator
from calibrant.calibrators.curve import pilot_rows
from calibrant.cells.score_counts import ScoreCounts

counts = st.lists(st.integers(1, 50), min_size=1, max_size=60)
scored_rows = st.lists(
    st.tuples(st.sampled_from([-2.5, -0.0, 0.0, 0.25, 0.5, 1.0, 3.0]), st.integers(0, 1))
)


@given(scored_rows, st.sampled_from([-3.0, 0.0, 0.1]))
def test_rows_and_positives_are_those_that_a_loop_counts(data, least):
    data = [(score, label) for score, label in data if score >= least]
    scores = np.array([score for score, _ in data], dtype=float)
    codes = np.array([label for _, label in data], dtype=np.uint8)
    found = ScoreCounts.of(scores, codes)
    values = sorted(set(scores.tolist()))
    assert found.scores.tolist() == values
    assert found.counts.tolist() == [(scores == value).sum() for value in values]
    assert found.positives.tolist() == [codes[scores == value].sum() for value in values]
    assert found.high.tolist() == values
    assert found.n_values == len(values)
    assert found.total.tolist() == (found.scores * found.counts).tolist()
    falling, rows, positives = found.from_above()
    assert falling.tolist() == values[::-1]
    assert rows.tolist() == [(scores >= value).sum() for value in falling]
    assert positives.tolist() == [codes[scores >= value].sum() for value in falling]


@given(counts, st.integers(1, 70))
def test_rows_are_kept_and_scores_are_some_of_those_before(numbers, most):
    rows = np.array(numbers)
    scores = np.arange(rows.size) * 0.5
    positives = rows // 2
    found = ScoreCounts(scores, rows, positives).thinned(most)
    assert found.n_rows == rows.sum()
    assert found.n_positive == positives.sum()
    assert (np.diff(found.scores) > 0.0).all()
    assert np.isin(found.scores, scores).all()
    assert found.scores[[0, -1]].tolist() == scores[[0, -1]].tolist()
    assert found.scores.size <= max(most + 3, 1)
    # what was merged are neighbours: as many rows lie below each run as before
    below = np.concatenate([[0], np.cumsum(found.counts)])
    assert np.isin(below, np.concatenate([[0], np.cumsum(rows)])).all()


def test_a_score_with_many_rows_stays_where_it_is():
    rows = np.ones(2_001, dtype=np.int64)
    rows[[400, 1_600]] = 5_000
    found = ScoreCounts(np.arange(2_001.0), rows, rows // 2).thinned(100)
    assert np.isin([400.0, 1_600.0], found.scores).all()
    assert found.scores.size < 105


@pytest.mark.parametrize("decimals", [2, 9])
def test_a_fit_with_fewer_scores_of_pilot_rows_is_nearly_the_same(decimals, monkeypatch):
    rng = np.random.default_rng(4)
    scores = np.round(rng.beta(1.0, 3.0, size=40_000), decimals)
    y = rng.uniform(size=scores.size) < scores**1.5
    whole = Calibrator(n_bins=5).fit(scores, y)
    monkeypatch.setattr(pilot_rows, "_MOST_SCORES", 60)
    thinned = Calibrator(n_bins=5).fit(scores, y)
    assert thinned.guarantee_.epsilon == pytest.approx(whole.guarantee_.epsilon, rel=0.1)
    at = np.linspace(0.02, 0.8, 60)
    np.testing.assert_allclose(thinned.predict(at), whole.predict(at), atol=0.02)
    assert not np.array_equal(thinned.table_, whole.table_)
