"""The study on sets that no choice has seen: its sets are others, its rivals are what they are called,
its tables say what its files say, and its entry for CalArena takes what CalArena gives.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression

from calibrant import Calibrator

sys.path.insert(0, str(Path(__file__).parents[2] / "study"))

import calarena
import unseen
import unseen_tables
from sets import SETS
from tables import LICENCES
from unseen_sets import UNSEEN


def test_unseen_sets_are_other_tables_with_a_known_licence():
    assert len({real.name for real in (*SETS, *UNSEEN)}) == len(SETS) + len(UNSEEN)
    assert not {real.table for real in UNSEEN} & {real.table for real in SETS}
    assert all(real.licence_key in LICENCES for real in UNSEEN)
    assert len(UNSEEN) >= 30


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 3))
    y = (rng.random(700) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    return X[:500], y[:500], X[500:]


def test_models_that_are_fitted_once_give_what_scikit_learns_class_gives(rows, monkeypatch):
    monkeypatch.setattr(unseen, "cross_venn_abers", lambda folds, X, y, new: np.zeros(len(new)))
    X, y, new = rows
    each = unseen.rival_classifiers("logistic", X, y, new)
    found = {method: p for method, p, _ in each}
    for method in ("sigmoid", "isotonic"):
        theirs = CalibratedClassifierCV(LogisticRegression(max_iter=2000), method=method, cv=5)
        expected = theirs.fit(X, y).predict_proba(new)[:, 1]
        np.testing.assert_allclose(found[f"scikit-learn {method}"], expected, rtol=1e-9)
    one = CalibratedClassifierCV(LogisticRegression(max_iter=2000), cv=5, ensemble=False)
    expected = one.fit(X, y).predict_proba(new)[:, 1]
    np.testing.assert_allclose(found["scikit-learn sigmoid, ensemble=False"], expected, rtol=1e-6)


def test_the_oracle_has_exact_limits_for_all_regions():
    widths = unseen.half_widths(np.array([40.0, 200.0]), np.array([7.0, 90.0]), 2)
    exact = binomtest(7, 40).proportion_ci(1 - 0.1 / 2)
    assert widths[0] == pytest.approx((exact.high - exact.low) / 2)
    assert widths[1] < widths[0]
    assert unseen.half_widths(np.zeros(1), np.zeros(1), 1)[0] == 0.5


def test_win_rates_count_rivals_that_are_beaten():
    table = pd.DataFrame(
        [("a", "m", 0, name, brier) for name, brier in {"x": 0.1, "y": 0.2, "z": 0.2}.items()],
        columns=["set", "model", "split", "method", "brier"],
    )
    assert unseen_tables.win_rates(table).to_dict() == {"x": 1.0, "y": 0.0, "z": 0.0}


def test_a_contest_counts_larger_losses_and_distances_to_the_best():
    losses = {("a", "x"): 0.2, ("a", "y"): 0.4, ("a", "z"): 0.1, ("b", "x"): 0.3, ("b", "y"): 0.6}
    table = pd.DataFrame(
        [(name, "m", 0, method, loss) for (name, method), loss in losses.items()],
        columns=["set", "model", "split", "method", "log_loss"],
    )
    found = unseen_tables.contest(table, "x", ["y", "z"])  # set b has no z, so it doesn't count
    assert found == pytest.approx((0.5, 1.0, 1.0))
    assert unseen_tables.contest(table, "x", ["y"]) == pytest.approx((1.0, 0.0, 0.0))


def test_only_splits_that_are_whole_are_kept():
    table = pd.DataFrame(
        {"set": ["a", "b", "a"], "model": "m", "split": ["0", "0", "1"], "log_loss": 0.5}
    )
    assert set(unseen.whole_splits(table).split) == {"0"}


def test_units_go_through_all_sets_of_a_split_before_the_next():
    units = unseen.unseen_units(["smokers", "wells"])
    assert [names[1] for _, _, names in units["unseen"][:7]] == ["0"] * 6 + ["1"]
    assert {name for _, name, _ in units["unseen_subgroups"]} == {"smokers"}


def test_the_entry_for_calarena_is_the_default_curve():
    rng = np.random.default_rng(1)
    p = rng.random(600)
    y = (rng.random(600) < p**2).astype(int)
    entry = calarena.CUSTOM_CALIBRATORS["calibrant"]()
    entry.fit(np.column_stack([1 - p, p]), y)
    new = np.linspace(0.1, 0.9, 5)
    expected = Calibrator().fit(p, y).predict(new)
    for given in (new, new[:, None], np.column_stack([1 - new, new])):
        np.testing.assert_array_equal(entry.predict_proba(given)[:, 1], expected)
    found = calarena.measured(p[:400], y[:400], p[400:], y[400:])
    assert found["calibrant_brier"] < 0.5
    assert found["calibrant_time"] > 0.0
