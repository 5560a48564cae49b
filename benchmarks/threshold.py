"""Thresholds with a proved precision: how much is selected, and how often the guarantee is broken.

calibrant is run beside MAPIE's `BinaryClassificationController` on the same rows. MAPIE is no
dependency of the project. Install it beside calibrant and run this in that environment:

    python -m venv peers
    peers/bin/pip install -e . mapie
    peers/bin/python benchmarks/threshold.py

Peers that are not installed are left out. The truth is known in each world, so broken guarantees are
counted: the true precision at the threshold is below the target. With 90% confidence a tenth of
the runs may be broken; the column "p" is the probability of at least so many if a tenth is the
truth. Where the rate is the score, an oracle selects 0.4 of the rows, and the column "aim" is what
a first prototype selected. MAPIE tests 100 thresholds, as by default. Its fixed sequence begins at
0.9, as does calibrant with a start, and its split sequence learns the order from 15% of the rows,
as many as calibrant draws for a look.
"""

import argparse
import warnings
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
from scipy.stats import binom

from calibrant import threshold

TARGET = 0.8
CONFIDENCE = 0.9
FINE = (np.arange(200_000) + 0.5) / 200_000
WORLDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "rate = score": lambda s: s,
    "falls at the top": lambda s: np.where(s > 0.97, 0.6, np.minimum(1.1 * s, 0.97)),
    "target on a stretch": lambda s: np.where(s > 0.9, 0.95, np.where(s > 0.5, 0.8, 0.2 * s)),
}
AIM = {500: 0.244, 2_000: 0.338, 10_000: 0.371, 100_000: 0.387}  # where the rate is the score


def ranks(y: np.ndarray, scores: np.ndarray, seed: int) -> float | None:
    return threshold(
        y, scores, precision=TARGET, confidence_level=CONFIDENCE, random_state=seed
    ).threshold


def start(y: np.ndarray, scores: np.ndarray, seed: int) -> float | None:
    return threshold(y, scores, precision=TARGET, confidence_level=CONFIDENCE, start=0.9).threshold


def look(y: np.ndarray, scores: np.ndarray, seed: int) -> float | None:
    found = threshold(
        y, scores, precision=TARGET, confidence_level=CONFIDENCE, method="look", random_state=seed
    )
    return found.threshold


def mapie(fwer_method: str) -> Callable[[np.ndarray, np.ndarray, int], float | None]:
    def find(y: np.ndarray, scores: np.ndarray, seed: int) -> float | None:
        from mapie.risk_control import BinaryClassificationController

        def both_columns(values: np.ndarray) -> np.ndarray:
            return np.column_stack([1 - values, values])

        grid = np.linspace(0, 0.99, 100)
        controller = BinaryClassificationController(
            both_columns,
            "precision",
            TARGET,
            CONFIDENCE,
            list_predict_params=grid[90::-1] if fwer_method == "fixed_sequence" else grid,
            fwer_method=fwer_method,
        )
        n_learn = len(y) * 15 // 100 if fwer_method == "split_fixed_sequence" else 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if n_learn:
                controller.learn_fixed_sequence_order(scores[:n_learn], y[:n_learn].astype(int))
            controller.calibrate(scores[n_learn:], y[n_learn:].astype(int))
        best = controller.best_predict_param
        return None if best is None else float(np.ravel(best)[0])

    return find


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=400)
    parser.add_argument("--rows", type=int, nargs="+", default=[500, 2_000, 10_000])
    parser.add_argument("--only", nargs="+", help="methods whose names contain one of these texts")
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    options = parser.parse_args()
    methods = {"calibrant": ranks, "calibrant, start=0.9": start, "calibrant, look": look}
    if find_spec("mapie") is not None:
        for fwer_method in ("bonferroni_holm", "fixed_sequence", "split_fixed_sequence"):
            methods[f"MAPIE, {fwer_method}"] = mapie(fwer_method)
    if options.only:
        methods = {
            name: find
            for name, find in methods.items()
            if any(text in name for text in options.only)
        }
    print(
        f"{'world':<22}{'rows':>8} "
        f" {'method':<30}{'selected':>10}{'aim':>7}{'broken':>8}{'p':>7}{'nothing':>9}"
    )
    for world in options.worlds:
        rate = WORLDS[world]
        rates = rate(FINE)
        for n in options.rows:
            for name, find in methods.items():
                shares = []
                broken = 0
                failed = 0
                for seed in range(options.seeds):
                    rng = np.random.default_rng([n, seed])
                    scores = rng.uniform(size=n)
                    y = rng.uniform(size=n) < rate(scores)
                    try:
                        cut = find(y, scores, seed)
                    except Exception:  # a peer that cannot handle the data has found nothing
                        cut = None
                        failed = failed + 1
                    above = (2.0 if cut is None else cut) <= FINE
                    shares.append(above.mean())
                    broken += cut is not None and rates[above].mean() < TARGET - 1e-4
                selected = np.mean(shares)
                nothing = np.mean(np.array(shares) == 0)
                aim = f"{AIM[n]:.3f}" if world == "rate = score" and n in AIM else ""
                chance = binom.sf(broken - 1, options.seeds, 1 - CONFIDENCE)
                line = f"{world:<22}{n:>8,}  {name:<30}{selected:>10.3f}{aim:>7}"
                line += f"{broken / options.seeds:>8.3f}{chance:>7.3f}{nothing:>9.3f}"
                print(line + (f"  ({failed} errors)" if failed else ""), flush=True)


if __name__ == "__main__":
    main()
