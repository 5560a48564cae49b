"""Arrow batches as plain arrays, checked once; faulty rows are reported and left out.

Also the base class of work on batches.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant import kernels
from calibrant._optional import pa
from calibrant._typing import CodeArray, FloatArray, IndexArray, Keys
from calibrant.cells.bins import OTHER
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.arrays import LARGEST_WEIGHT, entries_at
from calibrant.params.labels import encode, plain_number
from calibrant.params.random import Draw
from calibrant.sample.arrow_columns import absent_rows, nan_rows, null_rows, numbers, plain_column
from calibrant.sample.faults import Fault, Faults, Place
from calibrant.sample.row_keys import id_keys, position_keys
from calibrant.text.sentences import did_you_mean

MOST_KINDS = 20
"""The largest number of distinct labels that are counted."""
_NO_PARTS = ("pending", "kept", "also")

_Unfit = tuple[Fault, NDArray[np.bool_]]
"""A rule, and a mask of the rows that break it."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of the columns to read.

    Rows without an entry in the column `pending` are skipped.

    Rows are drawn by group if there is one, else by id, else by position. Segments not in `kept`
    are read as one segment, `OTHER`; None keeps all.
    """

    score: str
    label: str | None = None
    segment: str | None = None
    weight: str | None = None
    id: str | None = None
    group: str | None = None
    pending: str | None = None
    kept: frozenset[Hashable] | None = None
    also: tuple[str, ...] = ()
    """Further columns to read, which have no role here."""

    @property
    def named(self) -> dict[str, str]:
        """The column name of each role."""
        pairs = (
            (part.name, getattr(self, part.name))
            for part in fields(self)
            if part.name not in _NO_PARTS
        )
        return {part: name for part, name in pairs if name is not None}

    @property
    def to_read(self) -> list[str]:
        """The columns that must be read, without duplicates."""
        names = (*self.named.values(), self.pending, *self.also)
        return list(dict.fromkeys(name for name in names if name is not None))

    @property
    def keyed(self) -> bool:
        """Whether rows are drawn by the entries of a column, not by position."""
        return self.id is not None or self.group is not None

    def only(self, *parts: str) -> "Columns":
        """Keep the score and these roles; the same rows are skipped."""
        chosen = {part: getattr(self, part) for part in parts}
        return Columns(self.score, **chosen, pending=self.pending, kept=self.kept)

    def check(self, names: Sequence[str]) -> None:
        """Raise an error for columns that the data do not have, and for a label column with a
        second role.
        """
        for part, name in self.named.items():
            if part != "label":
                self.check_no_label(part, name)
        if self.group is not None and self.group == self.score:
            rule = "be a different column from the score"
            raise InvalidValueError("group", rule, got="the same", column=self.group)
        if self.group is not None and self.id is not None:
            rule = "be None with a group"
            advice = "whole groups are drawn, by the entries of their column"
            raise InvalidValueError("id", rule, got=repr(self.id), advice=advice)
        for part, name in self.named.items():
            check_name(part, name, names)

    def check_no_label(self, part: str, name: str) -> None:
        """Raise an error if the column of another role is the label column.

        Rows that are selected, ordered or divided by their labels are not a random sample, and
        nothing would be guaranteed.
        """
        if self.label is not None and name == self.label:
            rule = "be a different column from the label"
            raise InvalidValueError(part, rule, got="the same", column=name)


NO_COLUMNS = Columns("")
"""No column has a role."""


def check_name(part: str, name: str, names: Sequence[str]) -> None:
    """Raise an error unless the data have exactly one column with this name."""
    count = list(names).count(name)
    if count > 1:
        raise InvalidValueError(
            part, "appear once", got=f"{count} columns of that name", column=name
        )
    if count == 0:
        shown = ", ".join(map(repr, list(names)[:12])) + (", ..." if len(names) > 12 else "")
        advice = did_you_mean(name, names)
        raise InvalidValueError(
            part, "be in the data", got=f"columns {shown}", advice=advice, column=name
        )


def missing_column(role: str) -> InvalidValueError:
    """The error for a required column that was not named."""
    return InvalidValueError(
        role, f"name the column of {role}s", got="None", advice=f"use scored(..., {role}=...)"
    )


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """The distinct labels or segments of a batch, and the index of each row's entry among them."""

    names: tuple[Any, ...]
    number: IndexArray | CodeArray

    @classmethod
    def joined(cls, batches: Iterable["Coded | None"]) -> "Coded | None":
        """The entries of batches that each number their own; None if no batch has any."""
        code: dict[Any, int] = {}
        parts = []
        for coded in filter(None, batches):
            places = [code.setdefault(name, len(code)) for name in coded.names]
            parts.append(np.array(places, dtype=np.intp)[coded.number])
        return cls(tuple(code), np.concatenate(parts)) if parts else None

    def __getitem__(self, index: Any) -> "Coded":
        return Coded(self.names, self.number[index])

    def pooled(self, kept: frozenset[Hashable] | None) -> "Coded":
        """The same entries, with all that are not kept merged into one, `OTHER`, which is last."""
        if kept is None or kept.issuperset(self.names):
            return self
        names = (*(name for name in self.names if name in kept), OTHER)
        codes = {name: code for code, name in enumerate(names)}
        number = np.array([codes.get(name, len(names) - 1) for name in self.names], dtype=np.intp)
        return Coded(names, number[self.number])

    def rows(self) -> dict[Hashable, int]:
        """Count the rows of each entry, without entries that have no rows."""
        counts = np.bincount(self.number, minlength=len(self.names)).tolist()
        return {name: rows for name, rows in zip(self.names, counts, strict=True) if rows}


@dataclass(frozen=True, slots=True, eq=False)
class BatchRows:
    """The usable rows of a batch: finite scores, and the other requested columns."""

    scores: NDArray[Any]
    labels: Coded | None = None
    segments: Coded | None = None
    weights: FloatArray | None = None
    keys: Keys = field(
        default_factory=lambda: np.empty(0, dtype=np.uint64)
    )  # empty unless requested
    origin: IndexArray | None = (
        None  # positions of these rows in the batch; None if these are all of its rows
    )
    skipped: int = 0  # rows of the batch without a label
    faults: Faults = field(default_factory=Faults)  # of rows of the batch that were left out
    threads: int = 1  # for very large batches, those of rows in memory

    def __len__(self) -> int:
        return len(self.scores)

    @classmethod
    def joined(cls, parts: Sequence["BatchRows"]) -> "BatchRows":
        """The rows of several batches."""
        weights = [part.weights for part in parts if part.weights is not None]
        return cls(
            np.concatenate([part.scores for part in parts] or [np.empty(0)]),
            Coded.joined(part.labels for part in parts),
            Coded.joined(part.segments for part in parts),
            np.concatenate(weights) if weights else None,
            np.concatenate([part.keys for part in parts] or [np.empty(0, dtype=np.uint64)]),
        )

    def take(self, index: IndexArray | NDArray[np.bool_]) -> Self:
        """The rows at `index`, or where a mask is true."""
        place = (
            np.flatnonzero(index) if index.dtype == np.bool_ else index.astype(np.intp, copy=False)
        )
        return replace(
            self,
            scores=self.scores[index],
            labels=entries_at(self.labels, index),
            segments=entries_at(self.segments, index),
            weights=entries_at(self.weights, index),
            keys=self.keys[index] if self.keys.size else self.keys,
            origin=place if self.origin is None else self.origin[place],
        )

    def in_batch(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Convert a mask of these rows to a mask of the rows of the batch."""
        whole = np.zeros(
            len(self) if self.origin is None else int(self.origin.max(initial=-1)) + 1, dtype=bool
        )
        whole[slice(None) if self.origin is None else self.origin] = chosen
        return whole

    def first_places(self, labels: Coded, place: Place) -> dict[Hashable, Place]:
        """The place of the first row of each of the first labels."""
        found: dict[Hashable, Place] = {}
        for code, label in enumerate(labels.names[: MOST_KINDS + 1]):
            chosen = labels.number == code
            row = int(chosen.argmax()) if chosen.size else 0
            if chosen.size and chosen[row]:
                found[label] = place.after(row if self.origin is None else int(self.origin[row]))
        return found

    def drawn_by(self, draw: Draw) -> NDArray[np.bool_]:
        """Return whether each row is drawn."""
        return draw.chosen(self.keys, self.by_segment()) if draw.limits else draw.chosen(self.keys)

    def by_segment(self) -> list[tuple[Any, Any]]:
        """Return each segment's name and rows; None and all rows if there are no segments."""
        if self.segments is None:
            return [(None, slice(None))]
        names = self.segments.names
        return list(zip(names, grouped(self.segments.number, len(names)), strict=True))

    def scores_by_segment(self) -> dict[Hashable, NDArray[Any]]:
        """The scores of each segment, and of all rows under the name None."""
        parts = {name: self.scores[index] for name, index in self.by_segment()}
        return parts | {None: self.scores}


def grouped(number: IndexArray | CodeArray, n_groups: int) -> list[IndexArray]:
    """Return the rows of each group, in order, given the index of each row's group."""
    # numpy uses radix sort for 16-bit integers
    order = np.argsort(number.astype(np.uint16) if n_groups <= 2**16 else number, kind="stable")
    ends = np.cumsum(np.bincount(number, minlength=n_groups)).tolist()
    return [order[start:end] for start, end in pairwise([0, *ends])]


def read_batch(batch: Any, columns: Columns, place: Place, *, keys: bool = False) -> BatchRows:
    """Read the columns of a record batch; with `keys`, also compute a key for each row."""
    read = {part: plain_column(batch.column(name)) for part, name in columns.named.items()}
    scores, unfit = _scores(read["score"], columns.score)
    unfit += _missing_entries(read, columns)
    weights = None
    if columns.weight is not None:
        weights = numbers(read["weight"], columns.weight, "weight").astype(np.float64)
        outside = ~((weights >= 0.0) & (weights <= LARGEST_WEIGHT)) & ~null_rows(read["weight"])
        if outside.any():
            rule = f"be finite, >= 0 and at most {LARGEST_WEIGHT:g}"
            unfit.append((Fault("weight", columns.weight, rule), outside))
    skipped = (
        None
        if columns.pending is None
        else absent_rows(plain_column(batch.column(columns.pending)))
    )
    faults, bad = _faulty_rows(unfit, skipped, place)
    good = None
    if bad is not None:  # faulty rows are left out; the caller raises the faults
        good = np.flatnonzero(~bad)
        read = {part: column.take(good) for part, column in read.items()}
        scores = scores[good]
        weights = entries_at(weights, good)
    row_keys = np.empty(0, dtype=np.uint64)
    if keys:
        row_keys = _row_keys(read, columns, place, len(batch), good)
    return BatchRows(
        scores,
        None if columns.label is None else coded_labels(read["label"], columns.label),
        (
            None
            if columns.segment is None
            else _encoded(read["segment"], "segment", columns.segment).pooled(columns.kept)
        ),
        weights,
        row_keys,
        good,
        0 if skipped is None else int(np.count_nonzero(skipped)),
        faults,
    )


def _missing_entries(read: dict[str, Any], columns: Columns) -> list[_Unfit]:
    """Rows with a missing entry in some column, null or NaN; NaN among scores and weights has its
    own faults.
    """
    unfit = []
    names = columns.named
    for part, column in read.items():
        name = names[part]
        if column.null_count:
            unfit.append((Fault(part, name, "have no missing values"), null_rows(column)))
        nans = nan_rows(column) if part in ("label", "segment", "group") else None
        if nans is not None:
            unfit.append((Fault(part, name, "contain no NaN"), nans))
    return unfit


def _faulty_rows(
    unfit: list[_Unfit], skipped: NDArray[np.bool_] | None, place: Place
) -> tuple[Faults, NDArray[np.bool_] | None]:
    """Return the faults of rows that are not skipped, and a mask of rows that are faulty or
    skipped.

    The mask is None if there are none.
    """
    faults = Faults()
    bad = skipped
    for fault, rows in unfit:
        wrong = rows if skipped is None else rows & ~skipped
        faults += Faults.of(fault, wrong, place)
        bad = wrong if bad is None else bad | wrong
    return faults, bad


def _row_keys(
    read: dict[str, Any], columns: Columns, place: Place, n_rows: int, good: IndexArray | None
) -> Keys:
    """Return a key for each good row: by group, else by id, else by position among all rows of the
    batch.
    """
    if columns.group is not None:
        return id_keys(read["group"], columns.group, "group")
    if columns.id is not None:
        return id_keys(read["id"], columns.id)
    by_position = position_keys(place.key, n_rows)
    return by_position if good is None else by_position[good]


def _scores(column: Any, name: str) -> tuple[NDArray[Any], list[_Unfit]]:
    """Return the scores, and for each rule a mask of the rows that break it."""
    scores = numbers(column, name, "score")
    if kernels.first_nonfinite(scores) < 0:
        return scores, []
    nans = np.isnan(scores) & ~null_rows(column)
    return scores, [
        (Fault("score", name, "contain no NaN"), nans),
        (Fault("score", name, "contain no infinity"), np.isinf(scores)),
    ]


def coded_labels(column: Any, name: str) -> Coded:
    """The distinct labels in a column without nulls, and the index of each row's label."""
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        values = np.asarray(column.to_numpy(zero_copy_only=False))
        codes, bad = encode(values, 0, 1)
        if bad < 0:
            return Coded((False, True) if pa.types.is_boolean(kind) else (0, 1), codes)
        distinct, number = np.unique(values, return_inverse=True)
        return Coded(tuple(distinct.tolist()), number)
    return _encoded(column, "label", name)


def _encoded(column: Any, role: str, name: str) -> Coded:
    """Return the distinct entries of a column without nulls, and the index of each row's entry."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    number = np.asarray(encoded.indices.to_numpy(zero_copy_only=False)).astype(np.intp)
    rows = np.bincount(number, minlength=len(encoded.dictionary))
    used = np.flatnonzero(rows)  # a dictionary may have unused and duplicate entries
    kinds = [plain_number(entry) for entry in encoded.dictionary.take(used).to_pylist()]
    names = {kind: code for code, kind in enumerate(dict.fromkeys(kinds))}
    plain = str | int | float | bytes if role == "label" else str | int | float
    strange = next((kind for kind in kinds if not isinstance(kind, plain)), None)
    if strange is not None:
        got = f"{column.type}, such as {strange!r}"
        raise InvalidTypeError(role, "contain numbers, bools or text", got=got, column=name)
    codes = np.zeros(rows.size, dtype=np.intp)
    codes[used] = [names[kind] for kind in kinds]
    return Coded(tuple(names), codes[number])


Result = TypeVar("Result")
"""The result of some batches. Those of two parts of the data can be added."""


@dataclass(frozen=True, slots=True)
class Work(Generic[Result]):
    """A function of one batch. It is sent to where the data are, so it holds only plain values."""

    data_columns: Columns
    roles: ClassVar[tuple[str, ...]] = ()
    """Roles of the columns that it reads, besides the score."""
    on_rows: ClassVar[bool] = True
    """Whether it is a function of checked rows; if not, it reads other columns of a batch itself."""
    nothing: ClassVar[Any]
    """The result for no rows, to which the results of batches are added."""

    @property
    def columns(self) -> Columns:
        """The columns it reads."""
        return self.data_columns.only(*self.roles)

    @property
    def is_large(self) -> bool:
        """Whether the result of one part of the data takes megabytes."""
        return False

    @property
    def needs_keys(self) -> bool:
        """Whether the work needs the keys of rows, as a draw does: without ids and groups, these are
        positions among all rows.
        """
        return getattr(self, "draw", None) is not None

    def __call__(self, batch: Any, place: Place) -> Result:
        """The result of one record batch."""
        return self.of_rows(read_batch(batch, self.columns, place, keys=self.needs_keys), place)

    def of_rows(self, rows: BatchRows, place: Place) -> Result:
        """The result of the checked rows of one batch, which rows in memory already are."""
        raise NotImplementedError

    def total(self, results: Iterable[Result]) -> Result:
        """The result of all batches."""
        total: Result = reduce(add, results, self.nothing)
        return total
