"""What pages quote of the study: tables, numbers and figures, from the committed CSV files.

python study/page.py.
"""

import re
from pathlib import Path

import numpy as np
import pandas as pd
from by_order import clusters, guarantees, warnings
from coverages import coverage_bands, coverage_claims, coverage_rates
from label_rates import loose_end, rate_figures, rate_misses
from quoting import RESULTS, at_least, markdown, read, share
from unseen_tables import (
    alarms,
    over_oracle,
    unseen_classifiers,
    unseen_criteria,
    unseen_few,
    unseen_figures,
    unseen_guarantees,
    unseen_large,
    unseen_margins,
    unseen_methods,
    unseen_monitors,
    unseen_sigmoid,
    unseen_sizes,
    unseen_subgroups,
)

__all__ = ["PAGES", "RESULTS", "TABLES", "filled", "share", "write_page"]

ROOT = RESULTS.parents[1]
PAGES = (
    RESULTS / "index.md",
    RESULTS / "seen.md",
    ROOT / "README.md",
    ROOT / "docs" / "guides" / "drop-in.md",
    ROOT / "docs" / "guides" / "other-calibrators.md",
    ROOT / "docs" / "guides" / "small-samples.md",
    RESULTS / "coverage.md",
    ROOT / "docs" / "guides" / "decisions.md",
)


def summary(folder: Path) -> str:
    """The study in five rows, for the README."""
    found = unseen_figures(folder)
    draws = read(folder, "unseen_guarantees")
    draws = draws[draws.method == "calibrant"]
    order = read(folder, "order").assign(refuted=lambda table: table.distance > 0)
    real = order[~order.shuffled]
    mixed = order[order.shuffled]
    warned = (real.check | real.monitor)[real.refuted]
    false_alarms = (mixed.check | mixed.monitor).sum()

    def count(hits: float, trials: float) -> str:
        return f"{int(hits):,} of {int(trials):,} ({hits / trials:.1%})"

    epsilon = "; ".join(
        f"{100 * each.epsilon.median():.0f} points and {over_oracle(each).median():.2f} ({n:,} rows)"
        for n, each in draws.groupby("n")
    )
    lines = [
        ["guarantees broken (10% allowed)", count(draws.broken.sum(), len(draws))],
        ["epsilon, median, and over that of an oracle", epsilon],
        ["default curve: log loss over scikit-learn's sigmoid", found["unseen_sigmoid"]],
        ["`CalibratedClassifier`: log loss over scikit-learn's default", found["unseen_dropin"]],
        [
            "sets that choices have seen, later rows or another site: refuted; alarms where"
            " refuted; alarms in random order",
            f"{count(real.refuted.sum(), len(real))}; {count(warned.sum(), warned.size)};"
            f" {count(false_alarms, len(mixed))}",
        ],
    ]
    title = (
        f"{found['unseen_sets']} real data sets that no choice had seen; logistic, LightGBM, forest"
    )
    return markdown([title, "result (95% limits)"], lines)


TABLES = {
    make.__name__: make
    for make in (
        summary,
        guarantees,
        warnings,
        clusters,
        coverage_bands,
        coverage_claims,
        coverage_rates,
        rate_misses,
        loose_end,
        alarms,
        unseen_guarantees,
        unseen_margins,
        unseen_methods,
        unseen_sigmoid,
        unseen_sizes,
        unseen_classifiers,
        unseen_few,
        unseen_criteria,
        unseen_subgroups,
        unseen_large,
        unseen_monitors,
    )
}


MARKS = re.compile(r"(<!-- table (\w+) -->\n).*?(\n?<!-- end of table -->)", re.DOTALL)


FIGURE = re.compile(r"<!-- (\w+) -->[^<]*<!-- / -->")


def figures(folder: Path) -> dict[str, str]:
    """Single figures of the study, which stand in sentences."""
    order = read(folder, "order")
    real = order[~order.shuffled]
    mixed = order[order.shuffled]
    worst = real.loc[real.distance.idxmax()]
    fine = real[real.distance <= 0]
    return {
        "sets": f"{read(folder, 'rows').set.nunique()}",
        "farthest": at_least(worst.distance),
        "farthest_where": f"*{worst.set}* by {worst.by}, {worst.model}",
        "monitor_others": f"{fine.monitor.sum()} of the {len(fine)}",
        "monitor_time": warned_by_monitor(real, "time"),
        "monitor_site": warned_by_monitor(real, "site"),
        "quiet_gap": f"{np.ceil(1000 * real[~real.check].gap.max()) / 1000:.3f}",
        **rate_figures(folder),
        **unseen_figures(folder),
        "false_alarms": f"{mixed.check.sum() + mixed.monitor.sum()} of {2 * len(mixed)}",
    }


def warned_by_monitor(real: pd.DataFrame, by: str) -> str:
    """About how many refuted guarantees the monitor warned."""
    refuted = real[(real.by == by) & (real.distance > 0)]
    return f"{refuted.monitor.sum()} of {len(refuted)}"


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
