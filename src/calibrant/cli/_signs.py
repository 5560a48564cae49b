"""Signs that rows belong together, for commands that assume that they do not."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from calibrant._text import render
from calibrant.cli._output import warn
from calibrant.cli._words import in_options

_MOST_ROWS = 20_000


def signs_of(data: Any, labels: Mapping[str, Any], options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a look at the first rows finds, as plain values; nothing where groups were named."""
    if options.get("group") is not None:
        return []
    from calibrant._find_groups import find_groups

    return [{**asdict(sign), "text": render(sign.text, in_options)} for sign in find_groups(data, **labels)]


def show_signs(signs: list[dict[str, Any]]) -> None:
    """Each sign as a warning on standard error."""
    for sign in signs:
        warn(sign["text"])


def on_direction(data: Any, labels: Mapping[str, Any]) -> list[str]:
    """A note where the first rows show that high scores go with the other class, by five standard deviations."""
    import numpy as np

    from calibrant.errors import CalibrantError
    from calibrant.metrics.auc import delong
    from calibrant.rows.arrow import from_arrow
    from calibrant.rows.columns import first_rows_of

    table = first_rows_of(data, _MOST_ROWS)
    if table is None:
        return []
    try:
        seen = from_arrow(table, data.columns.only("label"), threads=1, progress=False).with_classes(**labels).collect()
    except CalibrantError:  # such as one class among the first rows
        return []
    n, n1 = seen.codes.size, int(seen.codes.sum())
    if not 1 < n1 < n - 1:
        return []
    area = float(delong(seen.codes, [np.asarray(seen.scores, dtype=np.float64)])[0][0])
    if area > 0.5 - 5.0 * np.sqrt((n + 1) / (12.0 * n1 * (n - n1))):
        return []
    other = next(label for label in seen.known.labels.tolist() if label != seen.known.positive)
    return [
        f"high scores go with {other!r}, not with {seen.known.positive!r} (AUC {area:.2f}): if they are scores of "
        f"{other!r}, give --pos-label {other}"
    ]
