"""What pages quote of the study: tables, numbers and figures, from the committed CSV files.

python study/page.py.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from label_rates import loose_end, rate_groups, rate_misses
from scipy.stats import beta
from wrappers import wrapper

RESULTS = Path(__file__).parents[1] / "docs" / "study"
ROOT = RESULTS.parents[1]
PAGES = (
    RESULTS / "index.md",
    ROOT / "README.md",
    ROOT / "docs" / "explanation" / "comparison.md",
    ROOT / "docs" / "how-to" / "few-rows.md",
    ROOT / "docs" / "how-to" / "from-probcal.md",
    RESULTS / "rate.md",
    RESULTS / "wrapper.md",
    ROOT / "docs" / "how-to" / "guardrail.md",
)
OURS = ["calibrant", "calibrant binning"]
NOMINAL = 0.1


def at_least(value: float) -> str:
    """A lower limit, rounded down."""
    return f"{np.floor(100 * value) / 100:.2f}"


def markdown(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (header, rule, *lines))


def share(hits: int, trials: int) -> tuple[float, float, float]:
    """A share and its exact 95 % limits."""
    low = beta.ppf(0.025, hits, trials - hits + 1) if hits else 0.0
    high = beta.isf(0.025, hits + 1, trials - hits) if hits < trials else 1.0
    return hits / trials, low, high


def shown(hits: float, trials: float) -> list[str]:
    """How often something was seen, its share, and the limits of the share."""
    rate, low, high = share(int(hits), int(trials))
    limits = (  # rounded outwards
        f"{np.floor(1000 * low) / 10:.1f}% to {np.ceil(1000 * high) / 10:.1f}%"
    )
    return [f"{int(hits):,} of {int(trials):,}", f"{rate:.1%}", limits]


def read(folder: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(folder / f"{name}.csv")


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
        ["guarantees of", "broken or refuted", "share", "95 % limits", "at most"], lines
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
    header = ["scores of", "sets", "default: broken", "refuted", "binning: broken", "refuted"]
    return markdown(header, lines)


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
    "AUC at most 0.002 below the score's": lambda cells: cells.auc_change >= -0.002,
    "Brier score at most 1.5 % above the score's": (
        lambda cells: (cells.brier_change <= 0.015).where(cells.brier_change.notna())
    ),
    "log loss at most 2 % above the best peer's": lambda cells: cells.excess <= 0.02,
}
"""What a default must achieve; NaN where a cell cannot tell."""


def criteria(folder: Path) -> str:
    cells = compared(folder)
    header = ["criterion"]
    columns = []
    for method in reversed(OURS):
        for seen in (True, False):
            header.append(
                f"{'default' if method == 'calibrant' else 'binning'},"
                f" {'seen' if seen else 'unseen'} sets"
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
    header = ["method", "log loss", "within 2 %", "best", "Brier", "ECE", "AUC"]
    return markdown(header, [line for _, line in sorted(lines)])


def versus(folder: Path) -> str:
    cells = compared(folder)
    ours = cells[cells.method == "calibrant"]
    better = [
        "log loss smaller than that of the best peer",
        f"{(ours.excess < 0).sum()} of {len(ours)}",
    ]
    lines = [better]
    for name, met in CRITERIA.items():
        told = met(ours).dropna().astype(bool)
        lines.append([name, f"{told.sum()} of {told.size}"])
    for package, times in ours.best.str.split().str[0].value_counts().items():
        lines.append([f"the best peer is one of {package}", f"{times} of {len(ours)}"])
    return markdown(["", "models of real sets"], lines)


def sets(folder: Path) -> str:
    cells = compared(folder)
    ours = cells[cells.method == "calibrant"]
    peers = cells[~cells.method.isin([*OURS, "raw score"])].groupby(["set", "method"]).excess.mean()
    best = {name: peers[name].idxmin() for name in ours.set}
    lines = []
    for name, each in ours.groupby("set", sort=False):
        broken = f"{each.broken.sum():.0f}/{each.draws.sum():.0f}"
        change = each.brier_change.mean()
        lines.append(
            [
                f"{name}{'' if each.seen.iloc[0] else ' *'}",
                str(len(each)),
                f"{each.rows.iloc[0]:,}",
                f"{each.positive.mean():.1%}",
                f"{each.regions.mean():.0f}",
                f"{each.epsilon.mean():.3f}",
                f"{each.width.mean():.3f}",
                broken,
                f"{each.ece.mean():.3f}",
                f"{each.auc_change.mean():+.4f}",
                "" if np.isnan(change) else f"{change:+.1%}",
                f"{each.excess.mean():+.1%}",
                best[name],
            ]
        )
    header = [
        "set",
        "models",
        "rows",
        "positive",
        "regions",
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


def warnings(folder: Path) -> str:
    order = read(folder, "order")
    order["refuted"] = order.distance > 0
    lines = []
    for by in ("time", "site"):
        for shuffled in (False, True):
            each = order[(order.by == by) & (order.shuffled == shuffled)]
            bad = each[each.refuted]
            fine = each[~each.refuted]
            lines.append(
                [
                    "the same rows, shuffled" if shuffled else f"by {by}",
                    str(len(each)),
                    f"{len(bad)}",
                    f"{each.gap.median():.3f}",
                    at_least(each.distance.max()),
                    f"{bad.check.sum()} of {len(bad)}",
                    f"{bad.monitor.sum()} of {len(bad)}",
                    f"{fine.check.sum()} of {len(fine)}",
                    f"{fine.monitor.sum()} of {len(fine)}",
                ]
            )
    header = [
        "split",
        "guarantees",
        "refuted",
        "median gap",
        "largest proved distance",
        "refuted: check warned",
        "refuted: monitor warned",
        "others: check warned",
        "others: monitor warned",
    ]
    return markdown(header, lines)


def order(folder: Path) -> str:
    table = read(folder, "order")
    lines = []
    for (name, by), each in table.groupby(["set", "by"], sort=False):
        real = each[~each.shuffled]
        mixed = each[each.shuffled]
        lines.append(
            [
                name,
                f"{by}: {real.column.iloc[0]}",
                f"{real.rows.iloc[0]:,}",
                f"{real.later.iloc[0]:,}",
                f"{real.epsilon.mean():.3f}",
                f"{real.gap.mean():.3f}",
                f"{mixed.gap.mean():.3f}",
                f"{(real.distance > 0).sum()}/{len(real)}",
                at_least(real.distance.max()),
                f"{real.check.sum()}/{len(real)}",
                f"{real.monitor.sum()}/{len(real)}",
            ]
        )
    header = [
        "set",
        "by",
        "rows",
        "later",
        "epsilon",
        "gap",
        "shuffled",
        "refuted",
        "distance",
        "check",
        "monitor",
    ]
    return markdown(header, lines)


def clusters(folder: Path) -> str:
    table = read(folder, "clusters")
    lines = []
    ways = [("binning", True), ("binning", False), ("anchored", True), ("anchored", False)]
    for name, each in table.groupby("set", sort=False):
        cells = [name, each.column.iloc[0], f"{each.groups.iloc[0]:,}", f"{each.rows.iloc[0]:,}"]
        for method, grouped in ways:
            found = each[(each.method == method) & (each.grouped == grouped)]
            cells.append(f"{found.broken.sum()}/{found.draws.sum()}, {found.epsilon.mean():.2f}")
        lines.append(cells)
    total = ["**all**", "", "", ""]
    for method, grouped in ways:
        found = table[(table.method == method) & (table.grouped == grouped)]
        count, rate, _ = shown(found.broken.sum(), found.draws.sum())
        total.append(f"{count}: {rate}")
    header = [
        "set",
        "groups by",
        "groups",
        "rows",
        "binning with groups",
        "without",
        "default with groups",
        "without",
    ]
    return markdown(header, [*lines, total])


def sources(folder: Path) -> str:
    known = (
        read(folder, "sets")
        .groupby(["table", "licence"], sort=True)
        .set.agg(", ".join)
        .reset_index()
    )
    return markdown(
        ["table", "licence", "sets"], known[["table", "licence", "set"]].to_numpy().tolist()
    )


def times(folder: Path) -> str:
    used = read(folder, "time").groupby("part", sort=False)[["units", "seconds"]].sum()
    used.loc["all"] = used.sum()
    lines = [
        [f"`{part}`", f"{each.units:,.0f}", f"{each.seconds / 60:.1f}"]
        for part, each in used.iterrows()
    ]
    return markdown(["part", "units", "minutes of processor time"], lines)


def summary(folder: Path) -> str:
    """The study in a few lines, for the README."""
    rows = read(folder, "rows")
    groups = read(folder, "clusters")
    cells = compared(folder)
    order = read(folder, "order").assign(refuted=lambda table: table.distance > 0)
    real = order[~order.shuffled]
    mixed = order[order.shuffled]
    ours = rows[rows.method == "calibrant"]
    default = cells[cells.method == "calibrant"]
    with_groups, without = (
        groups[(groups.method == "binning") & (groups.grouped == each)] for each in (True, False)
    )
    bad = real[real.refuted]
    fine = real[~real.refuted]
    warned = real.check | real.monitor
    anchored = "`AnchoredCalibrator()`"
    binning = "`BinningCalibrator(n_bins=5)`"
    watched = "`check` or `DriftMonitor`"

    def count(hits: float, trials: float) -> str:
        return f"{int(hits):,} of {int(trials):,} ({hits / trials:.1%})"

    def met(name: str) -> str:
        told = CRITERIA[name](default).dropna().astype(bool)
        return count(told.sum(), told.size)

    lines = [
        [
            "guarantees broken, rows drawn at random; 10 % may be",
            anchored,
            count(ours.broken.sum(), ours.draws.sum()),
        ],
        [
            "grouped rows, with `groups=`",
            binning,
            count(with_groups.broken.sum(), with_groups.draws.sum()),
        ],
        [
            "the same without `groups=`, nothing is guaranteed",
            binning,
            count(without.broken.sum(), without.draws.sum()),
        ],
        [
            "guarantees refuted later in time or at another site",
            anchored,
            count(len(bad), len(real)),
        ],
        ["of those, splits with a warning", watched, count(warned[real.refuted].sum(), len(bad))],
        [
            "of the others, splits with a warning",
            watched,
            count(warned[~real.refuted].sum(), len(fine)),
        ],
        [
            "the same rows shuffled, with a warning",
            watched,
            count((mixed.check | mixed.monitor).sum(), len(mixed)),
        ],
        [
            "log loss at most 2 % above the best of peers",
            anchored,
            met("log loss at most 2 % above the best peer's"),
        ],
        [
            "AUC at most 0.002 below the score's",
            anchored,
            met("AUC at most 0.002 below the score's"),
        ],
        [
            "Brier score at most 1.5 % above the score's",
            anchored,
            met("Brier score at most 1.5 % above the score's"),
        ],
    ]
    return markdown(
        [f"{ours.set.nunique()} real sets, {len(ours)} models", "settings", "found"], lines
    )


TABLES = {
    make.__name__: make
    for make in (
        summary,
        guarantees,
        guarantees_by_model,
        criteria,
        methods,
        versus,
        sets,
        warnings,
        order,
        clusters,
        sources,
        times,
        rate_misses,
        rate_groups,
        loose_end,
        wrapper,
    )
}
MARKS = re.compile(r"(<!-- table (\w+) -->\n).*?(\n?<!-- end of table -->)", re.DOTALL)
FIGURE = re.compile(r"<!-- (\w+) -->[^<]*<!-- / -->")


def figures(folder: Path) -> dict[str, str]:
    """Single figures of the study, which stand in sentences."""
    cells = compared(folder)
    order = read(folder, "order")
    ours = cells[cells.method == "calibrant"]
    real = order[~order.shuffled]
    mixed = order[order.shuffled]
    behind = ours[ours.excess > 0.02]
    few = ours[ours.rows < 300]
    lost = ours[ours.auc_change < -0.002]
    worst = real.loc[real.distance.idxmax()]
    return {
        "cells": f"{len(ours)}",
        "sets": f"{ours.set.nunique()}",
        "splits": f"{ours.splits.iloc[0]:.0f}",
        "within": f"{(ours.excess <= 0.02).sum()} of {len(ours)}",
        "probcal_best": f"{ours.best.str.startswith('probcal').sum()} of {len(ours)}",
        "peer_better": f"{(ours.excess > 0).sum()} of {len(ours)}",
        "peer_better_a_little": f"{((ours.excess > 0) & (ours.excess <= 0.01)).sum()}",
        "behind": f"{len(behind)}",
        "behind_few_rows": f"{(behind.rows < 700).sum()}",
        "behind_sets": ", ".join(f"*{name}*" for name in behind.set.value_counts().index[:5]),
        "few_rows": f"{few.groupby('set').excess.mean().max():.1%}",
        "lost": (
            "; ".join(f"*{each.set}* with {each.model}" for each in lost.itertuples()) or "none"
        ),
        "farthest": at_least(worst.distance),
        "farthest_where": f"*{worst.set}* by {worst.by}, {worst.model}",
        "quiet_gap": f"{np.ceil(1000 * real[~real.check].gap.max()) / 1000:.3f}",
        "false_alarms": f"{mixed.check.sum() + mixed.monitor.sum()} of {2 * len(mixed)}",
    }


def filled(text: str, folder: Path = RESULTS) -> str:
    """A page with its tables and figures made again, each of which stands between two marks."""
    known = figures(folder)
    text = FIGURE.sub(lambda found: f"<!-- {found[1]} -->{known[found[1]]}<!-- / -->", text)
    return MARKS.sub(
        lambda found: f"{found[1]}{TABLES[found[2]](folder)}\n<!-- end of table -->", text
    )


def write_page(folder: Path = RESULTS) -> None:
    """Write the tables of the pages, and draw the figures."""
    from figures import draw

    for path in PAGES:
        path.write_text(filled(path.read_text(encoding="utf-8"), folder), encoding="utf-8")
    draw(folder)


if __name__ == "__main__":
    write_page()
