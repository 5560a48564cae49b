"""What every threshold selects, as a picture with the thresholds that were found."""

from collections.abc import Callable

import numpy as np

from calibrant._typing import CodeArray, FloatArray
from calibrant.assess.threshold.proved_threshold import Threshold
from calibrant.cells.score_counts import ScoreCounts
from calibrant.text.numbers import percent
from calibrant.text.picture import Drawn, Picture, ReferenceLine
from calibrant.text.sentences import name_of

_FEWEST = 30  # selected rows; the precision of fewer is mostly chance
_POINTS = 400  # per curve
_MOST_PICTURES = 12

RowsOf = Callable[[object], tuple[FloatArray, CodeArray]]
"""Scores and labels of a segment, or of all rows for None."""


def threshold_pictures(found: Threshold, rows_of: RowsOf) -> tuple[Picture, ...]:
    """Precision, recall and the share selected at every threshold, in each segment."""
    segments = list(dict.fromkeys(cut.segment for cut in found.cuts))[:_MOST_PICTURES]
    pictures = (_picture(found, segment, *rows_of(segment)) for segment in segments)
    return tuple(one for one in pictures if one is not None)


def _picture(
    found: Threshold, segment: object, scores: FloatArray, codes: CodeArray
) -> Picture | None:
    if not scores.size:
        return None
    counts = ScoreCounts.of(scores, codes).from_above()
    positives = int(counts[2][-1])
    places = np.flatnonzero(counts[1] >= _FEWEST)
    if places.size < 2:
        return None
    if places.size > _POINTS:
        places = places[np.linspace(0, places.size - 1, _POINTS).astype(np.intp)]
    at, n, k = (column[places] for column in counts)
    curves = {
        "precision": k / n,
        "recall": k / max(positives, 1),
        "share selected": n / scores.size,
    }
    # between two scores, a threshold selects what the higher one does
    starts = at[::-1][:-1].tolist()
    drawn = tuple(
        Drawn(name, starts, values[::-1][1:].tolist(), kind="steps")
        for name, values in curves.items()
    )
    rules = tuple(
        ReferenceLine(f"{cut.target} {percent(cut.level)}", cut.threshold, is_upright=True)
        for cut in found.cuts
        if cut.segment == segment and cut.threshold is not None
    )
    return Picture(
        "Every threshold" if segment is None else name_of(segment),
        f"Observed precision, recall and share of rows selected, down to {_FEWEST} selected rows.",
        "threshold",
        "share of rows",
        drawn,
        rules,
        y_unit="share",
    )
