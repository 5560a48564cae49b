"""The p-value of mcgrad's multicalibration error, beside that of `audit`, of calibrated scores.

    pip install mcgrad
    python benchmarks/subgroups.py --sets 55

Labels are drawn from the scores, so that every subgroup is calibrated. A p-value is below 0.05 in
at most a twentieth of such sets. Without mcgrad, only ours is computed.
"""

import argparse

import numpy as np
import pandas as pd

from calibrant import audit

ALPHA = 0.05


def calibrated(rng: np.random.Generator, n_rows: int) -> pd.DataFrame:
    """Scores p, labels y drawn from them, and six attributes."""
    scores = rng.beta(2.0, 5.0, n_rows)
    return pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n_rows),
            "region": rng.choice(["north", "south", "east", "west"], n_rows),
            "smoker": rng.choice(["yes", "no"], n_rows, p=[0.25, 0.75]),
            "age": np.round(rng.normal(50.0, 15.0, n_rows)),
            "income": rng.normal(size=n_rows),
            "gain": rng.exponential(size=n_rows),
            "p": scores,
            "y": (rng.random(n_rows) < scores).astype(int),
        }
    )


def their_p_value(rows: pd.DataFrame) -> float | None:
    """The p-value of mcgrad's multicalibration error; None if it is not installed."""
    try:
        from mcgrad.metrics import MulticalibrationError
    except ImportError:
        return None
    found = MulticalibrationError(
        df=rows,
        label_column="y",
        score_column="p",
        categorical_segment_columns=["sex", "region", "smoker"],
        numerical_segment_columns=["age", "income", "gain"],
    )
    return float(found.mce_pvalue)


def our_p_value(rows: pd.DataFrame) -> float:
    """The p-value of the question whether any subgroup is off."""
    found = audit(rows["y"], rows["p"], attributes=rows.drop(columns=["p", "y"])).by_attributes
    return float(found.p_value)


def main() -> None:
    """Count p-values below 0.05."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=55)
    parser.add_argument("--rows", type=int, default=5_000)
    options = parser.parse_args()
    ours = []
    theirs = []
    for seed in range(options.sets):
        rows = calibrated(np.random.default_rng(seed), options.rows)
        ours.append(our_p_value(rows))
        theirs.append(their_p_value(rows))
    n_ours = sum(value <= ALPHA + 1e-12 for value in ours)
    print(f"audit: p <= {ALPHA} in {n_ours} of {options.sets} calibrated sets")
    known = [value for value in theirs if value is not None]
    if not known:
        print("mcgrad is not installed")
        return
    n_theirs = sum(value <= ALPHA for value in known)
    print(f"mcgrad: p <= {ALPHA} in {n_theirs} of {len(known)} calibrated sets", end="; ")
    print(f"median {np.median(known):.2g}")


if __name__ == "__main__":
    main()
