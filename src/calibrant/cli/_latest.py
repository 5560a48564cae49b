"""`--holdout last`: calibrate on the most recent rows."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calibrant._optional import pa
from calibrant.cli._errors import RefusedError
from calibrant.errors import InvalidValueError
from calibrant.text.numbers import rows

if TYPE_CHECKING:
    from calibrant.sample.sources.arrow import ArrowData

DEFAULT_SIZE = 0.25  # share of the rows, as in CalibratedClassifier
_LARGE_GROUPS = (
    "; groups with many rows are more often among the most recent, and the guarantee is about such"
    " groups"
)


def latest(data: "ArrowData", time: str | None, size: float | None) -> tuple["ArrowData", str]:
    """Return the most recent rows, in memory, and a sentence that says which they are.

    Rows with the same time stay together. A group is dated by its last row and stays whole, so
    groups with many rows are more often among the most recent. Without a time column, the last rows
    of the data are the most recent.
    """
    import numpy as np

    from calibrant.classifier.folds import of_latest
    from calibrant.params.rules import FRACTION_OR_COUNT
    from calibrant.sample.arrow_columns import absent_rows
    from calibrant.sample.columns import column_of, table_of
    from calibrant.sample.row_keys import id_keys
    from calibrant.sample.sources.arrow import from_arrow
    from calibrant.sample.time_order import read_times

    whole = data.with_columns(replace(data.columns, pending=None))
    table = table_of(whole, {name: part for part, name in whole.columns.named.items()})
    n_rows = table.num_rows
    columns = data.columns
    times: Any = (
        np.arange(n_rows) if time is None else read_times(column_of(whole, time, "time"), n_rows)
    )
    labelled = np.ones(n_rows, dtype=bool)
    if (
        columns.pending is not None
        and (absent := absent_rows(_one_chunk(table, columns.pending))) is not None
    ):
        labelled = ~absent
    keys = None
    if columns.group is not None:
        groups = _one_chunk(table, columns.group)
        if groups.null_count:
            raise InvalidValueError(
                "group", "have no missing values", f"{groups.null_count:,}", column=columns.group
            )
        keys = id_keys(groups, columns.group, "group")[labelled]
    n_units = int(labelled.sum()) if keys is None else np.unique(keys).size
    wanted = FRACTION_OR_COUNT.check("calibration_size", DEFAULT_SIZE if size is None else size)
    count = max(1, round(wanted * n_units)) if isinstance(wanted, float) else int(wanted)
    if count > n_units:
        unit = "rows" if keys is None else "groups"
        raise RefusedError(
            "--calibration-size", f"be at most {n_units:,}, the number of {unit}", got=f"{count:,}"
        )
    moments = np.unique(times, return_inverse=True)[1]
    late = np.zeros(n_rows, dtype=bool)
    late[labelled] = of_latest(moments[labelled], keys, count)
    late |= ~labelled & (moments >= moments[late].min())
    since = "" if time is None else f", of {time} {times[late].min()} to {times[late].max()}"
    sentence = (
        f"calibrated on the most recent {rows(int(late.sum()))} of {n_rows:,}{since}; the rest "
        "were not used"
    )
    sentence += "" if keys is None else _LARGE_GROUPS
    return from_arrow(table.filter(pa.array(late)), columns, threads=1, progress=False), sentence


def _one_chunk(table: Any, name: str) -> Any:
    return table.column(name).combine_chunks()
