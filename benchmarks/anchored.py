"""The default calibrator beside plain bins and scikit-learn's isotonic fit, in one run: python
benchmarks/anchored.py.

Targets, as ratios of times that are measured in turns: at 10^6 rows a fit takes at most as long as
an isotonic fit with numpy alone, and half of it with numba; predictions take at most a quarter of
its predictions; one row takes at most 1.3 times what plain bins take. Fits are measured in
processor time.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.isotonic import IsotonicRegression
from timing import best_of, machine, processor_medians, render, write_json

from calibrant import AnchoredCalibrator, BinningCalibrator, kernels

ONE_ROW_CALLS = 200


def time_fits(scores: np.ndarray, y: np.ndarray) -> None:
    """Print how long fits of these rows take, over an isotonic fit."""
    rows = kernels.NUMBA_ROWS

    def numpy_alone() -> None:
        kernels.NUMBA_ROWS = 10**18
        AnchoredCalibrator().fit(scores, y)

    def with_numba() -> None:
        kernels.NUMBA_ROWS = rows
        AnchoredCalibrator().fit(scores, y)

    seconds = processor_medians(
        {
            "isotonic": lambda: IsotonicRegression(out_of_bounds="clip").fit(scores, y),
            "numpy": numpy_alone,
            "numba": with_numba,
            "bins": lambda: BinningCalibrator().fit(scores, y),
        }
    )
    lines = [
        [name, f"{1e3 * taken:.1f}", f"{taken / seconds['isotonic']:.2f}"]
        for name, taken in seconds.items()
    ]
    print(render([f"fit of {scores.size:,} rows", "ms", "of isotonic"], lines), "\n")


def main() -> None:
    """Time them, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=options.rows)
    y = (rng.uniform(size=options.rows) < scores**2).astype(int)
    isotonic = IsotonicRegression(out_of_bounds="clip").fit(scores, y)
    anchored = AnchoredCalibrator().fit(scores, y)
    bins = BinningCalibrator().fit(scores, y)
    one = np.array([0.3])
    time_fits(scores, y)
    predictions = best_of(
        {
            "isotonic": lambda: isotonic.predict(scores),
            "anchored": lambda: anchored.predict(scores),
            "bins": lambda: bins.predict(scores),
        },
        options.rows,
    )
    single = best_of(
        {
            "isotonic": lambda: [isotonic.predict(one) for _ in range(ONE_ROW_CALLS)],
            "anchored": lambda: [anchored.predict(one) for _ in range(ONE_ROW_CALLS)],
            "bins": lambda: [bins.predict(one) for _ in range(ONE_ROW_CALLS)],
        },
        ONE_ROW_CALLS,
        rounds=15,
    )
    rows = {
        "predict": (predictions, "isotonic", 0.25),
        "one row": (single, "bins", 1.3),
    }
    lines = [
        [
            name,
            *(f"{ns[way]:,.1f}" for way in ("isotonic", "anchored", "bins")),
            f"{ns['anchored'] / ns[base]:.2f}",
            f"{most} of {base}",
        ]
        for name, (ns, base, most) in rows.items()
    ]
    print(render(["ns a row", "isotonic", "anchored", "bins", "ratio", "at most"], lines))
    write_json(
        options.json, {"machine": machine(), **{name: ns for name, (ns, _, _) in rows.items()}}
    )


if __name__ == "__main__":
    main()
