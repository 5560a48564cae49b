"""Tables on rows that are split at random: guarantees, and how good the probabilities are."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from quoting import NOMINAL, OURS, markdown, read, shown
from scipy.stats import binom


def guarantees(folder: Path) -> str:
    rows = read(folder, "rows")
    lines = []
    for method in OURS:
        ours = rows[rows.method == method]
        lines.append(
            [
                f"`{method}`, known population",
                *shown(ours.broken.sum(), ours.draws.sum()),
                f"{NOMINAL:.0%}",
            ]
        )
    for method in OURS:
        ours = rows[rows.method == method]
        lines.append(
            [f"`{method}`, new rows", *shown(ours.refuted.sum(), ours.splits.sum()), "15%"]
        )
    return markdown(
        ["method, judged on", "broken or refuted", "share", "95% limits", "at most"], lines
    )


def guarantees_by_model(folder: Path) -> str:
    rows = read(folder, "rows")
    lines = []
    rows["model"] = rows.model.where(
        rows.model.isin(["lightgbm", "logistic", "forest", "bayes"]), "others"
    )
    for model, each in rows.groupby("model", sort=False):
        cells = [model, str(each.set.nunique())]
        for method in OURS:
            ours = each[each.method == method]
            cells += [
                f"{ours.broken.sum() / ours.draws.sum():.1%}",
                f"{ours.refuted.sum() / ours.splits.sum():.1%}",
            ]
        lines.append(cells)
    header = ["model", "sets", "default: broken", "refuted", "binning: broken", "refuted"]
    return markdown(header, lines)


SIZES = (0, 300, 1_000, 2_000, 10_000_000)


def sharpness(folder: Path) -> str:
    """What the guarantees say, by the number of rows that calibrate: medians over cells."""
    rows = read(folder, "rows")
    lines = []
    for few, many in pairwise(SIZES):
        each = rows[(rows.rows >= few) & (rows.rows < many)]
        name = f"{few:,} to {many - 1:,}" if many < SIZES[-1] else f"{few:,} or more"
        cells = [name.replace("0 to 299", "fewer than 300"), str(len(each) // len(OURS))]
        for method in OURS:
            ours = each[each.method == method]
            cells += [
                f"{ours.regions.median():.0f}",
                f"{np.ceil(1000 * ours.epsilon.median()) / 1000:.3f}",
                f"{np.ceil(1000 * ours.average_epsilon.median()) / 1000:.3f}",
                f"{np.ceil(1000 * ours.width.median()) / 1000:.3f}",
            ]
        lines.append(cells)
    names = ("regions", "epsilon", "on average", "width")
    header = ["calibration rows", "cells", *(f"default: {names[0]}", *names[1:])]
    return markdown([*header, f"binning: {names[0]}", *names[1:]], lines)


def compared(folder: Path) -> pd.DataFrame:
    """All methods in all cells (a set and a model), with what the raw score and the best peer
    reached there.
    """
    cells = pd.concat([read(folder, "peers"), read(folder, "rows")], ignore_index=True)
    key = ["set", "model"]
    peers = cells[~cells.method.isin([*OURS, "raw score"]) & (cells.failed == 0)]
    best = peers.loc[peers.groupby(key).log_loss.idxmin(), [*key, "method", "log_loss"]]
    best = best.rename(columns={"method": "best", "log_loss": "best_log_loss"})
    raw = cells[cells.method == "raw score"][[*key, "auc", "brier"]].rename(
        columns={"auc": "raw_auc", "brier": "raw_brier"}
    )
    cells = (
        cells.merge(best, on=key)
        .merge(raw, on=key)
        .merge(read(folder, "sets")[["set", "seen"]], on="set")
    )
    cells["excess"] = cells.log_loss / cells.best_log_loss - 1
    cells["brier_change"] = (cells.brier / cells.raw_brier - 1).where(
        ~cells.model.isin(["points", "svm", "age"])
    )
    cells["auc_change"] = cells.auc - cells.raw_auc
    return cells


CRITERIA: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
    "no vacuous guarantee (300 rows or more)": (
        lambda cells: (cells.vacuous == 0).where(cells.rows >= 300)
    ),
    "AUC at most 0.002 below that of the raw score": lambda cells: cells.auc_change >= -0.002,
    "Brier score at most 1.5% above that of the raw score": (
        lambda cells: (cells.brier_change <= 0.015).where(cells.brier_change.notna())
    ),
    "log loss at most 2% above the best peer's": lambda cells: cells.excess <= 0.02,
}
"""What a default must achieve; NaN where a cell cannot tell.

These were written down before the default was compared with its peers, and have not changed since.
"""


def criteria(folder: Path) -> str:
    cells = compared(folder)
    header = ["criterion"]
    columns = []
    for method in reversed(OURS):
        for seen in (True, False):
            header.append(
                f"{'default' if method == 'calibrant' else 'binning'},"
                f" {'first' if seen else 'later'} sets"
            )
            columns.append(cells[(cells.method == method) & (cells.seen == seen)])
    lines = []
    for name, met in CRITERIA.items():
        told = [met(column).dropna().astype(bool) for column in columns]
        lines.append([name, *(f"{each.sum()} of {each.size}" for each in told)])
    return markdown(header, lines)


def methods(folder: Path) -> str:
    cells = compared(folder)
    ranked = cells[cells.failed.fillna(0) == 0]
    winner = ranked.loc[ranked.groupby(["set", "model"]).log_loss.idxmin()].method.value_counts()
    lines = []
    for method, each in cells.groupby("method"):
        figures = [
            f"{each.excess.median():+.2%}",
            f"{(each.excess <= 0.02).mean():.0%}",
            str(winner.get(method, 0)),
        ]
        figures += [
            f"{each.brier_change.median():+.1%}",
            f"{each.ece.median():.3f}",
            f"{each.auc_change.mean():+.4f}",
        ]
        lines.append((each.excess.median(), [method, *figures]))
    header = ["method", "log loss", "within 2%", "best", "Brier", "ECE", "AUC"]
    return markdown(header, [line for _, line in sorted(lines)])


def versus(folder: Path) -> str:
    cells = compared(folder)
    ours = cells[cells.method == "calibrant"]
    better = [
        "log loss smaller than the best peer's",
        f"{(ours.excess < 0).sum()} of {len(ours)}",
    ]
    lines = [better]
    for name, met in CRITERIA.items():
        told = met(ours).dropna().astype(bool)
        lines.append([name, f"{told.sum()} of {told.size}"])
    for package, times in ours.best.str.split().str[0].value_counts().items():
        lines.append([f"the best peer comes from {package}", f"{times} of {len(ours)}"])
    return markdown(["", "models on real data"], lines)


BEHIND = 0.01


def sets(folder: Path) -> str:
    """The sets in which the best peer is ahead by more than 1%, and medians over the others."""
    cells = compared(folder)
    ours = cells[cells.method == "calibrant"]
    peers = cells[~cells.method.isin([*OURS, "raw score"])].groupby(["set", "method"]).excess.mean()
    figures = ours.groupby("set", sort=False).agg(
        rows=("rows", "first"),
        positive=("positive", "mean"),
        epsilon=("epsilon", "mean"),
        width=("width", "mean"),
        broken=("broken", "sum"),
        draws=("draws", "sum"),
        ece=("ece", "mean"),
        auc=("auc_change", "mean"),
        brier=("brier_change", "mean"),
        excess=("excess", "mean"),
    )
    behind = figures[figures.excess > BEHIND].sort_values("excess", ascending=False)
    others = figures.drop(behind.index)
    middle = others.median()
    middle[["broken", "draws"]] = others[["broken", "draws"]].sum()
    named = [(name, each, peers[name].idxmin()) for name, each in behind.iterrows()]
    named.append((f"other {len(others)} sets", middle, ""))
    lines = [
        [
            name,
            f"{each.rows:,.0f}",
            f"{each.positive:.1%}",
            f"{each.epsilon:.3f}",
            f"{each.width:.3f}",
            f"{each.broken:,.0f}/{each.draws:,.0f}",
            f"{each.ece:.3f}",
            f"{each.auc:+.4f}",
            f"{each.brier:+.1%}",
            f"{each.excess:+.1%}",
            best,
        ]
        for name, each, best in named
    ]
    header = [
        "set",
        "rows",
        "positive",
        "epsilon",
        "width",
        "broken",
        "ECE",
        "AUC",
        "Brier",
        "log loss",
        "best peer",
    ]
    return markdown(header, lines)


def above(folder: Path) -> str:
    """Sets in which more than the allowed share of guarantees was broken, and what chance does."""
    rows = read(folder, "rows")
    lines = []
    for method in OURS:
        each = rows[rows.method == method].groupby("set", sort=False)[["broken", "draws"]].sum()
        chance = binom.sf(each.broken - 1, each.draws, NOMINAL)
        for name, broken, draws, p in zip(each.index, each.broken, each.draws, chance, strict=True):
            if broken > NOMINAL * draws:
                count, rate, limits = shown(broken, draws)
                lines.append([name, f"`{method}`", count, rate, limits, f"{p:.2f}"])
    header = ["set", "method", "broken", "share", "95% limits", "p-value if 10% fail"]
    return markdown(header, lines)
