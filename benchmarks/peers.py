"""The fit of quantile bins, from scores and labels to predictions: calibrant beside the packages
people use today.

The peers are no dependencies of the project. Install them beside it and run this in that
environment:

    python -m venv peers
    peers/bin/pip install -e '.[bench]' netcal uncertainty-calibration probmetrics
    peers/bin/python benchmarks/peers.py

All fit 15 bins to the same rows in one run, in turns, on one thread; peers that are not installed
are left out. What is timed of calibrant is the whole of `BinningCalibrator.fit`: checks, edges,
counts, exact intervals and the guarantee.
"""

import argparse
import warnings
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
from timing import best_of, once, render

from calibrant import BinningCalibrator, kernels

N_BINS = 15


def textbook(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    edges = np.quantile(scores, np.arange(1, N_BINS) / N_BINS)
    cell = np.searchsorted(edges, scores, side="right")
    return np.bincount(cell, labels, N_BINS) / np.bincount(cell, minlength=N_BINS)


def scikit_learn(scores: np.ndarray, labels: np.ndarray) -> object:
    from sklearn.preprocessing import KBinsDiscretizer

    bins = KBinsDiscretizer(
        N_BINS,
        encode="ordinal",
        strategy="quantile",
        subsample=None,
        quantile_method="averaged_inverted_cdf",
    )
    cell = bins.fit_transform(scores[:, None]).ravel().astype(int)
    return np.bincount(cell, labels, N_BINS) / np.bincount(cell, minlength=N_BINS)


def netcal(scores: np.ndarray, labels: np.ndarray) -> object:
    from netcal.binning import HistogramBinning

    return HistogramBinning(N_BINS, equal_intervals=False).fit(scores, labels)


def uncertainty_calibration(scores: np.ndarray, labels: np.ndarray) -> object:
    from calibration import HistogramCalibrator

    calibrator = HistogramCalibrator(len(scores), N_BINS)
    calibrator.train_calibration(scores, labels)
    return calibrator


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=rows)
    labels = (rng.uniform(size=rows) < scores).astype(np.uint8)

    def ours(numba_from: float) -> Callable[[], object]:
        def fit() -> object:
            kernels.NUMBA_ROWS = numba_from
            return BinningCalibrator(N_BINS).fit(scores, labels)

        return fit

    quick = {
        "calibrant, numpy alone": ours(float("inf")),
        "calibrant, with numba": ours(1),
        "textbook numpy": lambda: textbook(scores, labels),
        "scikit-learn KBinsDiscretizer": lambda: scikit_learn(scores, labels),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the peers
        times = best_of(quick, rows)
        for name, way in {"netcal": netcal, "calibration": uncertainty_calibration}.items():
            if find_spec(name):
                label = {"calibration": "uncertainty-calibration"}.get(name, name)
                times[label] = once(lambda way=way: way(scores, labels)) / rows * 1e9
    lines = [
        [
            name,
            f"{value:,.1f}",
            f"{value / times['calibrant, numpy alone']:,.1f}x",
            f"{value / times['calibrant, with numba']:,.1f}x",
        ]
        for name, value in times.items()
    ]
    print(f"Fit of {N_BINS} quantile bins to {rows:,} rows")
    print(render(["", "ns a row", "numpy is faster", "numba is faster"], lines))


if __name__ == "__main__":
    main()
