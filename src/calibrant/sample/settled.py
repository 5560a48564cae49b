"""From counts by label to a tally: which label is positive, and whether both passes saw the same
rows.
"""

from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from calibrant._typing import ArrayLike
from calibrant.cells.partition import Partition
from calibrant.cells.tally import Tally, WeightSums
from calibrant.params.labels import Classes, UnexpectedLabelsError, settle_classes
from calibrant.sample.counts import Counted, all_positive, of_one_label
from calibrant.sample.order_statistics import MovedRowsError
from calibrant.sample.taken_rows import Taken


def check_same_rows(counted: Counted, taken: Taken | None) -> None:
    """Raise an error if the rows left out are not the rows drawn."""
    seal = None if taken is None else taken.seal
    if seal is not None and counted.left_out != seal:
        rule = (
            "give the same rows each time they are read, so that rows which cut the bins are not"
            " counted"
        )
        got = (
            f"{seal.rows:,} drawn rows the first time and {counted.left_out.rows:,} the second, or"
            " others"
        )
        advice = "name an id column, scored(..., id=...), or write the data to a file"
        raise MovedRowsError("the data", rule, got=got, advice=advice)


def settle(
    counted: Counted,
    partition: Partition,
    classes: ArrayLike | None,
    pos_label: Hashable,
    weighted: bool,
) -> tuple[Tally, Classes]:
    """Return the tally, and the two classes among the labels seen."""
    seen = {
        kind: tally
        for kind, tally in counted.kinds.items()
        if tally.uncounted or tally.counts.any()
    }
    try:
        rows = {kind: tally.n_rows for kind, tally in seen.items()}
        known = settle_classes(rows, classes=classes, pos_label=pos_label)
    except UnexpectedLabelsError as error:
        if not counted.left_out.rows:
            error.got = f"{error.got} ({counted.where()})"
        raise
    n_regions = partition.n_regions
    no_rows = np.empty(0, dtype=np.uint8)
    no_weights = (
        WeightSums.of(np.empty(0), no_rows.astype(np.intp), no_rows, n_regions)
        if weighted
        else None
    )
    nothing = of_one_label(np.zeros(n_regions, dtype=np.int64), weights=no_weights)
    negative, positive = (
        counted.kinds.get(label, nothing) for label in (known.negative, known.positive)
    )
    return replace(negative + all_positive(positive), over=partition), known
