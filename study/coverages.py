"""Tables on statements whose truth is known, from the CSV file of `known_truth.py`."""

from pathlib import Path

import numpy as np
from label_rates import PEERS, side_by_side
from quoting import markdown, read, shown

ORDER = (
    "Wilson limits for each bin",
    "bootstrap percentiles for each bin",
    "probcal calibration belt",
    "Wilson limits, Bonferroni",
    "calibrant binning",
    "calibrant",
)


def coverage_bands(folder: Path) -> str:
    """How often limits that are read together miss, by world and number of rows."""
    table = read(folder, "coverage")
    table = table[table.question.isin(["bands", "corrected"])]
    worlds = list(dict.fromkeys(zip(table.world, table.rows, strict=True)))
    lines = []
    for method in ORDER:
        each = table[table.method == method].set_index(["world", "rows"])
        share = each["false"] / each.draws
        lines.append([method, *(f"{share[key]:.1%}" for key in worlds), f"{each.width.mean():.2f}"])
    header = ["limits at 90%", *(f"{world}, {rows:,}" for world, rows in worlds), "mean width"]
    return markdown(header, lines)


def coverage_claims(folder: Path) -> str:
    """False alarms of monitors, and p-values of subgroup tests, where nothing is wrong."""
    table = read(folder, "coverage")
    lines = []
    for one in table[table.question.isin(["monitors", "subgroups"])].to_dict("records"):
        found = shown(one["false"], one["draws"])
        lines.append([one["method"], one["world"], *found])
    header = ["method", "scores", "how often", "share", "95% limits"]
    return markdown(header, lines)


def coverage_rates(folder: Path) -> str:
    """Rates from few labels: in how many worlds limits at 95% miss too often."""
    cells = side_by_side(folder)
    names = {"auto": "`rate`", "labels": "labels alone, exact", **{name: name for name in PEERS}}
    lines = []
    for method, name in names.items():
        missed = cells[f"missed {method}"].dropna()
        refuted = (cells[f"p {method}"] < 0.001).sum()
        worst = f"{np.ceil(1000 * missed.max()) / 10:.1f}%"
        lines.append([name, f"{refuted} of {missed.size}", worst, f"{missed.median():.1%}"])
    header = [
        "limits at 95%",
        "scenarios with too many misses (p < 0.001)",
        "misses, worst scenario",
        "misses, median",
    ]
    return markdown(header, lines)
