"""Signs that rows are grouped, for commands that assume they are not."""

import shlex
from collections.abc import Mapping
from typing import Any

from calibrant._optional import pa
from calibrant.cli._show import result_json
from calibrant.text.numbers import nearest

_MOST_ROWS = 20_000
_TIMES = (
    "time",
    "timestamp",
    "datetime",
    "date",
    "day",
    "week",
    "month",
    "quarter",
    "year",
)


def signs_of(
    data: Any, labels: Mapping[str, Any], options: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The signs found in the first rows, as plain values; none if groups were named."""
    if options.get("group") is not None:
        return []
    from calibrant.assess.check.group_signs import group_signs

    return [result_json(sign) for sign in group_signs(data, **labels)]


def texts_of(signs: list[dict[str, Any]]) -> list[str]:
    """The warnings, for standard error and for reports."""
    return [sign["sentence"] for sign in signs]


def on_rows(
    data: Any,
    labels: Mapping[str, Any],
    options: Mapping[str, Any],
    sample: Any = None,
    **more: Any,
) -> dict[str, Any]:
    """What an answer says about its rows, or about a sample of them: notes, warnings, and entries
    of the JSON object.
    """
    facts = (data if sample is None else sample).facts(drawn=False)
    signs = signs_of(data, labels, options)
    entries = {**more, "n_skipped": facts.skipped, "signs_of_groups": signs}
    return {"notes": facts.notes, "warnings": texts_of(signs), "more": entries}


def on_first_rows(data: Any, labels: Mapping[str, Any]) -> list[str]:
    """Notes on the first rows: whether high scores go with the other class."""
    import numpy as np

    from calibrant.assess.check.group_signs import labelled_rows
    from calibrant.errors import CalibrantError
    from calibrant.sample.columns import first_rows_of

    table = first_rows_of(data, _MOST_ROWS)
    if table is None:
        return []
    try:
        seen = labelled_rows(table, data, **labels)
    except CalibrantError:  # for example, only one class among the first rows
        return []
    scores = np.asarray(seen.scores, dtype=np.float64)
    return _on_direction(scores, seen.codes, seen.known)


def on_time(data: Any, options: Mapping[str, Any]) -> list[str]:
    """A note if the data have a time column, because nothing here tests for changes over time."""
    time = options.get("time") or _time_column(data)
    if time is None:
        return []
    tested = f"calibrant check ... --time {shlex.quote(time)}"
    return [f"the fit assumes that nothing changed over {time!r}; {tested} tests it"]


def _time_column(data: Any) -> str | None:
    """The first date column, or a column named like a time.

    None if every such column has another role.
    """
    free = [name for name in data.schema.names if name not in data.columns.named.values()]
    dated = [name for name in free if pa.types.is_temporal(data.schema.field(name).type)]
    called = [name for name in free if name.lower().split("_")[-1] in _TIMES]
    return next(iter([*dated, *called]), None)


def _on_direction(scores: Any, codes: Any, known: Any) -> list[str]:
    """A note if high scores go with the other class, by five standard deviations."""
    import math

    from calibrant.assess.metrics.auc import delong

    n = codes.size
    n1 = int(codes.sum())
    if not 1 < n1 < n - 1:
        return []
    area = float(delong(codes, [scores])[0][0])
    if area > 0.5 - 5.0 * math.sqrt((n + 1) / (12.0 * n1 * (n - n1))):
        return []
    other = next(label for label in known.labels.tolist() if label != known.positive)
    return [
        f"high scores go with {other!r}, not with {known.positive!r} (AUC {nearest(area, 2)}): if"
        f" they are scores for {other!r}, give --pos-label {other}"
    ]
