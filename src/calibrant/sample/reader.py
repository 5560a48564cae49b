"""One reader for scores and labels, from arrays or scored data; and the only place that asks which
of them an object is.
"""

from collections.abc import Hashable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calibrant._typing import ArrayLike, Seed
from calibrant.cells.partition import Partition
from calibrant.cells.segmented_partition import segment_kinds
from calibrant.errors import InvalidTypeError, NotTakenError
from calibrant.params.arrays import (
    as_frequencies,
    as_scores,
    as_weights,
    check_finite,
    check_same_length,
    column_count,
)
from calibrant.params.labels import encode_labels
from calibrant.params.random import RandomSource
from calibrant.sample.bounds import NO_BOUNDS, DataBounds
from calibrant.sample.facts import Reach
from calibrant.sample.groups import Groups
from calibrant.sample.rows import Rows
from calibrant.sample.sample import Sample, held_rows
from calibrant.sample.sources.memory import MemoryRows

if TYPE_CHECKING:
    from typing_extensions import TypeIs

ONE_EACH = "fit one for each segment, or use BinningCalibrator"
"""Advice for segments where one object is fitted to all rows."""
ONE_ROW_EACH = "one row of each group"
"""The purpose of a draw; see `RandomSource`."""
_PREDICT = "use predict for arrays"


def is_scored(data: object) -> "TypeIs[Sample | Rows]":
    """Whether this is scored data, from `calibrant.scored`, rather than an array."""
    return isinstance(data, Sample | Rows)


def rows_of(data: Sample | Rows) -> Rows:
    """The rows that a sample holds, or the rows themselves."""
    return held_rows(data) if isinstance(data, Sample) else data


def rows_in(data: object) -> Rows | None:
    """The rows of scored data; None for anything else, such as an array."""
    return rows_of(data) if is_scored(data) else None


def scored_rows(data: object) -> Rows:
    """The rows of a `Sample`; raise an error for anything else."""
    rows = rows_in(data)
    if rows is None:
        got = type(data).__name__
        raise InvalidTypeError("data", "be scored(...) data", got=got, advice=_PREDICT)
    return rows


def bound_of(data: object, name: str, given: Any) -> Any:
    """Return a bound that describes the data: the given one, or that of `scored(...)`.

    Two different bounds raise an error.
    """
    rows = rows_in(data)
    if rows is None:
        return given
    return rows.bounds.merged(name, given, rows.columns)


def in_memory(rows: Rows) -> "TypeIs[MemoryRows]":
    """Whether these rows are in memory."""
    return rows.in_memory


def read_rows(
    scores: ArrayLike | Sample | Rows,
    y: ArrayLike | None = None,
    *,
    classes: ArrayLike | None = None,
    pos_label: Hashable = None,
    segments: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    importance_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    partition: Partition | None = None,
    threads: int = 1,
    **bounds: Any,
) -> Rows:
    """Check the arguments of `fit`, and return them behind the common protocol of scored rows.

    Arrays become `MemoryRows`; `scored(...)` data are not read yet. Code that needs all rows at
    once calls `collect()` on the result. The rows carry their groups, weights, segments and bounds,
    so no function below needs these arguments.

    Parameters
    ----------
    scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`; or Sample
        Scores; with a partition by a function, the input of that function.
    y : array-like of shape (n,)
        Labels of two classes.
    classes, pos_label
        The two classes, if given, and the positive one.
    segments : array-like of shape (n,), optional
        The segment of each row.
    sample_weight : array-like of shape (n,), optional
        Whole numbers: how many identical rows each row stands for.
    importance_weight : array-like of shape (n,), optional
        Weights of rows in sums.
    groups : array-like of shape (n,), optional
        The group of each row: whole numbers, dates or text, equal for the rows of one group.
    partition : Partition, optional
        A partition fixed beforehand, which prepares the scores itself.
    threads : int
        Threads for very large data.
    **bounds
        What is known about the data beforehand, by the names of `DataBounds`; None if unknown.
        Those of `scored(...)` must agree.
    """
    if is_scored(scores):
        weighting = {"sample_weight": sample_weight, "importance_weight": importance_weight}
        check_nothing_beside(y=y, segments=segments, groups=groups, **weighting)
        refuse_segments(scores, partition)
        return rows_of(scores).with_classes(classes, pos_label).with_told_bounds(bounds)
    told = DataBounds(**bounds) if bounds else NO_BOUNDS
    # the inputs of a function are not scores, so their columns do not belong to classes
    of_score = partition is None or bool(partition.bins_by_segment)
    codes, known = encode_labels(
        y,
        classes=classes,
        pos_label=pos_label,
        score_columns=column_count(scores) if of_score else 1,
    )
    repeats = None if sample_weight is None else as_frequencies(sample_weight, len(codes))
    weights = None if importance_weight is None else as_weights(importance_weight, len(codes))
    if groups is not None and sample_weight is not None:
        advice = "repeat the rows instead"
        raise InvalidTypeError("sample_weight", "be None if rows have groups", advice=advice)
    together = None if groups is None else Groups.of(groups, len(codes))
    alike: dict[str, Any] = {"threads": threads, "groups": together, "bounds": told}
    if partition is not None:
        prepared = partition.prepare(scores, segments, positive_column=known.positive_index)
        check_same_length(prepared, codes)
        return MemoryRows(prepared, codes, known, repeats, weights, partition=partition, **alike)
    checked = as_scores(scores, positive_column=known.positive_index, finite=False)
    reach = Reach.of(checked)
    if not reach.is_finite:
        check_finite(checked, "scores")
    check_same_length(checked, codes)
    rows = MemoryRows(checked, codes, known, repeats, weights, reach=reach, **alike)
    return (
        rows if segments is None else rows.in_segments(*segment_kinds(segments))
    ).without_empty()


def read_judged(
    y: ArrayLike | Sample | Rows,
    scores: ArrayLike | None,
    *,
    classes: ArrayLike | None,
    pos_label: Hashable,
    **beside: Any,
) -> Rows:
    """Read labels and scores, in the argument order of metrics, which are about rows.

    `scored(...)` data take the place of the labels. `beside` are further arguments of `read_rows`.
    """
    if is_scored(y):
        check_nothing_beside(scores=scores)
        check_group_target(rows_of(y), "rows", "groups count by their rows")
        return read_rows(y, classes=classes, pos_label=pos_label, **beside)
    if scores is None:
        raise InvalidTypeError("scores", "be an array", got="None (NoneType)")
    if is_scored(scores):
        advice = "pass them first, in the place of the labels"
        raise InvalidTypeError("scores", "be an array", got="scored(...) data", advice=advice)
    return read_rows(scores, y, classes=classes, pos_label=pos_label, **beside)


def check_nothing_beside(**given: object) -> None:
    """Raise an error for arrays given in addition to scored data."""
    for name, value in given.items():
        if value is not None:
            raise InvalidTypeError(
                name, "be None with scored data", advice="name its column in scored(...) instead"
            )


def one_row_each(data: Rows, random_state: Seed = 0) -> Rows:
    """Return the data or, if rows have groups, one random row of each group, in memory.

    Groups are independent draws, and so are rows drawn from them. So a claim for independent rows
    holds, and is about a random row of a new group.
    """
    if data.columns.group is None:
        return data
    check_group_target(data, "groups", "one row of each group is used")
    rows = data.collect()
    if rows.groups is None:
        return rows
    source = RandomSource.of(random_state, ONE_ROW_EACH, rows=rows.fingerprint())
    drawn = rows.take(rows.groups.one_row_each(source))
    return replace(drawn, groups=None, one_of_each=(len(drawn), len(rows) - len(drawn)))


_ARGUMENTS = {"weight": "importance_weight", "group": "groups", "segment": "segments"}
"""From the role of a column to the argument with the same meaning."""


def refuse(data: object, reason: str, *roles: str, advice: str = "use BinningCalibrator") -> None:
    """Raise an error for weights, groups or segments of the data that cannot be used.

    They would change the answer, so they are not ignored.
    """
    rows = rows_in(data)
    if rows is None:
        return
    for role in roles:
        column = getattr(rows.columns, role)
        if column is not None:
            raise NotTakenError(
                _ARGUMENTS[role], f"be None: {reason}", got=f"{role}={column!r}", advice=advice
            )


def refuse_segments(data: object, partition: Partition | None) -> None:
    """Raise an error for segments in the data if the given partition has none."""
    if partition is not None and not partition.has_segments:
        reason = "the partition has no segments"
        refuse(data, reason, "segment", advice="leave the segments out")


def check_no_weights(data: object, reason: str) -> None:
    """Raise an error for a column of importance weights if they have no meaning."""
    refuse(data, reason, "weight")


def check_group_target(rows: Rows, possible: str, reason: str) -> None:
    """Raise an error if the data request a group target other than `possible`, the one that is
    guaranteed.
    """
    target = rows.bounds.group_target
    if rows.columns.group is not None and target not in (None, possible):
        raise NotTakenError("group_target", f"be {possible!r} here: {reason}", got=repr(target))
