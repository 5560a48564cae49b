"""The bin of a score as SQL: nested comparisons, within the range of scores, for each segment."""

from collections.abc import Iterable, Sequence

import numpy as np

from calibrant.sample.sql.dialects import Dialect
from calibrant.sample.sql.tree import balanced

LARGEST = float(np.finfo(np.float64).max)
"""The largest finite double: as a score limit it accepts every finite score."""

INDENT = "  "


def bin_of(
    dialect: Dialect,
    column: str,
    low: float,
    high: float,
    cuts: Sequence[float],
    leaves: Sequence[str],
) -> list[str]:
    """The leaf between the cuts around a score, as lines of SQL; NULL for a score outside the
    range.
    """
    score = as_double(dialect, column)
    if dialect.most_nested is not None and len(cuts) > dialect.most_nested:
        return in_range(dialect, column, low, high, _halved(cuts, leaves, score))
    return in_range(dialect, column, low, high, nested(dialect, score, cuts, leaves))


def as_double(dialect: Dialect, column: str) -> str:
    """A score column, compared as doubles: a cut rounded to 32 bits would move scores into the next
    bin.
    """
    return f"CAST({column} AS {dialect.double})"


def in_range(dialect: Dialect, column: str, low: float, high: float, body: list[str]) -> list[str]:
    """The body if the score is a finite number from low to high, else NULL.

    NULL, NaN and infinities are excluded, even where NaN sorts above all numbers.
    """
    score = as_double(dialect, column)
    conditions = [dialect.guard.format(column)] if dialect.guard else []
    conditions += [
        (
            f"{score} >= {dialect.number(low)}"
            if low > -LARGEST
            else f"{score} > {dialect.number(-np.inf)}"
        ),
        (
            f"{score} <= {dialect.number(high)}"
            if high < LARGEST
            else f"{score} < {dialect.number(np.inf)}"
        ),
    ]
    return [f"CASE WHEN {' AND '.join(conditions)} THEN", *indented(body), "END"]


def nested(dialect: Dialect, score: str, cuts: Sequence[float], leaves: Sequence[str]) -> list[str]:
    """A balanced tree of comparisons, as deep as log2 of the leaves."""

    def fork(cut: float, below: list[str], above: list[str]) -> list[str]:
        test = f"CASE WHEN {score} < {dialect.number(cut)} THEN"
        return [test, *indented(below), "ELSE", *indented(above), "END"]

    return balanced(cuts, [[leaf] for leaf in leaves], fork)


def by_segment(
    column: str, bodies: Iterable[tuple[str, list[str]]], other: list[str] | None = None
) -> list[str]:
    """The body for a row's segment, given pairs of a segment's literal and its body.

    `other` is the body for all other segments; without it they give NULL. A NULL segment gives
    NULL.
    """
    rest = (
        [] if other is None else [f"CASE WHEN {column} IS NOT NULL THEN", *indented(other), "END"]
    )
    lines = [line for literal, body in bodies for line in (f"WHEN {literal} THEN", *indented(body))]
    if not lines:
        return rest
    return [f"CASE {column}", *lines, *(["ELSE", *indented(rest)] if rest else []), "END"]


def indented(lines: Iterable[str]) -> list[str]:
    """Indent lines; a line break inside a text is unchanged."""
    return [INDENT + line for line in lines]


def one_line(lines: Iterable[str]) -> str:
    """Join lines that contain no text literals into one."""
    return " ".join(line.strip() for line in lines)


def _halved(cuts: Sequence[float], leaves: Sequence[str], score: str) -> list[str]:
    """Search an array of cuts in Spark, with steps of halving length.

    It is padded so that no step leaves it.

    The array is a single text that is split: Spark does that once, before it reads rows. A text of
    thousands of numbers costs little; thousands of expressions would not fit into its memory.
    """
    bits = len(cuts).bit_length()
    padded = [*map(repr, cuts), *["Infinity"] * (2**bits - 1 - len(cuts))]
    place = "_place"
    step = "_step"
    while (
        place in score.lower() or step in score.lower()
    ):  # inside a lambda its variables hide columns with that name
        place = f"{place}_"
        step = f"{step}_"
    steps = ", ".join(str(2**bit) for bit in reversed(range(bits)))
    found = [
        f"{INDENT}1 + aggregate(array({steps}), 0, ({place}, {step}) -> {place} + CASE WHEN",
        (
            f"{INDENT * 2}element_at({_split(padded, 'DOUBLE')}, {place} + {step}) <= {score} THEN"
            f" {step} ELSE 0 END)"
        ),
        ")",
    ]
    if "NULL" not in leaves and not leaves[0].startswith(("'", "CAST")):
        kind = "DOUBLE" if leaves[0].endswith("D") else "INT"
        return [
            "element_at(",
            f"{INDENT}{_split([leaf.removesuffix('D') for leaf in leaves], kind)},",
            *found,
        ]
    places = {leaf: place for place, leaf in enumerate(dict.fromkeys(leaves), start=1)}
    numbers = [str(places[leaf]) for leaf in leaves]
    return [
        "element_at(",
        f"{INDENT}array({', '.join(places)}),",
        f"{INDENT}element_at({_split(numbers, 'INT')},",
        *indented(found),
        ")",
    ]


def _split(values: Sequence[str], kind: str) -> str:
    return f"CAST(split('{','.join(values)}', ',') AS ARRAY<{kind}>)"
