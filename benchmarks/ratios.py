"""uLSIF against the package densratio, in one run: python benchmarks/ratios.py [--path DIR] [--json
FILE].

The paper's size: 2,000 source and 2,000 target rows in 3 columns, 100 centres, 25 bandwidths x 100
penalties. densratio takes minutes for the grid, so it is timed on a few points of it and scaled up;
every point costs it the same. Both take turns, with one thread of linear algebra and with all; the
best round counts. Prints too how far its weights are from ours for the same centres, bandwidth and
penalty, and how far each leave-one-out score is from leaving one out by hand.

densratio is no dependency: install it beside the project, say with pip install --target DIR
densratio.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from timing import machine, once, render, write_json

from calibrant.ratios import ULSIF
from calibrant.shift.ratios.least_squares import Basis, LeastSquares

Array = NDArray[np.float64]
BANDWIDTHS = np.geomspace(1e-2, 1e2, 25)
PENALTIES = np.geomspace(1e-3, 1e3, 100)
SOME_BANDWIDTHS = [0.1, 1.0]
SOME_PENALTIES = [0.01, 1.0, 100.0]
N_ROWS = 2_000
N_WEIGHED = 1_000_000


def populations(n: int = N_ROWS, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(n, 3)), rng.beta(2.0, 1.0, size=(n, 3))


def by_hand(at_source: Array, at_target: Array, penalty: float) -> float:
    """The leave-one-out score, by leaving one out."""
    total = 0.0
    n = len(at_source)
    for i in range(n):
        source = np.delete(at_source, i, axis=0)
        target = np.delete(at_target, i, axis=0)
        matrix = source.T @ source / (n - 1) + penalty * np.eye(source.shape[1])
        coefficients = np.maximum(np.linalg.solve(matrix, target.mean(axis=0)), 0.0)
        total += 0.5 * (at_source[i] @ coefficients) ** 2 - at_target[i] @ coefficients
    return total / n


def their_score(
    peer: Any, source: Array, target: Array, centers: Array, bandwidth: float, penalty: float
) -> float:
    """The peer's leave-one-out score, which it only prints."""
    import contextlib
    import io

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        peer.search_sigma_and_lambda(target, source, 0.0, centers, [bandwidth], [penalty], True)
    return float(printed.getvalue().rsplit("=", 1)[1])


def agreement(peer: Any) -> dict[str, float]:
    source, target = populations(60)
    centers = target[:20]
    bandwidth = 0.4
    penalty = 0.05
    np.random.seed(0)  # noqa: NPY002 - densratio draws its centres from the global state; all rows are centres here
    theirs = peer.RuLSIF(centers, source, 0.0, [bandwidth], [penalty], kernel_num=20, verbose=False)
    ours = ULSIF(
        centers=theirs.kernel_info.centers,
        bandwidth=bandwidth,
        penalty=penalty,
        standardize=False,
    )
    ours.fit(source, centers)
    weights = np.abs(ours.predict(source) - np.ravel(theirs.compute_density_ratio(source))).max()
    basis = Basis.of(source, target, centers, False, np.random.default_rng(0))
    problem = LeastSquares(basis, basis.prepare(source), basis.prepare(target))
    exact = by_hand(
        basis.values(problem.source, bandwidth), basis.values(problem.target, bandwidth), penalty
    )
    return {
        "weights, ours and densratio's": float(weights),
        "leave-one-out score, ours and by hand": abs(
            float(problem.leave_one_out(bandwidth, np.array([penalty]))[0]) - exact
        ),
        "leave-one-out score, densratio's and by hand": abs(
            their_score(peer, source, target, centers, bandwidth, penalty) - exact
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--path", help="where densratio was installed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if arguments.path is not None:
        sys.path.insert(0, arguments.path)
    try:
        from densratio import RuLSIF as _  # noqa: F401

        peer = sys.modules["densratio.RuLSIF"]
    except ImportError:
        sys.exit("densratio is not installed: pip install --target DIR densratio, then --path DIR")
    source, target = populations()
    centers = target[:100]
    grid = {"bandwidth": BANDWIDTHS, "penalty": PENALTIES, "standardize": False}
    seconds = {
        "densratio": np.inf,
        "calibrant, one thread": np.inf,
        "calibrant, every core": np.inf,
    }
    scale = BANDWIDTHS.size * PENALTIES.size / (len(SOME_BANDWIDTHS) * len(SOME_PENALTIES))
    for _round in range(arguments.rounds):
        for threads in (
            1,
            None,
        ):  # on a busy machine one thread is faster than two that wait for each other
            with threadpool_limits(threads, user_api="blas"):
                took = once(
                    lambda: peer.search_sigma_and_lambda(
                        target, source, 0.0, centers, SOME_BANDWIDTHS, SOME_PENALTIES, False
                    )
                )
            seconds["densratio"] = min(seconds["densratio"], scale * took)
        for name, n_jobs in (("calibrant, one thread", 1), ("calibrant, every core", -1)):
            ratio = ULSIF(centers=centers, n_jobs=n_jobs, **grid)
            seconds[name] = min(seconds[name], once(lambda ratio=ratio: ratio.fit(source, target)))
    rows = np.random.default_rng(1).uniform(size=(N_WEIGHED, 3))
    weighing = min(once(lambda: ratio.predict(rows)) for _round in range(arguments.rounds))
    differences = agreement(peer)
    print(" ".join(f"{key} {value}" for key, value in machine().items()))
    lines = [
        [name, f"{value:.2f}", f"{seconds['densratio'] / value:.1f}x"]
        for name, value in seconds.items()
    ]
    print(
        "\n"
        + render(
            [
                f"grid of {BANDWIDTHS.size} x {PENALTIES.size}, {N_ROWS:,} + {N_ROWS:,} rows",
                "s",
                "faster",
            ],
            lines,
        )
    )
    print(f"\nweighing {N_WEIGHED:,} rows: {weighing:.2f} s\n")
    print(
        render(
            ["largest difference", ""],
            [[name, f"{value:.1e}"] for name, value in differences.items()],
        )
    )
    report = {
        "machine": machine(),
        "seconds": seconds,
        "weighing_seconds": weighing,
        "differences": differences,
    }
    write_json(arguments.json, report)


if __name__ == "__main__":
    main()
