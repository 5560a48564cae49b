"""Tables on sets that choices have seen: guarantees by rows, by time or site, and by cluster."""

from pathlib import Path

from quoting import NOMINAL, OURS, at_least, markdown, read, shown


def guarantees(folder: Path) -> str:
    """Guarantees that are broken in a known population, or refuted by new rows."""
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
        "largest distance",
        "refuted: check warned",
        "refuted: monitor warned",
        "others: check warned",
        "others: monitor warned",
    ]
    return markdown(header, lines)


def clusters(folder: Path) -> str:
    table = read(folder, "clusters")
    lines = []
    ways = [("binning", True), ("binning", False), ("curve", True), ("curve", False)]
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
