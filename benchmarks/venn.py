"""Venn-Abers side by side with the venn-abers package and scikit-learn's isotonic fit, in one run.

    python benchmarks/venn.py [--json FILE] [--rows 100000 1000000]

The venn-abers package is no dependency of calibrant: without it (``pip install venn-abers``) its
column stays empty.
"""

from __future__ import annotations

import argparse
import warnings
from importlib.util import find_spec

import numpy as np
from sklearn.isotonic import IsotonicRegression
from timing import best_of, machine, once, render, write_json

from calibrant import VennAbersCalibrator
from calibrant.calibrators import venn_abers

PACKAGE_ROWS = 200_000
"""Beyond so many rows a fit of the package takes too long to repeat."""


KINDS = ("distinct", "ties", "rare")
"""Distinct scores whose rates they are; the same rounded to three digits.

And distinct scores with few positives.
"""


def sample(rows: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=rows)
    y = (rng.uniform(size=rows) < (0.01 * scores if kind == "rare" else scores)).astype(np.uint8)
    return (np.round(scores, 3) if kind == "ties" else scores), y


def of_package(scores: np.ndarray, y: np.ndarray) -> object:
    from venn_abers.venn_abers import VennAbers

    fitted = VennAbers()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        fitted.fit(p_cal=np.column_stack([1 - scores, scores]), y_cal=y)
    return fitted


def forced(scores: np.ndarray, y: np.ndarray, *, compiled: bool) -> VennAbersCalibrator:
    """A whole fit with the pooling done by Python, or compiled by numba."""
    chosen = venn_abers.multiprobabilities
    venn_abers.multiprobabilities = lambda counts, positives: chosen(
        counts, positives, compiled=compiled
    )
    try:
        return VennAbersCalibrator().fit(scores, y)
    finally:
        venn_abers.multiprobabilities = chosen


def largest_difference(scores: np.ndarray, y: np.ndarray) -> float:
    points = np.concatenate([scores[:10_000], np.linspace(0, 1, 10_001)])
    with np.errstate(all="ignore"):
        _, theirs = of_package(scores, y).predict_proba(
            p_test=np.column_stack([1 - points, points])
        )
    return float(
        np.abs(VennAbersCalibrator().fit(scores, y).predict_multiprobability(points) - theirs).max()
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json")
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    arguments = parser.parse_args()
    has_package = find_spec("venn_abers") is not None
    has_numba = find_spec("numba") is not None
    results = []
    lines = []
    for rows in arguments.rows:
        for kind in KINDS:
            scores, y = sample(rows, kind)
            ways = {
                "isotonic": (
                    lambda s=scores, y=y: IsotonicRegression(out_of_bounds="clip").fit(s, y)
                ),
                "python": lambda s=scores, y=y: forced(s, y, compiled=False),
            }
            if has_numba:
                ways["numba"] = lambda s=scores, y=y: forced(s, y, compiled=True)
            if has_package and rows <= PACKAGE_ROWS:
                ways["package"] = lambda s=scores, y=y: of_package(s, y)
            ns = best_of(ways, rows, rounds=3)
            fitted = VennAbersCalibrator().fit(scores, y)
            isotonic = IsotonicRegression(out_of_bounds="clip").fit(scores, y)
            look_up = best_of(
                {
                    "predict": lambda f=fitted, s=scores: f.predict(s),
                    "isotonic predict": lambda f=isotonic, s=scores: f.predict(s),
                },
                rows,
                rounds=3,
            )
            difference = largest_difference(scores, y) if "package" in ways else None
            results.append(
                {
                    "rows": rows,
                    "kind": kind,
                    "steps": int(fitted.cuts_.size),
                    "difference": difference,
                    "ns": {**ns, **look_up},
                }
            )
            best = ns.get("numba", ns["python"])
            lines.append(
                [
                    f"{rows:,} {kind}",
                    *(
                        f"{ns[way] * rows / 1e6:.1f}" if way in ns else "-"
                        for way in ("package", "isotonic", "python", "numba")
                    ),
                    f"{ns['package'] / best:.0f}x" if "package" in ns else "-",
                    f"{ns['isotonic'] / best:.1f}x",
                    f"{fitted.cuts_.size:,}",
                    f"{look_up['predict']:.0f} / {look_up['isotonic predict']:.0f}",
                    "-" if difference is None else f"{difference:.0e}",
                ]
            )
    header = [
        "rows",
        "venn-abers",
        "isotonic",
        "ours, Python",
        "ours, numba",
        "to venn-abers",
        "to isotonic",
        "steps",
    ]
    header += ["predict ns, isotonic", "difference"]
    print("Milliseconds of a fit, best of 3; predict is ours / scikit-learn's isotonic\n")
    print(render(header, lines))
    seconds = once(lambda: VennAbersCalibrator().fit(*sample(1_000_000, "distinct")))
    print(f"\nA fit of 1,000,000 rows with default settings: {seconds:.2f} s")
    write_json(arguments.json, {"machine": machine(), "results": results})


if __name__ == "__main__":
    main()
