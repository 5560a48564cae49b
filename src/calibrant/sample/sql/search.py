"""The bin of a score, and the value of a curve there, as SQL: nested comparisons, within the range of
scores, for each segment.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from calibrant._typing import BoolArray, FloatArray
from calibrant.cells.bins import Bins
from calibrant.cells.lines import LARGEST, MOST_LOGIT, Lines
from calibrant.sample.sql.dialects import Dialect

INDENT = "  "

Node = TypeVar("Node")


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


def regions_by_segment(
    dialect: Dialect, column: str, partition: Bins, taken: BoolArray | None = None
) -> dict[Any, list[str]]:
    """The region of a score for each segment, as lines of SQL; NULL for regions not in `taken`."""
    found: dict[Any, list[str]] = {}
    first = 0
    for segment, part in partition.bins_by_segment.items():
        regions = range(first, first + part.n_regions)
        leaves = [str(region) if taken is None or taken[region] else "NULL" for region in regions]
        found[segment] = bin_of(dialect, column, part.low, part.high, part.cuts.tolist(), leaves)
        first += part.n_regions
    return found


def literals(dialect: Dialect, column: FloatArray | tuple[str, ...]) -> str:
    """The entries of a column of numbers or texts, separated by commas."""
    return ", ".join(
        map(dialect.literal, column.tolist() if isinstance(column, np.ndarray) else column)
    )


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


def balanced(
    cuts: Sequence[float], leaves: Sequence[Node], fork: Callable[[float, Node, Node], Node]
) -> Node:
    """Join the leaves between the cuts into one node: `fork(cut, below, at_or_above)`.

    >>> balanced([1.0, 2.0, 3.0], ["a", "b", "c", "d"], lambda cut, low,
    ...     high: f"({low} <{cut:g}> {high})")
    '((a <1> b) <2> (c <3> d))'
    """
    if len(leaves) == 1:
        return leaves[0]
    middle = len(leaves) // 2
    below = balanced(cuts[: middle - 1], leaves[:middle], fork)
    above = balanced(cuts[middle:], leaves[middle:], fork)
    return fork(cuts[middle - 1], below, above)


def on_curve(
    lines: Lines,
    dialect: Dialect,
    score: str,
    value: str,
    slope: str,
    start: str,
    offset: str | None = None,
) -> str:
    """The prediction, or a limit, given SQL for a score and for the numbers of its region."""
    z = f"{value} + {slope} * ({score} - {start})"
    if lines.beta is not None:
        p = clipped(dialect, score, *map(dialect.number, lines.ends))
        a, b = map(dialect.number, lines.beta)
        one = dialect.number(1.0)
        z = f"{a} * LN({p}) - {b} * LN({one} - {p}) + {value}"
    if lines.logit:
        z = clipped(dialect, z, dialect.number(-MOST_LOGIT), dialect.number(MOST_LOGIT))
        z = f"{dialect.number(1.0)} / ({dialect.number(1.0)} + EXP(-({z})))"
    if offset is None:
        return z
    return clipped(dialect, f"{z} + ({offset})", dialect.number(0.0), dialect.number(1.0))


def clipped(dialect: Dialect, text: str, low: str, high: str) -> str:
    """A value clipped to two limits; engines disagree about the result for NULL."""
    least, most = dialect.extremes
    return f"{most}({least}({text}, {high}), {low})"
