"""A fit and its predictions on a GPU: the same as in memory, bit for bit, and how long 10^9 rows
take.

python benchmarks/device_fit.py [--rows 1000000000]
"""

import argparse
import time
from functools import partial
from statistics import median

import numpy as np
import torch

from calibrant import BinningCalibrator, Calibrator, Partition, audit, scored

FITS = {
    "the default": {},
    "100 given bins": {"partition": Partition.from_edges(np.linspace(0.01, 0.99, 99))},
    "100 quantile bins": {"n_bins": 100},
    "100 quantile bins of all rows": {"n_bins": 100, "pilot": None},
    "50 bins of equal width": {"n_bins": 50, "partition": "uniform"},
}


CURVES = {"the default curve": {}, "a beta curve": {"curve": "beta"}}
PREDICTIONS = ("predict", "predict_proba", "predict_interval", "predict_set")


def check(to_device, to_host, rows: int = 3_000_000) -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=rows).astype(np.float32)
    y = (rng.uniform(size=rows) < scores**2).astype(np.uint8)
    there = {"p": to_device(scores), "y": to_device(y)}
    kinds = [(BinningCalibrator, FITS), (Calibrator, CURVES)]
    for kind, fits in kinds:
        for name, parameters in fits.items():
            near = kind(**parameters).fit(scores, y)
            far = kind(**parameters).fit(there["p"], there["y"])
            assert far.to_dict() == near.to_dict(), name
            for method in PREDICTIONS:
                got = to_host(getattr(far, method)(there["p"]))
                want = getattr(near, method)(scores)
                np.testing.assert_array_equal(got, want, err_msg=f"{name}: {method}")
    data = scored(there, score="p", label="y")
    split = BinningCalibrator(n_bins=20, pilot=100_000, random_state=0).fit(data)
    assert split.tally_.n_rows < rows
    np.testing.assert_array_equal(audit(data).table.counts, audit(y, scores).table.counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10**9)
    rows = parser.parse_args().rows
    check(lambda values: torch.from_numpy(values).cuda(), lambda tensor: tensor.cpu().numpy())
    print("torch: the same as in memory")
    try:
        import cupy
    except ImportError:
        print("CuPy is not installed")
    else:
        check(cupy.asarray, cupy.asnumpy)
        print("CuPy: the same as in memory")
    scores = torch.rand(rows, device="cuda")
    y = (torch.rand(rows, device="cuda") < scores).to(torch.uint8)
    for name, parameters in FITS.items():
        fitted = timed(BinningCalibrator(**parameters), scores, y, name)
    predictions(fitted, scores)
    for part in (rows // 10, rows):
        for name, parameters in CURVES.items():
            fitted = timed(Calibrator(**parameters), scores[:part], y[:part], name, 2)
        predictions(fitted, scores)
        predictions(fitted, scores.double())
    print(f"10 bins, epsilon of tied float32 over that of untied float64 scores: {ties(rows):.3f}")


def timed(calibrator, scores, y, name: str, repeats: int = 5):
    """Fit, and print how long that takes."""
    times = [seconds(lambda: calibrator.fit(scores, y)) for _ in range(repeats + 1)]
    epsilon = calibrator.guarantee_.epsilon
    rows = f"{scores.shape[0]:.0e} rows"
    print(f"{name}, {rows}: fit {1e3 * median(times[1:]):.1f} ms, epsilon {epsilon:.2g}")
    return calibrator


def predictions(fitted, scores) -> None:
    """Print how long predictions take, beside a copy of the scores."""
    copy = median(seconds(scores.clone) for _ in range(5))
    for method in ("predict", "predict_interval"):
        predict = partial(getattr(fitted, method), scores)
        times = [seconds(predict) for _ in range(5)]
        took = median(times[1:])
        words = f"{method} of {scores.shape[0]:.0e} {scores.dtype} scores"
        print(f"  {words}: {1e3 * took:.1f} ms, {took / copy:.1f} copies", flush=True)


def seconds(work) -> float:
    """How long some work takes."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    found = work()
    torch.cuda.synchronize()
    took = time.perf_counter() - start
    del found
    return took


def ties(rows: int, seeds: int = 5) -> float:
    """Mean epsilon of scores rounded to float32, over that of the same scores before."""
    rounded = []
    exact = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        scores = torch.rand(rows, device="cuda", dtype=torch.float64)
        y = (torch.rand(rows, device="cuda") < scores).to(torch.uint8)
        exact.append(BinningCalibrator(10, random_state=seed).fit(scores, y).guarantee_.epsilon)
        rounded.append(
            BinningCalibrator(10, random_state=seed).fit(scores.float(), y).guarantee_.epsilon
        )
    return float(np.mean(rounded) / np.mean(exact))


if __name__ == "__main__":
    main()
