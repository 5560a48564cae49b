"""The figures of the study's page."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from quoting import NOMINAL, read, share
from ranking import draw_ranks
from unseen_tables import by_set, compared_unseen

BLUE = "#1f5f8b"
RED = "#b5402f"
GREY = "#8a8a8a"


def guarantees(axes: Axes, folder: Path) -> None:
    """Share of guarantees broken in each set, with exact limits."""
    rows = read(folder, "rows")
    ours = rows[rows.method == "calibrant"].groupby("set")[["broken", "draws"]].sum()
    ours = ours.assign(share=ours.broken / ours.draws).sort_values("share", kind="stable")
    limits = np.array([share(int(each.broken), int(each.draws)) for each in ours.itertuples()])
    at = np.arange(len(ours))
    axes.hlines(at, limits[:, 1], limits[:, 2], color=BLUE, alpha=0.5)
    axes.plot(limits[:, 0], at, "o", color=BLUE, markersize=4)
    axes.axvline(NOMINAL, color=RED, linestyle="--")
    axes.text(NOMINAL, len(ours), "  allowed: 10%", color=RED)
    axes.set(yticks=at, yticklabels=ours.index, ylim=(-0.7, len(ours) + 1.5), xlim=(-0.003, None))
    axes.set_xlabel("share of broken guarantees, with 95% limits (default, known population)")


def order(axes: Axes, folder: Path) -> None:
    """How far predictions are off later, against the same rows shuffled."""
    table = read(folder, "order")
    key = ["set", "by", "model"]
    mixed = table[table.shuffled][[*key, "gap"]].rename(columns={"gap": "gap_shuffled"})
    pairs = table[~table.shuffled].merge(mixed, on=key)
    looks = {
        "check and monitor warned": pairs.check & pairs.monitor,
        "check warned": pairs.check & ~pairs.monitor,
        "monitor warned": ~pairs.check & pairs.monitor,
        "neither warned": ~pairs.check & ~pairs.monitor,
    }
    for (label, chosen), mark, color in zip(
        looks.items(), "os^x", (RED, "#d98a2b", "#7a4fa3", GREY), strict=True
    ):
        each = pairs[chosen]
        name = f"{label} ({len(each)})"
        axes.plot(
            each.gap_shuffled, each.gap, mark, color=color, label=name, markersize=5, alpha=0.8
        )
    ends = [pairs.gap_shuffled.min() * 0.9, pairs.gap.max() * 1.1]
    axes.plot(ends, ends, color=GREY, linewidth=0.8)
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel("average distance between prediction and rate, shuffled rows")
    axes.set_ylabel("the same, later rows or other sites")
    axes.legend(frameon=False, fontsize=9)


def clusters(axes: Axes, folder: Path) -> None:
    """Share of broken guarantees with and without groups."""
    table = read(folder, "clusters")
    table = table[table.method == "binning"]
    both = table.groupby(["set", "grouped"])[["broken", "draws"]].sum()
    rates = (both.broken / both.draws).unstack().sort_values(False, kind="stable")
    at = np.arange(len(rates))
    axes.hlines(at, rates[True], rates[False], color=GREY, linewidth=1)
    axes.plot(rates[False], at, "o", color=RED, label="without groups=")
    axes.plot(rates[True], at, "s", color=BLUE, label="with groups=")
    axes.axvline(NOMINAL, color=GREY, linestyle="--")
    axes.set(yticks=at, yticklabels=rates.index, xlim=(-0.02, 1.02))
    axes.set_xlabel(
        "share of broken guarantees (binning, whole groups drawn); dashed line: allowed"
    )
    axes.legend(frameon=False, loc="lower right")


def unseen_ranks(axes: Axes, folder: Path) -> None:
    """Mean ranks over sets that no choice has seen."""
    draw_ranks(axes, by_set(compared_unseen(folder)))


SIZES = {
    guarantees: (7.5, 9.0),
    unseen_ranks: (7.5, 4.5),
    order: (6.5, 5.5),
    clusters: (7.5, 4.0),
}


def draw(folder: Path) -> None:
    """Draw all figures beside the page."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    for plot, size in SIZES.items():
        figure, axes = plt.subplots(figsize=size, layout="constrained")
        axes.spines[["top", "right"]].set_visible(False)
        plot(axes, folder)
        figure.savefig(folder / f"{plot.__name__}.png", dpi=110, metadata={"Software": None})
        plt.close(figure)
