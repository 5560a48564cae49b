"""calibrant in CalArena: an entry for its `custom_calibrators.py`, and a run of its files.

CalArena (github.com/probkit/CalArena) keeps scores and labels in `calibration_benchmarks`, as
`NAME-binary.h5` and `NAME-binary-experiments.csv`, and results in `results`, one CSV for each
calibrator. Where those files are present, this writes calibrant's CSV beside them:

    python study/calarena.py PATH/TO/CalArena --benchmark tabrepo-binary

Or register the entry, and run its own script:

    from calarena import CUSTOM_CALIBRATORS  # in custom_calibrators.py
    python run_benchmark.py --benchmark tabrepo-binary --calibrator calibrant
"""

import argparse
import time
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from calibrant import Calibrator


def positive_column(p: np.ndarray) -> np.ndarray:
    """The probability of the positive class, from one column or two."""
    p = np.asarray(p, dtype=float)
    return p[:, -1] if p.ndim == 2 else p


class CalibrantCalibrator:
    """The default curve, with the two methods that CalArena calls."""

    def fit(self, p_cal: np.ndarray, y_cal: np.ndarray) -> Self:
        """Fit the curve to probabilities and labels 0 and 1."""
        self.fitted = Calibrator().fit(positive_column(p_cal), np.ravel(y_cal), classes=(0, 1))
        return self

    def predict_proba(self, p_test: np.ndarray) -> np.ndarray:
        """The calibrated probabilities of both classes."""
        return np.asarray(self.fitted.predict_proba(positive_column(p_test)))


CUSTOM_CALIBRATORS = {"calibrant": lambda: CalibrantCalibrator()}


def measured(p_cal: np.ndarray, y_cal: np.ndarray, p_test: np.ndarray, y: np.ndarray) -> dict:
    """The columns of a result file, for one experiment."""
    begun = time.perf_counter()
    fitted = CUSTOM_CALIBRATORS["calibrant"]().fit(p_cal, y_cal)
    p = fitted.predict_proba(p_test)[:, 1]
    seconds = time.perf_counter() - begun
    return {
        "calibrant_brier": 2 * brier_score_loss(y, p),  # over both classes, as in probmetrics
        "calibrant_logloss": log_loss(y, p, labels=[0, 1]),
        "calibrant_accuracy": accuracy_score(y, p > 0.5),
        "calibrant_time": seconds,
    }


def main() -> None:
    """Run the experiments of a benchmark whose files are present."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="a copy of CalArena, with its HDF5 files")
    parser.add_argument("--benchmark", default="tabrepo-binary")
    options = parser.parse_args()
    files = options.folder / "calibration_benchmarks"
    scores = files / f"{options.benchmark}.h5"
    experiments = files / f"{options.benchmark}-experiments.csv"
    if missing := [str(path) for path in (scores, experiments) if not path.exists()]:
        raise SystemExit(f"Not found: {', '.join(missing)}. CalArena's README says where they are.")
    import h5py

    lines = []
    with h5py.File(scores) as file:
        for each in pd.read_csv(experiments).itertuples():
            group = file[f"{each.dataset}/{each.model}"]
            names = ("probas_cal", "labels_cal", "probas_test", "labels_test")
            p_cal, y_cal, p_test, y_test = (group[name][:] for name in names)
            sizes = {"cal_size": len(p_cal), "test_size": len(p_test)}
            found = measured(p_cal, y_cal, p_test, y_test)
            lines.append({"dataset": each.dataset, "model": each.model, **sizes, **found})
    folder = options.folder / "results" / options.benchmark
    folder.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(lines).to_csv(folder / "calibrant.csv", index=False)
    print(f"Wrote {folder / 'calibrant.csv'}: {len(lines)} experiments")


if __name__ == "__main__":
    main()
