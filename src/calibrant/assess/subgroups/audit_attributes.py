"""An audit of subgroups by attributes: its settings, and the rows it is about, wherever they are.

Rows in files, in DuckDB, Polars, Dask or Spark may be too many for memory. Then a random sample of a
million rows cuts the attributes and tests whether any subgroup is off, and one pass counts all rows
by attributes and a fine cell of the score; that answers which, by how much, and by how much at
most.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from calibrant._typing import BoolArray
from calibrant.assess.metrics.bin_sums import forecasts_of, read_forecasts
from calibrant.assess.subgroups.audit_subgroups import (
    Question,
    audit_entries,
    audit_subgroups,
    gate,
)
from calibrant.assess.subgroups.entries import SubgroupEntries
from calibrant.assess.subgroups.result import TARGETS, SubgroupAudit
from calibrant.cells.attribute_levels import AttributeLevels
from calibrant.cells.keyed_sums import KeyedSums
from calibrant.cells.subgroup_family import MOST_ORDERS, SubgroupFamily
from calibrant.errors import InvalidValueError
from calibrant.params.attributes import AttributeColumn, read_attributes
from calibrant.params.labels import settle_classes
from calibrant.params.random import Draw, RandomSource
from calibrant.params.rules import Choice, Integer, Number
from calibrant.sample.attribute_columns import attribute_columns
from calibrant.sample.columns import table_of
from calibrant.sample.cross_counts import (
    VARIANCE_STEPS,
    CountCross,
    CrossCounts,
    CrossKey,
    joined_sums,
    score_sums,
)
from calibrant.sample.reader import in_memory
from calibrant.sample.rows import Rows

_SHARE = Number("a share above 0 and below 1", 0.0, 1.0, open_low=True, open_high=True)
MOST_IN_MEMORY = 1_000_000
"""With more rows, a random sample tests whether any subgroup is off."""


def checked_question(order: Any, min_share: Any, target: Any, confidence_level: float) -> Question:
    """The settings of a subgroup audit, with its parameters checked."""
    number = Integer(1).check("order", order)
    if number > MOST_ORDERS:
        raise InvalidValueError("order", f"be at most {MOST_ORDERS}", got=str(number))
    share = _SHARE.check("min_share", min_share)
    about = Choice(TARGETS).check("target", target)
    return Question(number, share, about, float(confidence_level))


def audit_attributes(
    y: Any,
    data: Rows,
    attributes: Any,
    question: Question,
    **labels: Any,
) -> SubgroupAudit:
    """Audit subgroups of the rows of `data`, which were read from `y`. `labels` has the classes and
    the positive one, if known.
    """
    is_plain = data.columns.weight is None and data.columns.group is None
    counts_do = is_plain and question.target == "rows"
    if counts_do and not in_memory(data) and isinstance(attributes, list | tuple):
        known = data.known_rows()
        n_rows = sum(data.sizes().values()) if known is None else known
        if n_rows > MOST_IN_MEMORY:
            return _audit_counts(data, n_rows, list(attributes), question, **labels)
    whole = data.collect()
    columns = attribute_columns(y, attributes, len(whole))
    if whole.weights is not None:
        positive = np.asarray(whole.weights > 0.0)
        columns = [column.take(positive) for column in columns]
    return audit_subgroups(forecasts_of(whole), columns, question)


def _audit_counts(
    data: Rows, n_rows: int, names: list[str], question: Question, **labels: Any
) -> SubgroupAudit:
    """Audit subgroups as in `audit_subgroups`, for rows in an engine or in files; `labels` are the
    classes and the positive one, if known.
    """
    from calibrant.sample.sources.arrow import from_arrow

    # about a million random rows, in memory
    share = MOST_IN_MEMORY / n_rows
    source = RandomSource.of(0, "rows that test subgroups", rows=n_rows)
    draw = Draw.of_share(source.key, share) if share < 1.0 else None
    of_label = data.columns.only("label")
    wanted = {name: role for role, name in of_label.named.items()}
    table = table_of(data, wanted | dict.fromkeys(names, "attribute"), draw)
    rows = from_arrow(table, of_label, threads=1, progress=False)
    columns = read_attributes({name: table.column(name) for name in names}, table.num_rows)
    drawn = read_forecasts(rows, None, **labels)
    levels = [AttributeLevels.of(column) for column in columns]
    family = question.family(levels, columns)
    sample = SubgroupEntries.of_rows(family, drawn.scores, drawn.codes)
    p_value = gate(sample, question, drawn)
    pairs = zip(levels, columns, strict=True)
    kept = tuple(_without_rare(level, column, question.min_share) for level, column in pairs)
    key = CrossKey(kept)
    counted = data.fold(CountCross(data.columns, key))
    counted.faults.check()
    entries, first = _entries(counted, key, question, **labels)
    return audit_entries(entries, first, question, p_value, len(drawn))


def _without_rare(
    level: AttributeLevels, column: AttributeColumn, min_share: float
) -> AttributeLevels:
    """An attribute without its very rare values, which cannot form a subgroup.

    A value that at least `min_share` of all rows have is left out with probability below 1e-8: the
    rows at hand are a random sample, and the value's count would have to be six standard deviations
    below its expectation.
    """
    if level.is_numeric or column.place is None:
        return level
    counts = np.bincount(column.place[column.place >= 0], minlength=len(column.values))
    enough = counts + 6.0 * np.sqrt(counts) + 20.0 >= min_share * len(column)
    pairs = zip(column.values, enough.tolist(), strict=True)
    frequent = {value for value, is_frequent in pairs if is_frequent}
    return replace(level, values=tuple(value for value in level.values if value in frequent))


def _entries(
    counted: CrossCounts, key: CrossKey, question: Question, **labels: Any
) -> tuple[SubgroupEntries, BoolArray]:
    """The counts of both labels, and which of them are in the first half."""
    sums = {label: joined_sums(parts) for label, parts in counted.parts.items()}
    seen = {label: int(part.sums[:, 0].sum()) for label, part in sums.items()}
    positive = settle_classes(seen, **labels).positive
    keys = [part.key for part in sums.values()]
    values = [
        np.column_stack([part.sums, part.sums[:, 0] * (label == positive)])
        for label, part in sums.items()
    ]
    whole = KeyedSums.of(np.concatenate(keys), np.concatenate(values))
    n, high, low, variance, hits = whole.sums.T
    rows = n.astype(np.float64)
    codes, kind, half = key.parts(whole.key)
    family = SubgroupFamily.of(key.levels, codes, question.order, question.min_share, rows)
    totals = score_sums(high, low)
    variances = variance / VARIANCE_STEPS
    entries = SubgroupEntries(family, rows, hits.astype(np.float64), totals, variances, kind)
    return entries, np.asarray(half == 0)
