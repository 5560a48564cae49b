"""Which method has the smaller log loss: paired comparisons over sets, and their diagram.

Models and splits of a set share rows, so a set counts once: a method's figure there is the mean of
its log loss over the set's models. Two methods are compared by Wilcoxon's signed-rank test over
sets, corrected by Holm for all pairs (Benavoli, Corani and Mangili 2016, "Should we really use
post-hoc tests based on mean-ranks?", JMLR 17); mean ranks only give the order of the diagram.
"""

from itertools import combinations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy.stats import binom, wilcoxon

LEVEL = 0.05


def mean_ranks(table: pd.DataFrame) -> pd.Series:
    """The mean rank of each method over sets, best first."""
    return table.rank(axis=1).mean().sort_values()


def p_values(table: pd.DataFrame) -> dict[frozenset[str], float]:
    """Wilcoxon's p-value of each pair of methods, corrected by Holm for all pairs."""
    pairs = [frozenset(pair) for pair in combinations(table.columns, 2)]
    raw = []
    for first, second in map(sorted, pairs):
        difference = table[first] - table[second]
        raw.append(1.0 if not difference.any() else wilcoxon(difference).pvalue)
    return dict(zip(pairs, holm(np.array(raw)), strict=True))


def holm(raw: np.ndarray) -> np.ndarray:
    """Holm's correction: p-values that may be compared with one level."""
    order = np.argsort(raw)
    stepped = raw[order] * np.arange(raw.size, 0, -1)
    corrected = np.empty(raw.size)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(stepped))
    return corrected


def median_limits(values: np.ndarray, level: float = 1 - LEVEL) -> tuple[float, float, float]:
    """The median, and limits of it from the sign test, which need no shape of the distribution."""
    ordered = np.sort(values)
    n = ordered.size
    below = int(binom.ppf((1 - level) / 2, n, 0.5))
    if binom.cdf(below - 1, n, 0.5) > (1 - level) / 2:
        below -= 1
    return float(np.median(ordered)), float(ordered[max(below - 1, 0)]), float(ordered[n - below])


def groups_not_told_apart(ranks: pd.Series, corrected: dict[frozenset[str], float]) -> list[slice]:
    """The longest runs of neighbours in rank, no two of which are told apart."""
    names = list(ranks.index)
    runs: list[slice] = []
    for start in range(len(names)):
        stop = start + 1
        while stop < len(names) and all(
            corrected[frozenset((names[stop], name))] > LEVEL for name in names[start:stop]
        ):
            stop += 1
        if stop - start > 1 and (not runs or stop > runs[-1].stop):
            runs.append(slice(start, stop))
    return runs


def draw_ranks(axes: Axes, table: pd.DataFrame) -> None:
    """Mean ranks over sets; a bar joins methods that are not told apart."""
    mean = mean_ranks(table)
    at = np.arange(mean.size)
    ours = [name.startswith("calibrant") for name in mean.index]
    axes.plot(mean, at, "o", color="#8a8a8a", markersize=5)
    axes.plot(mean[ours], at[ours], "o", color="#1f5f8b", markersize=7)
    for method, rank, place in zip(mean.index, mean, at, strict=True):
        axes.text(rank + 0.35, place, f"{method}  {rank:.1f}", va="center", fontsize=9)
    for number, run in enumerate(groups_not_told_apart(mean, p_values(table))):
        x = 0.4 - 0.35 * (number % 4)
        axes.plot([x, x], [run.start, run.stop - 1], color="black", linewidth=2.5)
    axes.invert_yaxis()
    axes.set(yticks=[], xticks=[5, 10, 15], xlim=(-1.0, mean.max() + 5))
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(
        "mean rank by log loss; bars join methods that do not differ significantly"
        " (Wilcoxon, Holm, 5%)"
    )
