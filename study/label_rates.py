"""Tables on rates from few labels, and on thresholds from the loose end, from the CSV files of
their parts.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from quoting import markdown, read

PEERS = ["ppi_py", "truescore"]
JUDGES = ["good", "useless"]
LABELS = [50, 500]
"""The judges and numbers of labels that the tables show; the CSV files have all."""
TRUE_RATES = {
    "the score says nothing": "0.895 at every score",
    "just below, then high": "0.892, and 0.97 at scores above 0.95",
    "falls at the top": "0.897, and 0.88 at scores above 0.8",
    "rate = score": "1.05 times the score, at most 1",
}
"""How the table describes the worlds of `first_pass`, whose names the CSV file keeps."""


def side_by_side(folder: Path) -> pd.DataFrame:
    """One row for each cell: misses and widths of all methods, and widths over those of labels
    alone.
    """
    long = pd.read_csv(folder / "rate.csv")
    wide = long.pivot_table(
        index=["rate", "judge", "labels"], columns="method", values=["missed", "p", "width"]
    )
    wide.columns = [f"{what} {method}" for what, method in wide.columns]
    wide["ratio"] = wide["width auto"] / wide["width labels"]
    wide["over ppi_py"] = wide["width auto"] / wide["width ppi_py"]
    judges = list(dict.fromkeys(long.judge))
    found = wide.reset_index()
    found["place"] = found.judge.map(judges.index)
    return found.sort_values(["rate", "place", "labels"], ascending=[False, True, True])


def rate_misses(folder: Path) -> str:
    """How often limits at 95% missed: calibrant, labels alone and the peers."""
    cells = side_by_side(folder)
    lines = []
    for row in cells[cells.judge.isin(JUDGES) & cells.labels.isin(LABELS)].to_dict("records"):
        missed = [f"{row[f'missed {method}']:.3f}" for method in ("auto", "labels", *PEERS)]
        width = [f"{row[f'width {method}']:.4f}" for method in ("auto", "labels", *PEERS)]
        lines.append(
            [
                f"{row['rate']:g}, {row['judge']}",
                f"{row['labels']}",
                *missed,
                *width,
            ]
        )
    heads = ["rate, judge", "labels", "missed: `rate`", "labels alone", *PEERS]
    heads += ["width: `rate`", "labels alone", *PEERS]
    return markdown(heads, lines)


def rate_figures(folder: Path) -> dict[str, str]:
    """Single figures, which stand in sentences."""
    cells = side_by_side(folder)
    good = cells[cells.judge.isin(["perfect", "very good", "good"]) & (cells.labels >= 100)]
    groups = read(folder, "rate_groups")
    missed = groups[groups.judge != "perfect"].groupby("method").missed
    return {
        "rate_grouped": f"{missed.max()['groups']:.0%}",
        "rate_ignored": f"{missed.min()['rows']:.0%} to {missed.max()['rows']:.0%}",
        "rate_p": f"{cells['p auto'].min():.2f}",
        "rate_widest": f"{np.ceil(100 * cells.ratio.max()) / 100:.2f}",
        "rate_narrower": f"{1 - good.ratio.max():.0%} to {1 - good.ratio.min():.0%}",
    }


def loose_end(folder: Path) -> str:
    """How often guarantees of the rule from the loose end are false, beside `threshold`."""
    long = pd.read_csv(folder / "loose_end.csv")
    lines = []
    for (world, rows), part in long.groupby(["world", "rows"], sort=False):
        false = [f"{100 * value:.1f}%" for value in part.false]
        lines.append([TRUE_RATES[str(world)], f"{rows:,}", *false])
    return markdown(["true rate", "labels", *dict.fromkeys(long.rule)], lines)
