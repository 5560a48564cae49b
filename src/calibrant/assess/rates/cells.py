"""Cells of the score: sets of items with similar scores.

They are determined by the scores of all items, never by labels.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike, BoolArray, FloatArray, IntArray
from calibrant.errors import InvalidValueError
from calibrant.params.arrays import as_column, as_scores, at_row, is_number, missing_entry
from calibrant.params.labels import of_one_kind
from calibrant.text.numbers import counted

MOST_VERDICTS = 10
"""Scores with more distinct values than this are treated as numbers and grouped into cells."""

_MOST_WORDS = 50
_LABELS_PER_CELL = 25
_MOST_CELLS = 20
# limit for scores used as probabilities: bets on a sure thing lose too much when it fails
_SUREST = 0.02


@dataclass(frozen=True, eq=False)
class Scores:
    """What is known about every item before labels are seen.

    Attributes
    ----------
    values : array
        Numbers, or the codes of verdicts given as words.
    words : tuple of str
        The verdicts, if they are words; empty for numbers.
    """

    values: FloatArray
    words: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.values.size

    def take(self, rows: BoolArray) -> "Scores":
        """The scores of some items."""
        return Scores(self.values[rows], self.words)

    @cached_property
    def counted(self) -> tuple[FloatArray, IntArray]:
        """The distinct values, in increasing order, and how many items have each."""
        return np.unique(self.values, return_counts=True)

    @property
    def distinct(self) -> FloatArray:
        """The distinct values, in increasing order."""
        return self.counted[0]

    @property
    def ranked(self) -> FloatArray:
        """The scores, or the numbers of verdicts, so that a verdict's code makes no difference."""
        if self.distinct.size > MOST_VERDICTS:
            return self.values
        return np.searchsorted(self.distinct, self.values).astype(np.float64)

    @property
    def are_probabilities(self) -> bool:
        """Whether they are numbers between 0 and 1, with more than two distinct values."""
        inside = bool(self.distinct[0] >= 0.0 and self.distinct[-1] <= 1.0)
        return inside and not self.words and self.distinct.size > 2

    @cached_property
    def upper(self) -> BoolArray | None:
        """Which items are in the upper of two strata; None if all scores are equal.

        Two verdicts are the strata themselves. With several words, the most common one is compared
        with the rest. Numbers are split where the variance between both sides is largest (Otsu
        1979).
        """
        distinct, counts = self.counted
        if distinct.size == 1:
            return None
        if distinct.size == 2:
            return np.asarray(self.values == distinct[1])
        if self.words:
            return np.asarray(self.values == distinct[counts.argmax()])
        below = np.cumsum(counts)[:-1]
        above = self.values.size - below
        sums = np.cumsum(counts * np.ldexp(distinct, -exponent_of(distinct)))
        gap = (sums[-1] - sums[:-1]) / above - sums[:-1] / below
        between = below.astype(np.float64) * above * gap * gap
        cut = distinct[int(between.argmax()) + 1]
        return np.asarray(self.values >= cut)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreCells:
    """The cell of each item, and the rate in each cell according to the scores.

    Attributes
    ----------
    of_item : int array
    counts : int array
        Items in each cell; with a pilot, its items.
    prior : float array or None
        The mean score in each cell, if scores are probabilities.
    """

    of_item: IntArray
    counts: IntArray
    prior: FloatArray | None


def read_scores(scores: ArrayLike | None) -> Scores:
    """Scores as numbers or as codes of words; one for each item, none missing."""
    shape = getattr(scores, "shape", ())
    has_two = isinstance(shape, tuple) and len(shape) == 2 and shape[1] == 2
    array = as_scores(scores) if has_two else as_column(scores, "scores")
    if array.dtype.kind in "OUST" and array.ndim == 1:
        array = of_one_kind(array, "scores")
        if array.size and isinstance(array.tolist()[0], str):
            return _of_words(array)
    values = np.asarray(as_scores(array), dtype=np.float64)
    if values.size == 0:
        raise InvalidValueError("scores", "have at least one item", got="none")
    return Scores(values)


def _of_words(array: NDArray[Any]) -> Scores:
    blank = np.array([not word.strip() for word in array.tolist()])
    if blank.any():
        raise missing_entry("scores", int(blank.argmax()), int(blank.sum()), "an empty text")
    # a verdict is the same in any case, and its number does not depend on the alphabet
    plain = [" ".join(word.split()).casefold() for word in array.tolist()]
    written: dict[str, str] = {}
    for verdict, word in zip(plain, array.tolist(), strict=True):
        written.setdefault(verdict, word.strip())
    if len(written) > _MOST_WORDS:
        rule = f"be numbers, or at most {_MOST_WORDS} verdicts in words"
        got = f"{counted(len(written), 'word')}, such as {array.tolist()[0]!r}"
        wrong = np.array([not is_number(text) for text in array.tolist()])
        if (
            wrong.any() and not wrong.all()
        ):  # most are numbers, or some: name the first that is none
            first = int(wrong.argmax())
            got = at_row(repr(array.tolist()[first]), first, int(wrong.sum()))
        raise InvalidValueError("scores", rule, got=got)
    code = {verdict: float(place) for place, verdict in enumerate(written)}
    values = np.array([code[verdict] for verdict in plain])
    return Scores(values, tuple(written.values()))


def cells_of(scores: Scores, n_labels: int, pilot: BoolArray | None = None) -> ScoreCells:
    """One cell for each verdict.

    For numbers, cells with about equally many items; more labels give more cells. With a pilot,
    cells and their numbers are those of its items alone, and words that it does not have share one
    more cell.
    """
    seen = scores if pilot is None else scores.take(pilot)
    edges = seen.distinct[1:]
    if not seen.words and seen.distinct.size > MOST_VERDICTS:
        n_cells = int(np.clip(n_labels // _LABELS_PER_CELL, 2, _MOST_CELLS))
        ranks = np.linspace(0.0, 1.0, n_cells + 1)[1:-1]
        edges = np.unique(np.quantile(seen.values, ranks, method="higher"))
        edges = edges[edges > seen.distinct[0]]
    codes = np.searchsorted(edges, scores.values, side="right")
    if seen.words and seen.distinct.size < scores.distinct.size:
        codes[~np.isin(scores.values, seen.distinct)] = seen.distinct.size
    of_seen = codes if pilot is None else codes[pilot]
    counts = np.bincount(of_seen, minlength=int(codes.max()) + 1)
    prior = None
    if seen.are_probabilities:
        sums = np.bincount(of_seen, weights=seen.values, minlength=counts.size)
        prior = np.clip(sums / np.maximum(counts, 1), _SUREST, 1.0 - _SUREST)
    return ScoreCells(codes.astype(np.int64), counts.astype(np.int64), prior)


def exponent_of(values: FloatArray) -> int:
    """The power of two that scales values to at most 1.

    Sums and squares of scores near 1e300, or 1e-300, leave the range of floats. Scaling by a power
    of two is exact.

    >>> exponent_of(np.array([-6.0, 0.5]))
    3
    """
    return int(np.frexp(np.abs(values).max())[1])
