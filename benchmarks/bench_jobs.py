"""The jobs of `benchmarks/bench.py`: what calibrant does, and what a peer or a floor does with the
same rows.

Peers that are not installed are left out: netcal, uncertainty-calibration and confseq are no
dependencies of the project.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from shapes import make as shaped

import calibrant

Array = NDArray[Any]
FEW = (10**4, 10**5)
SOME = (10**4, 10**5, 10**6)
MANY = (10**4, 10**5, 10**6, 10**7)
N_BINS = 15


@dataclass(frozen=True)
class Job:
    """What is timed, what it is compared with, and the bytes of its input."""

    ours: Callable[[], object]
    peer: Callable[[], object] | None = None
    peer_name: str = ""
    input_bytes: int = 0


Make: TypeAlias = Callable[[int], Job]
JOBS: dict[str, tuple[tuple[int, ...], Make]] = {}
"""The sizes of a job, and how it is made for one of them, by name."""


def job(name: str, sizes: tuple[int, ...]) -> Callable[[Make], Make]:
    """Add a job to the table."""

    def add(make: Make) -> Make:
        JOBS[name] = (sizes, make)
        return make

    return add


def rows(n: int) -> tuple[Array, Array]:
    """Scores, and labels whose rate is near the score."""
    rng = np.random.default_rng(0)
    scores = rng.beta(1.5, 3.0, n)
    return scores, (rng.random(n) < scores**1.1).astype(np.uint8)


def size_of(*arrays: Array) -> int:
    """The bytes of some arrays."""
    return sum(array.nbytes for array in arrays)


def textbook(scores: Array, labels: Array) -> Array:
    """Quantile bins as textbooks have them."""
    edges = np.quantile(scores, np.arange(1, N_BINS) / N_BINS)
    cell = np.searchsorted(edges, scores, side="right")
    return np.bincount(cell, labels, N_BINS) / np.bincount(cell, minlength=N_BINS)


def isotonic() -> Any:
    """scikit-learn's isotonic regression."""
    from sklearn.isotonic import IsotonicRegression

    return IsotonicRegression(out_of_bounds="clip")


# Fits in memory.


@job("fit bins", (*MANY, 2 * 10**7))
def fit_bins(n: int) -> Job:
    scores, y = rows(n)
    ours = partial(calibrant.BinningCalibrator(N_BINS).fit, scores, y)
    return Job(ours, partial(textbook, scores, y), "textbook numpy", size_of(scores, y))


def _fit_bins_of(shape: str, n: int) -> Job:
    scores, y = shaped(shape, n)
    ours = partial(calibrant.BinningCalibrator(N_BINS).fit, scores, y)
    return Job(ours, partial(textbook, scores, y), "textbook numpy", size_of(scores, y))


for _shape in ("skewed", "two-decimal", "half-zero", "sorted", "logits", "outliers", "float32"):
    job(f"fit bins, {_shape} scores", SOME)(partial(_fit_bins_of, _shape))


@job("fit bins, beside scikit-learn", SOME)
def fit_bins_scikit_learn(n: int) -> Job:
    from sklearn.preprocessing import KBinsDiscretizer

    scores, y = rows(n)

    def theirs() -> object:
        kind = {"strategy": "quantile", "quantile_method": "averaged_inverted_cdf"}
        bins = KBinsDiscretizer(N_BINS, encode="ordinal", subsample=None, **kind)
        cell = bins.fit_transform(scores[:, None]).ravel().astype(int)
        return np.bincount(cell, y, N_BINS) / np.bincount(cell, minlength=N_BINS)

    ours = partial(calibrant.BinningCalibrator(N_BINS).fit, scores, y)
    return Job(ours, theirs, "KBinsDiscretizer", size_of(scores, y))


def fit_bins_netcal(n: int) -> Job:
    from netcal.binning import HistogramBinning

    scores, y = rows(n)
    theirs = HistogramBinning(N_BINS, equal_intervals=False)
    ours = partial(calibrant.BinningCalibrator(N_BINS).fit, scores, y)
    return Job(ours, partial(theirs.fit, scores, y), "netcal", size_of(scores, y))


def fit_bins_uncertainty(n: int) -> Job:
    from calibration import HistogramCalibrator

    scores, y = rows(n)
    theirs = HistogramCalibrator(n, N_BINS)
    ours = partial(calibrant.BinningCalibrator(N_BINS).fit, scores, y)
    other = partial(theirs.train_calibration, scores, y)
    return Job(ours, other, "uncertainty-calibration", size_of(scores, y))


if find_spec("netcal"):
    job("fit bins, beside netcal", FEW)(fit_bins_netcal)
if find_spec("calibration"):
    job("fit bins, beside uncertainty-calibration", FEW)(fit_bins_uncertainty)


@job("fit default curve", SOME)
def fit_curve(n: int) -> Job:
    scores, y = rows(n)
    ours = partial(calibrant.Calibrator().fit, scores, y)
    return Job(ours, lambda: isotonic().fit(scores, y), "isotonic", size_of(scores, y))


@job("fit default curve, 100 segments", SOME[:2])
def fit_segments(n: int) -> Job:
    scores, y = rows(n)
    segments = np.arange(n) % 100
    ours = partial(calibrant.Calibrator().fit, scores, y, segments=segments)
    bins = partial(calibrant.BinningCalibrator().fit, scores, y, segments=segments)
    return Job(ours, bins, "bins with segments", size_of(scores, y, segments))


@job("fit bins, groups of 10 rows", SOME)
def fit_groups(n: int) -> Job:
    scores, y = rows(n)
    groups = np.arange(n) // 10
    ours = partial(calibrant.BinningCalibrator().fit, scores, y, groups=groups)
    return Job(
        ours, partial(textbook, scores, y), "textbook without groups", size_of(scores, y, groups)
    )


def _fit_other(kind: str, n: int) -> Job:
    scores, y = rows(n)
    ours = partial(getattr(calibrant, kind)().fit, scores, y)
    return Job(ours, lambda: isotonic().fit(scores, y), "isotonic", size_of(scores, y))


for _kind in (
    "BetaCalibrator",
    "IsotonicCalibrator",
    "PlattCalibrator",
    "TemperatureCalibrator",
    "VennAbersCalibrator",
):
    job(f"fit {_kind}", SOME)(partial(_fit_other, _kind))


# Predictions.


def _predict(kind: str, method: str, n: int) -> Job:
    scores, y = rows(n)
    fitted = getattr(calibrant, kind)().fit(scores[: 10**5], y[: 10**5])
    return Job(partial(getattr(fitted, method), scores), scores.copy, "a copy", size_of(scores))


job("predict, bins", MANY)(partial(_predict, "BinningCalibrator", "predict"))
job("predict, curve", MANY)(partial(_predict, "Calibrator", "predict"))
job("predict_interval, curve", MANY)(partial(_predict, "Calibrator", "predict_interval"))
job("predict_proba, curve", MANY)(partial(_predict, "Calibrator", "predict_proba"))


@job("predict, curve, beside isotonic", SOME)
def predict_isotonic(n: int) -> Job:
    scores, y = rows(n)
    fitted = calibrant.Calibrator().fit(scores[: 10**5], y[: 10**5])
    theirs = isotonic().fit(scores[: 10**5], y[: 10**5])
    ours = partial(fitted.predict, scores)
    return Job(ours, partial(theirs.predict, scores), "isotonic", size_of(scores))


def _predict_one(kind: str, n: int) -> Job:
    scores, y = rows(10**4)
    fitted = getattr(calibrant, kind)().fit(scores, y)
    theirs = isotonic().fit(scores, y)
    one = np.array([0.3])
    return Job(partial(fitted.predict, one), partial(theirs.predict, one), "isotonic")


job("predict one row, bins", (1,))(partial(_predict_one, "BinningCalibrator"))
job("predict one row, curve", (1,))(partial(_predict_one, "Calibrator"))


# Questions about rows in memory.


@job("audit", SOME)
def audit(n: int) -> Job:
    scores, y = rows(n)
    floor = partial(np.sort, scores)
    return Job(partial(calibrant.audit, y, scores), floor, "a sort", size_of(scores, y))


@job("check", SOME[:2])
def check(n: int) -> Job:
    scores, y = rows(n)
    floor = partial(np.sort, scores)
    return Job(partial(calibrant.check, y, scores), floor, "a sort", size_of(scores, y))


@job("threshold", SOME)
def threshold(n: int) -> Job:
    scores, y = rows(n)
    ours = partial(calibrant.threshold, y, scores, precision=0.6)
    return Job(ours, partial(np.sort, scores), "a sort", size_of(scores, y))


@job("validation_table", SOME)
def validation_table(n: int) -> Job:
    scores, y = rows(n)
    ours = partial(calibrant.validation_table, y, scores)
    return Job(ours, partial(np.sort, scores), "a sort", size_of(scores, y))


@job("compare_models", SOME)
def compare_models(n: int) -> Job:
    scores, y = rows(n)
    ours = partial(calibrant.compare_models, y, {"a": scores, "b": np.sqrt(scores)})
    return Job(ours, partial(np.sort, scores), "a sort", size_of(scores, y))


@job("net_benefit", SOME)
def net_benefit(n: int) -> Job:
    scores, y = rows(n)
    ours = partial(calibrant.net_benefit, y, scores)
    return Job(ours, partial(np.sort, scores), "a sort", size_of(scores, y))


@job("ece", SOME)
def ece(n: int) -> Job:
    from calibrant.metrics import ece as measured

    scores, y = rows(n)
    return Job(
        partial(measured, y, scores),
        partial(textbook, scores, y),
        "textbook numpy",
        size_of(scores, y),
    )


@job("rate, 1,000 labels", MANY)
def rate(n: int) -> Job:
    scores, truth = rows(n)
    y = np.full(n, np.nan)
    drawn = np.random.default_rng(1).choice(n, 1000, replace=False)
    y[drawn] = truth[drawn]
    ours = partial(calibrant.rate, y, scores)
    return Job(ours, partial(np.sort, scores), "a sort", size_of(scores, y))


# Files, beside DuckDB's count of the same rows.


_FOLDER = tempfile.TemporaryDirectory(prefix="calibrant-bench-")


def parquet(n: int) -> Path:
    """A file of n rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(_FOLDER.name) / f"{n}.parquet"
    scores, y = rows(n)
    pq.write_table(pa.table({"p": scores, "y": y}), path, row_group_size=1 << 20)
    return path


def duckdb_count(path: Path) -> object:
    """Rows and positives in bins of equal width."""
    import duckdb

    bins = "least(floor(p * 100), 99)::INTEGER"
    query = f"SELECT {bins} AS b, count(*), sum(y) FROM '{path}' GROUP BY b"
    return duckdb.sql(query).fetchall()


def _on_file(ask: Callable[[Any], object], n: int) -> Job:
    path = parquet(n)

    def ours() -> object:
        return ask(calibrant.scored(str(path), score="p", label="y", progress=False))

    return Job(ours, partial(duckdb_count, path), "DuckDB's count", path.stat().st_size)


_ON_FILES: dict[str, Callable[[Any], object]] = {
    "fit 100 bins": lambda data: calibrant.BinningCalibrator(100).fit(data),
    "fit default curve": lambda data: calibrant.Calibrator().fit(data),
    "audit": calibrant.audit,
    "threshold": lambda data: calibrant.threshold(data, precision=0.6),
}
for _question, _ask in _ON_FILES.items():
    job(f"Parquet: {_question}", (10**5, 10**6, 10**7))(partial(_on_file, _ask))


@job("Parquet: check", (10**5, 10**6))
def check_file(n: int) -> Job:
    return _on_file(calibrant.check, n)


@job("Parquet: validation_table", (10**5, 10**6))
def validation_of_file(n: int) -> Job:
    return _on_file(calibrant.validation_table, n)


@job("CSV: fit 100 bins", (10**5, 10**6))
def fit_csv(n: int) -> Job:
    import pyarrow as pa
    import pyarrow.csv as csv

    scores, y = rows(n)
    path = Path(_FOLDER.name) / f"{n}.csv"
    csv.write_csv(pa.table({"p": scores, "y": y}), path)

    def ours() -> object:
        data = calibrant.scored(str(path), score="p", label="y", progress=False)
        return calibrant.BinningCalibrator(100).fit(data)

    return Job(ours, partial(csv.read_csv, path), "pyarrow reads it", path.stat().st_size)


# Kernels, streams and a new process.


@job("kernel: order statistics, 99", MANY)
def order_statistics(n: int) -> Job:
    from calibrant.kernels import order_statistics as ours

    scores, _ = rows(n)
    ranks = np.ceil(np.arange(1, 100) * n / 100).astype(np.int64)
    quantiles = partial(np.quantile, scores, np.arange(1, 100) / 100)
    return Job(partial(ours, scores, ranks), quantiles, "np.quantile", size_of(scores))


@job("kernel: count, 100 bins", MANY)
def count(n: int) -> Job:
    from calibrant.kernels import count as ours

    scores, y = rows(n)
    edges = np.arange(1, 100) / 100

    def theirs() -> object:
        cell = np.searchsorted(edges, scores, side="right")
        return np.bincount(cell, minlength=100), np.bincount(cell, y, 100)

    return Job(partial(ours, scores, y, edges), theirs, "textbook numpy", size_of(scores, y))


@job("stream: a batch of labels", (*MANY,))
def stream_batch(n: int) -> Job:
    scores, y = rows(n)
    bins = calibrant.Partition.fixed_width(N_BINS)
    online = calibrant.OnlineCalibrator(bins)
    tally = partial(bins.count, scores, y)
    return Job(partial(online.partial_fit, scores, y), tally, "a tally", size_of(scores, y))


@job("stream: one label at a time", (1,))
def stream_one(n: int) -> Job:
    online = calibrant.OnlineCalibrator(calibrant.Partition.fixed_width(N_BINS))
    online.partial_fit([0.5], [1])
    return Job(partial(online.partial_fit, [0.5], [1]))


@job("stream: limits after each label", (10**3, 10**4))
def stream_path(n: int) -> Job:
    from calibrant.sequences import CentredBetaBinomial

    _, y = rows(n)
    ours = partial(CentredBetaBinomial.path, y, 0.1)
    if not find_spec("confseq"):
        return Job(ours, input_bytes=size_of(y))
    from confseq import boundaries

    variance = np.arange(1, n + 1) * 0.25
    theirs = partial(boundaries.beta_binomial_mixture_bound, variance, 0.1, 25.0, 0.5, 0.5)
    return Job(ours, theirs, "confseq", size_of(y))


def _child(code: str) -> Callable[[], object]:
    """Run code in a new process, whose time counts as ours."""

    def run() -> object:
        return subprocess.run([sys.executable, "-c", code], check=True)

    return run


@job("new process: load a model, predict", (1,))
def new_process(n: int) -> Job:
    scores, y = rows(10**4)
    path = Path(_FOLDER.name) / "model.json"
    calibrant.save_model(calibrant.Calibrator().fit(scores, y), str(path))
    ours = f"from calibrant import load_model; load_model({str(path)!r}).predict([0.3])"
    return Job(_child(ours), _child("import numpy, scipy.special"), "numpy, scipy.special")


warnings.simplefilter("ignore")  # of the peers
