"""Align the decimal points of the numbers in a column."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?|-?inf")
_DIGIT = "\u2007"  # a space as wide as a digit
_POINT = "\u2008"  # a space as wide as a full stop


def align_decimals(column: Sequence[str]) -> list[str]:
    r"""Pad the numbers of a column with spaces as wide as digits.

    Cells with the same words between their numbers are aligned number by number; other cells, such
    as empty ones, are unchanged.

    >>> seen = {"\u2007": "_", "\u2008": "'"}
    >>> for text in align_decimals(["0.1", "12", "", "-", "0.25 (0.1 to 0.3)", "0.5 (0.25 to 0.75)"]):
    ...     print("".join(seen.get(letter, letter) for letter in text))
    0.1
    12'_
    <BLANKLINE>
    -
    0.25 (0.1_ to 0.3)_
    0.5_ (0.25 to 0.75)
    """
    by_words: dict[tuple[str, ...], list[int]] = {}
    for place, text in enumerate(column):
        if _NUMBER.search(text):
            by_words.setdefault(tuple(_NUMBER.split(text)), []).append(place)
    padded = list(column)
    for words, places in by_words.items():
        cells = [_NUMBER.findall(column[place]) for place in places]
        ends = [_widest(numbers) for numbers in zip(*cells, strict=True)]
        for place, numbers in zip(places, cells, strict=True):
            padded[place] = _joined(words, numbers, ends)
    return padded


def aligned_rows(rows: Iterable[Sequence[str]], first: int = 0) -> list[list[str]]:
    """Rows of cells, with columns aligned from the column `first` on."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    done = [
        align_decimals(cells) if place >= first else cells for place, cells in enumerate(columns)
    ]
    return [list(row) for row in zip(*done, strict=True)]


def aligned_entries(
    entries: Sequence[Mapping[str, str]], names: Iterable[str] = ("region", "verdict")
) -> list[dict[str, str]]:
    """Rows given as mappings, aligned entry by entry, except for the keys in `names`."""
    keys = list(entries[0]) if entries else []
    columns = {key: [entry[key] for entry in entries] for key in keys}
    for key in set(keys) - set(names):
        columns[key] = align_decimals(columns[key])
    return [{key: columns[key][place] for key in keys} for place in range(len(entries))]


def _widest(numbers: Sequence[str]) -> int:
    """The largest number of characters after the integer part."""
    return max(len(_fraction(number)) for number in numbers)


def _fraction(number: str) -> str:
    """What follows the integer part: the point and all digits after it."""
    return number[len(re.match(r"-?(?:[\d,]+|inf)", number)[0]) :]  # type: ignore[index]


def _joined(words: Sequence[str], numbers: Sequence[str], ends: Sequence[int]) -> str:
    """Alternate words and padded numbers; the padding of the last number comes at the end."""
    pads = []
    for number, widest in zip(numbers, ends, strict=True):
        fraction = _fraction(number)
        missing = widest - len(fraction)
        point = _POINT if missing and not fraction else ""
        pads.append(point + _DIGIT * (missing - len(point)))
    last = pads.pop()
    parts = [words[0]]
    for number, pad, after in zip_longest(numbers, pads, words[1:], fillvalue=""):
        parts.append(f"{number}{pad}{after}")
    return "".join(parts) + last
