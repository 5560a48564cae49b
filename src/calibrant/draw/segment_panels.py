"""Small reliability diagrams side by side, one per segment."""

from __future__ import annotations

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
    confidence_level: float,
    scale: str,
    n_columns: int,
    **settings: Any,
) -> list[ReliabilityDisplay]:
    """A diagram for each segment, on a common scale; all intervals hold simultaneously.

    The settings are those of `reliability_table`.
    """
    tables = _tables(y, scores, segments, confidence_level, **settings)
    shown = [display(table) for table in tables.values()]
    plt = needed("matplotlib.pyplot", "plot", "plots are drawn")
    columns = min(n_columns, len(shown))
    n_lines = -(-len(shown) // columns)
    size = (3.1 * columns, 3.1 * n_lines + 0.4)
    figure, axes = plt.subplots(n_lines, columns, figsize=size, squeeze=False, layout="constrained")
    every = list(tables.values())
    limits = (*score_limits(every, None), highest_rate(every))
    for place, ax in enumerate(axes.flat):
        if place >= len(shown):
            ax.set_visible(False)
            continue
        how: dict[str, Any] = {"legend": False, "histogram": False, "difference": False}
        shown[place].plot(ax, scale=scale, limits=limits, **how)
        ax.set_title(list(tables)[place], fontsize="medium", loc="left")
        counted = rows(int(every[place].counts.sum()))
        ax.set_title(counted, fontsize="small", loc="right", color=QUIET)
        if place % columns:
            ax.set_ylabel("")
        if place + columns < len(shown):
            ax.set_xlabel("")
    level = percent(confidence_level)
    title = f"intervals: {level}, all bins and segments simultaneously; dashed: rate = score"
    figure.suptitle(title, fontsize="small", color=QUIET)
    return shown


def _tables(
    y: ArrayLike,
    scores: ArrayLike,
    segments: ArrayLike,
    confidence_level: float,
    **settings: Any,
) -> dict[str, ReliabilityTable]:
    """The table of each segment, in order of name."""
    names, number = segment_kinds(segments)
    labels = np.asarray(y)
    values = np.asarray(scores)
    if not labels.shape[:1] == values.shape[:1] == number.shape:
        rule = f"have one entry per row, {labels.shape[0]}"
        raise InvalidTypeError("segments", rule, got=f"{number.size} entries")
    level = shared_level(confidence_level, len(names))
    settings |= {"confidence_level": level, "classes": np.unique(labels)}
    order = sorted(range(len(names)), key=lambda place: str(names[place]))
    return {
        str(names[place]): reliability_table(
            labels[number == place], values[number == place], **settings
        )
        for place in order
    }
