"""Labels of two classes, coded as 0 and 1.

The positive class is named, or follows from labels such as 0 and 1, or no and yes.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike, CodeArray
from calibrant.errors import InvalidTypeError, InvalidValueError, warn_caller
from calibrant.params.arrays import as_array, as_column, check_present, is_missing
from calibrant.text.numbers import counted
from calibrant.text.sentences import Setting, Text, shown, words

SEVERAL_CLASSES: Text = (
    "for more classes, see ClassWiseCalibrator and TopLabelCalibrator in Python, and"
    " CalibratedClassifier for sets of labels (how-to guide: Multiclass calibration)"
)
"""What to do about labels of more than two classes."""

_CHUNK_ROWS = 1 << 17  # rows whose codes fit in the processor's cache
_UNAMBIGUOUS = ({0, 1}, {-1, 1})  # True == 1 and False == 0, so this includes bools


_USUAL = {"yes": "no", "y": "n", "true": "false", "pass": "fail", "good": "bad"}
"""Words that usually name the positive class, and their opposites."""
_SOFT: Text = (
    "labels between 0 and 1 are not outcomes; were ",
    Setting("scores"),
    " and ",
    Setting("y"),
    " swapped? Soft labels, which are probabilities, cannot be used: give what happened in each row,"
    " 0 or 1",
)


class UnexpectedLabelsError(InvalidValueError):
    """The data contain labels other than the two expected ones."""


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """The two classes, sorted, and which of them is positive."""

    labels: NDArray[Any]
    positive_index: Literal[0, 1]

    @property
    def positive(self) -> Any:
        """The positive label, as a plain Python value."""
        return self.labels[self.positive_index : self.positive_index + 1].tolist()[0]

    @property
    def negative(self) -> Any:
        """The negative label, as a plain Python value."""
        return self.labels[1 - self.positive_index : 2 - self.positive_index].tolist()[0]


CODED = Classes(np.array([0, 1]), 1)
"""Classes coded as 0 and 1."""


def encode_labels(
    y: ArrayLike | None,
    *,
    classes: ArrayLike | None,
    pos_label: Hashable,
    score_columns: int,
    several: Text = SEVERAL_CLASSES,
) -> tuple[CodeArray, Classes]:
    """Return labels as 0 and 1 (1 is `pos_label`), and the classes.

    `score_columns` is 2 if the scores are the output of `predict_proba`: its second column belongs
    to the second class, so the positive label need not be named. `several` is the advice for labels
    of more than two classes.
    """
    labels = as_column(y, "y")
    if labels.size == 0:
        raise InvalidValueError("y", "have at least one row", "an empty array")
    labels = of_one_kind(labels, "y")
    seen, rows = _kinds(labels, several)
    known = _two_classes(seen, classes, rows)
    if labels.dtype.kind in "biuf" and known.dtype.kind in "biuf":
        codes, bad = encode(labels, *known.tolist())
        if bad >= 0:
            raise _too_many(np.unique(labels), {}, several)
    else:
        codes = np.asarray(labels == known[1]).astype(np.uint8)
    positive = _positive_index(known, pos_label, score_columns)
    return (codes if positive == 1 else 1 - codes), Classes(known, positive)


def settle_classes(
    seen: Mapping[Hashable, int], *, classes: ArrayLike | None, pos_label: Hashable
) -> Classes:
    """Return the classes, given the distinct labels seen, wherever the rows are, and the number of
    rows with each.
    """
    if not seen:
        raise InvalidValueError("y", "have at least one row", "none")
    mixed = len({isinstance(kind, str) + 2 * isinstance(kind, bytes) for kind in seen}) > 1
    kinds = np.array(list(seen), dtype=object) if mixed else np.unique(np.array(list(seen)))
    if len(kinds) > 2:
        raise _too_many(kinds, seen, SEVERAL_CLASSES)
    kinds = of_one_kind(kinds, "y")
    known = _two_classes(kinds, classes, seen)
    return Classes(known, _positive_index(known, pos_label, score_columns=1))


def name_classes(classes: ArrayLike, pos_label: Hashable) -> Classes:
    """Return two named classes, without looking at labels."""
    known = _check_classes(classes)
    return Classes(known, _positive_index(known, pos_label, score_columns=1))


def classes_of(y: ArrayLike, known: Classes) -> NDArray[Any]:
    """Return the two classes of a batch of labels: the known ones, or -1 and 1 if 0 and 1 are known
    and the batch has -1.
    """
    with_minus = (known.negative, known.positive) == (0, 1) and np.any(as_array(y, "y") == -1)
    return np.array([-1, 1]) if with_minus else known.labels


def _kinds(labels: NDArray[Any], several: Text) -> tuple[NDArray[Any], dict[Hashable, int]]:
    """Return the distinct labels, and how many rows have each text label.

    For numbers, only the smallest and the largest are returned; the encoding detects others.
    """
    if labels.dtype.kind in "biuf":
        low = labels.min()
        high = labels.max()
        return np.array([low] if low == high else [low, high], dtype=labels.dtype), {}
    kinds, counts = np.unique(labels, return_counts=True)
    rows = dict(zip(kinds.tolist(), counts.tolist(), strict=True))
    if kinds.size > 2:
        raise _too_many(kinds, rows, several)
    return kinds, rows


def of_one_kind(labels: NDArray[Any], name: str) -> NDArray[Any]:
    """Return labels that can be compared with each other; raise if any is missing."""
    if labels.dtype.kind == "f":
        check_present(np.isnan(labels), labels, name)
    if labels.dtype.kind not in "biufOUST":
        raise InvalidTypeError(name, "contain numbers, bools or text", f"dtype {labels.dtype}")
    if labels.dtype.kind not in "OT":
        return labels
    check_present(np.array([is_missing(entry) for entry in labels]), labels, name)
    if all(isinstance(entry, str) for entry in labels) or all(
        isinstance(entry, bytes) for entry in labels
    ):
        return labels
    if all(
        isinstance(entry, bool | int | float | Decimal | np.number | np.bool_) for entry in labels
    ):
        numbers = np.array([plain_number(entry) for entry in labels.tolist()])
        if numbers.dtype.kind == "O":
            beyond = (
                entry
                for entry in labels.tolist()
                if np.array(plain_number(entry)).dtype.kind == "O"  # no native type of numpy
            )
            got = shown(next(beyond))
            raise InvalidValueError(name, "contain numbers that fit 64 bits", got=got)
        return of_one_kind(numbers, name)
    names = sorted({type(entry).__name__ for entry in labels})
    raise InvalidTypeError(
        name, "contain one kind of entry: numbers, bools or text", ", ".join(names)
    )


def plain_number(entry: Any) -> Any:
    """Convert Decimals, which databases return for large integers, to plain numbers.

    Anything else is returned unchanged.
    """
    if not isinstance(entry, Decimal) or not entry.is_finite():
        return entry
    return int(entry) if entry == entry.to_integral_value() else float(entry)


def _too_many(
    kinds: NDArray[Any], rows: Mapping[Hashable, int], several: Text
) -> UnexpectedLabelsError:
    """Return the error for more than two distinct labels; `rows` holds the number of rows of each."""
    few = ", ".join(repr(kind) for kind in kinds[:5].tolist()) + (", ..." if len(kinds) > 5 else "")
    advice: Text = _SOFT if _are_soft(kinds) else _spelling(rows) or several
    return UnexpectedLabelsError("y", "contain two classes", f"{len(kinds)}: {few}", advice)


def _are_soft(kinds: NDArray[Any]) -> bool:
    """Whether labels are probabilities: numbers between 0 and 1, and not only these two."""
    if kinds.dtype.kind != "f":
        return False
    inside = bool(((kinds >= 0.0) & (kinds <= 1.0)).all())
    return inside and bool((kinds != np.floor(kinds)).any())


def _spelling(rows: Mapping[Hashable, int]) -> str | None:
    """Advice for labels that differ only in spaces or case, given how many rows have each.

    None if there are none.

    >>> _spelling({"bad": 40, "good": 60, "BAD": 3})
    "did you mean 'bad'? 3 rows have 'BAD'"
    """
    known: dict[str, str] = {}
    wrong = []
    for text in sorted(
        (kind for kind in rows if isinstance(kind, str)),
        key=lambda kind: (-rows[kind], kind),
    ):
        usual = known.setdefault(" ".join(text.split()).casefold(), text)
        if usual != text:
            have = "has" if rows[text] == 1 else "have"
            wrong.append(f"did you mean {usual!r}? {counted(rows[text], 'row')} {have} {text!r}")
    return "; ".join(wrong[:3]) or None


def _two_classes(
    seen: NDArray[Any], classes: ArrayLike | None, rows: Mapping[Hashable, int]
) -> NDArray[Any]:
    if classes is None:
        if (spelling := _spelling(rows)) is not None:
            got = " and ".join(map(repr, seen.tolist()))
            raise UnexpectedLabelsError("y", "contain two classes", got, spelling)
        if seen.size == 1:
            only = seen.tolist()[0]
            if _are_soft(seen):
                raise UnexpectedLabelsError("y", "contain two classes", f"only {only!r}", _SOFT)
            example = Setting("classes", (0, 1) if only in (0, 1) else (only, "other"))
            name_both = (
                "if the other class is merely rare, name both classes, as in ",
                example,
                "; the intervals are then one-sided",
            )
            raise UnexpectedLabelsError(
                "y", "contain two classes", f"one class only, {only!r}", name_both
            )
        return seen
    known = _check_classes(classes)
    strange = [label for label in seen.tolist() if label not in known.tolist()]
    if strange:
        rule = ("contain only the labels ", Setting("classes", known.tolist()))
        named = dict.fromkeys(
            known.tolist(), sum(rows.values())
        )  # a spelling that the user named is the intended one
        advice = _spelling(named | {label: rows.get(label, 0) for label in strange})
        raise UnexpectedLabelsError("y", rule, repr(strange[0]), advice)
    return known


def _check_classes(classes: ArrayLike) -> NDArray[Any]:
    labels = as_array(classes, "classes")
    if labels.shape != (2,) or (known := np.unique(of_one_kind(labels, "classes"))).size != 2:
        raise InvalidValueError("classes", "be two different labels", shown(classes))
    return known


def _positive_index(known: NDArray[Any], pos_label: Hashable, score_columns: int) -> Literal[0, 1]:
    labels = known.tolist()
    pos_label = plain_number(pos_label)
    if pos_label is not None:
        # comparing a value that is not plain, such as an array, with == may give neither True nor
        # False
        plain = isinstance(pos_label, str | bytes | bool | int | float | np.generic)
        if not plain or pos_label not in labels:
            raise InvalidValueError(
                "pos_label", f"be one of the classes {labels}", shown(pos_label)
            )
        return cast(Literal[0, 1], labels.index(pos_label))
    if score_columns == 2 or (known.dtype.kind in "biuf" and set(labels) in _UNAMBIGUOUS):
        return 1
    if _are_soft(known):
        got = f"{labels[0]!r} and {labels[1]!r}"
        raise UnexpectedLabelsError("y", "contain two classes", got, _SOFT)
    for place, label in enumerate(labels):
        if opposite(label) == _word(labels[1 - place]) and _word(label) in _USUAL:
            taken = f"{label!r} is taken as the positive class, {labels[1 - place]!r} as the other"
            warn_caller(words((f"{taken}; to choose yourself, give ", Setting("pos_label", label))))
            return cast(Literal[0, 1], place)
    rule = (
        f"name the positive class, one of {labels}, unless the classes are 0 and 1, -1 and 1, or"
        " words such as no and yes"
    )
    raise InvalidValueError("pos_label", rule, "none")


def _word(label: Any) -> str:
    return label.strip().casefold() if isinstance(label, str) else ""


def opposite(label: Any) -> str | None:
    """The other of two usual words for a class, in lower case; None for any other label.

    >>> opposite("Yes"), opposite("bad"), opposite("late")
    ('no', 'good', None)
    """
    word = _word(label)
    return _USUAL.get(word) or next((key for key, other in _USUAL.items() if other == word), None)


def encode(labels: NDArray[Any], negative: Any, positive: Any) -> tuple[CodeArray, int]:
    """Labels of two kinds as 0 and 1.

    Parameters
    ----------
    labels : array of shape (n,), numeric or bool
    negative, positive : scalars
        The two labels.

    Returns
    -------
    codes : array of shape (n,), uint8
        1 where the label equals `positive`. Shares memory with bool or uint8 labels that are 0 and
        1 already.
    first_bad : int
        Index of the first label that is neither of the two, or -1. If there is one, the codes are
        meaningless.

    Examples
    --------
    >>> import numpy as np
    >>> encode(np.array([-1, 1, 1]), -1, 1)
    (array([0, 1, 1], dtype=uint8), -1)
    """
    small = labels.dtype == np.bool_ or labels.dtype == np.uint8
    if small and negative == 0 and positive == 1:
        codes: CodeArray = labels.view(np.uint8)
        if labels.dtype == np.bool_ or labels.shape[0] == 0 or codes.max() <= 1:
            return codes, -1
        return codes, int((codes > 1).argmax())
    codes = np.empty(labels.shape, np.uint8)
    known = np.empty(min(labels.shape[0], _CHUNK_ROWS), np.bool_)
    bad = -1
    for start in range(0, labels.shape[0], _CHUNK_ROWS):
        piece = labels[start : start + _CHUNK_ROWS]
        part = codes[start : start + _CHUNK_ROWS].view(np.bool_)
        good = known[: piece.shape[0]]
        np.equal(piece, positive, out=part)
        np.equal(piece, negative, out=good)
        np.logical_or(good, part, out=good)
        if bad < 0 and not good.all():
            bad = start + int(good.argmin())
    return codes, bad
