"""The default calibrator beside plain bins and scikit-learn's isotonic fit, in one run: python
benchmarks/anchored.py.

Targets, as ratios of times that are measured in turns: at 10^6 rows a fit takes at most half of an
isotonic fit, and predictions at most a quarter of its predictions; one row takes at most 1.3 times
what plain bins take.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.isotonic import IsotonicRegression
from timing import best_of, machine, render, write_json

from calibrant import AnchoredCalibrator, BinningCalibrator

ONE_ROW_CALLS = 200


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
    fits = best_of(
        {
            "isotonic": lambda: IsotonicRegression(out_of_bounds="clip").fit(scores, y),
            "anchored": lambda: AnchoredCalibrator().fit(scores, y),
            "bins": lambda: BinningCalibrator().fit(scores, y),
        },
        options.rows,
    )
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
        "fit": (fits, "isotonic", 0.5),
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
