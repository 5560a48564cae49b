"""uLSIF: the closed-form leave-one-out against leaving one out, and the fit against the
normal equations.
"""

import numpy as np
import pytest
from sklearn.base import clone

from calibrant.ratios import ULSIF
from calibrant.shift.ratios.least_squares import Basis, LeastSquares


def populations(seed, n_source, n_target, n_features=3):
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(n_source, n_features)), rng.beta(2, 1, size=(n_target, n_features))


def bumps(rows, centers, bandwidth):
    """Gaussian kernel values, the direct way."""
    return np.exp(
        -np.square(rows[:, None, :] - centers[None, :, :]).sum(axis=2) / (2 * bandwidth**2)
    )


def fitted_coefficients(at_source, at_target, penalty):
    """Solve the normal equations, with one step of iterative refinement: the matrices are
    ill-conditioned.
    """
    matrix = at_source.T @ at_source / len(at_source)
    matrix += penalty * np.eye(len(matrix))
    solved = np.linalg.solve(matrix, at_target.mean(axis=0))
    solved += np.linalg.solve(matrix, at_target.mean(axis=0) - matrix @ solved)
    return np.maximum(solved, 0.0)


def brute_force(at_source, at_target, penalty):
    total = 0.0
    n = min(len(at_source), len(at_target))
    for i in range(n):
        rest = np.delete(at_source, i, axis=0), np.delete(at_target, i, axis=0)
        coefficients = fitted_coefficients(*rest, penalty)
        g_source = at_source[i] @ coefficients
        g_target = at_target[i] @ coefficients
        total += g_source**2 / 2 - g_target
    return total / n


@pytest.mark.broad
@pytest.mark.parametrize(("n_source", "n_target"), [(50, 50), (60, 35), (35, 60)])
@pytest.mark.parametrize("bandwidth", [0.01, 0.1, 0.3, 1.0])
def test_leave_one_out_equals_brute_force(n_source, n_target, bandwidth):
    source, target = populations(0, n_source, n_target)
    basis = Basis.of(source, target, target[:20], False, np.random.default_rng(0))
    problem = LeastSquares(basis, basis.prepare(source), basis.prepare(target))
    penalties = np.geomspace(1e-3, 1e3, 7)
    at_source = bumps(source, target[:20], bandwidth)
    at_target = bumps(target, target[:20], bandwidth)
    expected = [brute_force(at_source, at_target, penalty) for penalty in penalties]
    np.testing.assert_allclose(
        problem.leave_one_out(bandwidth, penalties), expected, rtol=0, atol=1e-10
    )


def test_leave_one_out_does_not_depend_on_how_rows_are_batched(monkeypatch):
    source, target = populations(1, 300, 200)
    basis = Basis.of(source, target, 30, True, np.random.default_rng(0))
    problem = LeastSquares(basis, basis.prepare(source), basis.prepare(target))
    penalties = np.geomspace(1e-3, 10, 5)
    whole = problem.leave_one_out(0.5, penalties)
    monkeypatch.setattr("calibrant.shift.ratios.least_squares._LEAVE_ONE_OUT_ROWS", 7)
    np.testing.assert_allclose(problem.leave_one_out(0.5, penalties), whole, rtol=0, atol=1e-12)


def test_weights_solve_the_normal_equations_for_given_centers_bandwidth_and_penalty():
    source, target = populations(2, 400, 300)
    centers = target[:40]
    ratio = ULSIF(centers=centers, bandwidth=0.3, penalty=0.05, standardize=False).fit(
        source, target
    )
    coefficients = fitted_coefficients(
        bumps(source, centers, 0.3), bumps(target, centers, 0.3), 0.05
    )
    rows = np.random.default_rng(3).uniform(size=(500, 3))
    np.testing.assert_allclose(
        ratio.predict(rows), bumps(rows, centers, 0.3) @ coefficients, rtol=0, atol=1e-11
    )


def test_the_best_of_the_grid_is_taken():
    source, target = populations(4, 300, 300)
    grid = {"bandwidth": np.geomspace(0.1, 3, 4), "penalty": np.geomspace(0.01, 1, 3)}
    ratio = ULSIF(**grid).fit(source, target)
    assert ratio.scores_.shape == (4, 3)
    row, column = np.unravel_index(ratio.scores_.argmin(), (4, 3))
    assert (ratio.bandwidth_, ratio.penalty_) == (grid["bandwidth"][row], grid["penalty"][column])
    single = (
        clone(ratio)
        .set_params(bandwidth=ratio.bandwidth_, penalty=ratio.penalty_)
        .fit(source, target)
    )
    np.testing.assert_array_equal(single.predict(source), ratio.predict(source))


@pytest.mark.broad
def test_threads_never_change_a_result():
    source, target = populations(5, 200, 200)
    expected = ULSIF(n_jobs=1).fit(source, target)
    for n_jobs in (None, 2, 5, -1):
        found = ULSIF(n_jobs=n_jobs).fit(source, target)
        np.testing.assert_array_equal(found.scores_, expected.scores_)
        np.testing.assert_array_equal(found.coef_, expected.coef_)


@pytest.mark.broad
def test_estimate_tends_to_the_true_ratio():
    errors = []
    for n in (200, 5000):
        source, target = populations(6, n, n)
        rows = np.random.default_rng(7).uniform(size=(4000, 3))
        found = [ULSIF(random_state=seed).fit(source, target).predict(rows) for seed in range(3)]
        errors.append(np.mean([np.square(weights - 8 * rows.prod(axis=1)) for weights in found]))
    assert errors[1] < errors[0]
    assert errors[1] < 0.2 * np.var(
        8 * rows.prod(axis=1)
    )  # which centres are drawn makes about .05 to .2 of it
