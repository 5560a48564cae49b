"""Items: their scores, the labels of the labelled ones, and the groups in which they were drawn."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike, BoolArray, IntArray
from calibrant.assess.rates.cells import Scores, read_scores
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.arrays import (
    as_column,
    check_same_length,
    is_missing,
    missing_entry,
)
from calibrant.params.labels import encode_labels, opposite
from calibrant.text.numbers import counted
from calibrant.text.sentences import shown

UNLABELLED = -1
"""The code of an item without a label."""

_NUMBERS = (0, 1)
_SWAPPED = "are the scores and labels swapped? Only labels may be missing"
_SEVERAL = "leave an entry empty where nobody looked, and merge other classes into these two"


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """All items.

    Attributes
    ----------
    scores : Scores
    codes : int array
        1 for the positive class, 0 for the other, -1 without a label.
    groups : int array or None
        The group of each item, numbered from 0.
    order : int array or None
        If labels arrive one by one: when each item was labelled.
    seed : int
        The seed of the order of the bets.
    """

    scores: Scores
    codes: IntArray
    groups: IntArray | None = None
    order: IntArray | None = None
    seed: int = 0

    def __len__(self) -> int:
        return self.codes.size

    @property
    def sequential(self) -> bool:
        """Whether labels arrive one by one."""
        return self.order is not None

    @property
    def units(self) -> IntArray:
        """The number of each item's unit, which is drawn as a whole: its group, or the item alone."""
        return np.arange(len(self)) if self.groups is None else self.groups

    @property
    def unit_sizes(self) -> IntArray:
        """The number of items in each unit."""
        return np.bincount(self.units)

    @property
    def rare_labels(self) -> float:
        """The average number of labels in the smaller of the two strata of scores."""
        strata = self.scores.upper
        share = 0.0 if strata is None else float(strata.mean())
        return min(share, 1.0 - share) * self.n_labels

    @property
    def labelled(self) -> BoolArray:
        """Which items have a label."""
        return np.asarray(self.codes != UNLABELLED)

    @property
    def n_labels(self) -> int:
        """How many items have a label."""
        return int(self.labelled.sum())

    @property
    def positives(self) -> int:
        """How many labels are positive."""
        return int((self.codes == 1).sum())

    def take(self, rows: BoolArray) -> "Items":
        """Some of the items; groups are renumbered."""
        groups = None
        if self.groups is not None:
            groups = np.unique(self.groups[rows], return_inverse=True)[1]
        order = None if self.order is None else self.order[rows]
        return replace(
            self,
            scores=self.scores.take(rows),
            codes=self.codes[rows],
            groups=groups,
            order=order,
        )


def read_items(
    y: ArrayLike | None,
    scores: ArrayLike | None,
    groups: ArrayLike | None,
    pos_label: Hashable,
) -> tuple[Items, Any]:
    """The items, and the positive label."""
    try:
        found = read_scores(scores)
    except InvalidValueError as error:
        one_column = scores is not None and getattr(scores, "ndim", 1) == 1
        # labels may be missing, scores may not
        if one_column and _entries(y)[1].all() and not _entries(scores)[1].all():
            raise replace(error, advice=_SWAPPED) from None
        raise
    entries, present = _entries(y)
    check_same_length(found.values, entries)
    if not present.any():
        raise InvalidValueError(
            "y",
            "contain at least one label",
            got="none",
            advice="label some items drawn at random",
        )
    labels = entries[present]
    coded, known = encode_labels(
        labels,
        classes=_classes(labels, pos_label),
        pos_label=pos_label,
        score_columns=1,
        several=_SEVERAL,
    )
    codes = np.full(entries.size, UNLABELLED, dtype=np.int64)
    codes[present] = coded
    items = Items(found, codes)
    if groups is not None:
        items = replace(items, groups=_group_numbers(groups, items))
    positive = known.positive
    if isinstance(positive, float) and positive.is_integer():
        positive = int(positive)
    return items, positive


def _entries(y: ArrayLike | None) -> tuple[NDArray[Any], BoolArray]:
    """The labels, and where there is one: None, NaN, null and empty text are not labels."""
    if (
        isinstance(y, np.ndarray)
        and not isinstance(y, np.ma.MaskedArray)
        and y.dtype.kind in "biuf"
    ):
        array = as_column(y, "y")
        return array, np.asarray(array == array)
    if y is None or isinstance(y, str | bytes | dict | set):
        raise InvalidTypeError(
            "y", "be an array of labels, missing where there is none", got=shown(y)
        )
    listed = _listed(y)
    blank = [is_missing(one) or (isinstance(one, str) and not one.strip()) for one in listed]
    entries = np.empty(len(listed), dtype=object)
    entries[:] = listed
    return entries, ~np.array(blank, dtype=bool)


def _listed(y: Any) -> list[Any]:
    """The entries as Python objects, from any library."""
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(y, name):
            found = getattr(y, name)()
            break
    else:
        found = list(y) if isinstance(y, list | tuple) else as_column(y, "y").tolist()
    if any(isinstance(entry, list | tuple) for entry in found):
        raise InvalidValueError("y", "have shape (n,)", got="rows of several labels")
    return list(found)


def _classes(labels: NDArray[Any], pos_label: Hashable) -> tuple[Any, Any] | None:
    """The two classes if all labels are equal, which is normal here; None otherwise."""
    first = labels[0]
    if any(label != first for label in labels.tolist()):
        return None
    if isinstance(first, str):
        if pos_label is None:
            if (usual := opposite(first)) is not None:
                return first, usual
            rule = f"name the positive class, as all labels are {first!r}"
            raise InvalidValueError("pos_label", rule, got="none")
        other = pos_label if pos_label != first else f"not {first}"
        return first, other
    if first in _NUMBERS:
        return _NUMBERS
    return (-1, 1) if first == -1 else None


def check_entries(name: str, entries: NDArray[Any], n_items: int) -> None:
    """Raise an error unless there is an entry for each item."""
    if entries.size != n_items:
        got = f"{entries.size} entries"
        raise InvalidValueError(name, f"have one entry per score, {n_items}", got=got)


def _group_numbers(groups: ArrayLike, items: Items) -> IntArray:
    """Groups numbered from 0; a group must be labelled entirely or not at all."""
    names = as_column(groups, "groups")
    check_entries("groups", names, len(items))
    if names.dtype.kind in "Of":  # items without a group would count as one group
        missing = [row for row, name in enumerate(names.tolist()) if is_missing(name)]
        if missing:
            raise missing_entry("groups", missing[0], len(missing), str(names[missing[0]]))
    if names.dtype.kind == "O":
        names = names.astype(str)
    numbers = np.unique(names, return_inverse=True)[1]
    sizes = np.bincount(numbers)
    labels = np.bincount(numbers, weights=items.labelled)
    partly = np.flatnonzero((labels > 0) & (labels < sizes))
    if partly.size:
        example = names[numbers == partly[0]][0]
        got = f"{counted(partly.size, 'group')} labelled in part, such as {str(example)!r}"
        advice = (
            "label every item in each group you drew; if you drew individual items, leave"
            " groups out: the rate among these items does not need them"
        )
        raise InvalidValueError("groups", "be labelled whole or not at all", got=got, advice=advice)
    return numbers.astype(np.int64)
