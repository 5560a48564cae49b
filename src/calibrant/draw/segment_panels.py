"""Small reliability diagrams side by side, one per segment."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._optional import needed
from calibrant._typing import ArrayLike
from calibrant.assess.metrics.reliability import (
    ReliabilityTable,
    reliability_table,
    shared_level,
)
from calibrant.cells.segmented_partition import segment_kinds
from calibrant.draw.axes import highest_rate, score_limits
from calibrant.draw.style import QUIET
from calibrant.errors import InvalidTypeError
from calibrant.text.numbers import percent, rows

if TYPE_CHECKING:
    from calibrant.draw.reliability_display import ReliabilityDisplay


def segment_panels(
    display: type[ReliabilityDisplay],
    y: ArrayLike,
    scores: ArrayLike,
    segments: ArrayLike,
    *,
    n_bins: int | str,
    confidence_level: float,
    pos_label: Hashable,
    scale: str,
    n_columns: int,
) -> list[ReliabilityDisplay]:
    """A diagram for each segment, on a common scale; all intervals hold simultaneously."""
    tables = _tables(y, scores, segments, n_bins, confidence_level, pos_label)
    shown = [display(table) for table in tables.values()]
    plt = needed("matplotlib.pyplot", "plot", "plots are drawn")
    columns = min(n_columns, len(shown))
    n_lines = -(-len(shown) // columns)
    size = (3.1 * columns, 3.1 * n_lines + 0.4)
    figure, axes = plt.subplots(n_lines, columns, figsize=size, squeeze=False, layout="constrained")
    limits = (
        *score_limits(list(tables.values()), None),
        highest_rate(list(tables.values())),
    )
    for place, ax in enumerate(axes.flat):
        if place >= len(shown):
            ax.set_visible(False)
            continue
        how: dict[str, Any] = {"legend": False, "histogram": False, "difference": False}
        shown[place].plot(ax, scale=scale, limits=limits, **how)
        name, table = list(tables.items())[place]
        ax.set_title(name, fontsize="medium", loc="left")
        ax.set_title(rows(int(table.counts.sum())), fontsize="small", loc="right", color=QUIET)
        if place % columns:
            ax.set_ylabel("")
        if place + columns < len(shown):
            ax.set_xlabel("")
    level = percent(confidence_level)
    said = f"intervals: {level}, all bins and segments simultaneously; dashed: rate = score"
    figure.suptitle(said, fontsize="small", color=QUIET)
    return shown


def _tables(
    y: ArrayLike,
    scores: ArrayLike,
    segments: ArrayLike,
    n_bins: int | str,
    confidence_level: float,
    pos_label: Hashable,
) -> dict[str, ReliabilityTable]:
    """The table of each segment, in order of name."""
    names, number = segment_kinds(segments)
    labels = np.asarray(y)
    values = np.asarray(scores)
    if not labels.shape[:1] == values.shape[:1] == number.shape:
        rule = f"have one entry per row, {labels.shape[0]}"
        raise InvalidTypeError("segments", rule, got=f"{number.size} entries")
    settings: dict[str, Any] = {
        "n_bins": n_bins,
        "confidence_level": shared_level(confidence_level, len(names)),
        "pos_label": pos_label,
        "classes": np.unique(labels),
    }
    order = sorted(range(len(names)), key=lambda place: str(names[place]))
    return {
        str(names[place]): reliability_table(
            labels[number == place], values[number == place], **settings
        )
        for place in order
    }
