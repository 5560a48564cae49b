"""A table as SQL that joins rows with a small table of pieces: one line for each piece, for all
outputs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calibrant.calibrators.tables.table import Steps, Table
from calibrant.sample.sql.curves import on_curve
from calibrant.sample.sql.dialects import Dialect
from calibrant.sample.sql.search import as_double, indented

_PIECES = "calibrant_pieces"
_ALIAS = "k"
_LIMITS = ("lower", "upper")


@dataclass(frozen=True, slots=True)
class Join:
    """A statement in two parts, around what is selected.

    Attributes
    ----------
    pieces : list of str
        The lines before SELECT, which write the pieces down.
    columns : dict
        From an output to its expression.
    condition : list of str
        The lines after FROM, which say which piece a row belongs to.
    """

    pieces: list[str]
    columns: dict[str, str]
    condition: list[str]


def joined_with_pieces(
    table: Table,
    chosen: Mapping[str, str],
    spelling: Dialect,
    score: str,
    segment: str | None,
    taken: Sequence[str],
) -> Join:
    """Return the parts of the statement; `taken` are names that the pieces must not have.

    A piece has a score if low <= score < high. Both are numbers, so that no score that is missing,
    NaN or infinite has a piece, also where NaN is sorted above all numbers.
    """
    held = {name.lower() for name in taken}
    name = _PIECES
    while name in held:
        name += "_"
    heads = _heads(table, chosen)
    rows = [row for steps in table.steps for row in _rows(table, steps, heads, spelling)]
    expressions = {output: _expression(table, output, spelling, score) for output in chosen}
    conditions = _conditions(table, spelling, score, segment)
    alias = f"{spelling.name(name)} AS {spelling.name(_ALIAS)}"
    joined = [
        f"LEFT JOIN {alias}",
        *indented([f"ON {conditions[0]}", *(f"AND {more}" for more in conditions[1:])]),
    ]
    return Join(_written(spelling, name, heads, rows), expressions, joined)


def _of_piece(spelling: Dialect, name: str) -> str:
    return f"{spelling.name(_ALIAS)}.{spelling.name(name)}"


def _heads(table: Table, chosen: Mapping[str, str]) -> list[str]:
    """The columns of the pieces."""
    heads = ["segment"] if table.is_segmented else []
    heads += ["low", "high"]
    computed = [
        output
        for output in chosen
        if table.lines is not None and output in ("calibrated", *_LIMITS)
    ]
    if computed:
        heads += (
            ["value"]
            if table.lines is not None and table.lines.beta
            else ["start", "value", "slope"]
        )
    return [*heads, *(output for output in chosen if output != "calibrated" or not computed)]


def _rows(table: Table, steps: Steps, heads: Sequence[str], spelling: Dialect) -> list[list[str]]:
    """The pieces of one segment; neighbours that differ in nothing are one."""
    texts = [_texts(table, region, heads, spelling) for region in range(table.calibrated.size)]
    cuts, regions = steps.runs(texts)
    lows = [steps.low, *cuts]
    highs = [*cuts, math.nextafter(steps.high, math.inf)]
    segment = [] if not table.is_segmented else [_segment(steps, spelling)]
    return [
        [*segment, spelling.number(low), spelling.number(high), *texts[region]]
        for low, high, region in zip(lows, highs, regions, strict=True)
        if region >= 0
    ]


def _segment(steps: Steps, spelling: Dialect) -> str:
    """The segment of a piece; NULL for all that are not named."""
    if not isinstance(steps.segment, str | int | float):
        return "NULL"
    return (
        spelling.text(steps.segment)
        if isinstance(steps.segment, str)
        else spelling.literal(steps.segment)
    )


def _texts(table: Table, region: int, heads: Sequence[str], spelling: Dialect) -> list[str]:
    """What the columns after the ends hold in a region."""
    texts = []
    for head in heads[heads.index("high") + 1 :]:
        if head == "region":
            texts.append(str(table.region_numbers[region]))
        elif head == "set":
            texts.append(spelling.text(table.set_names[region]))
        elif head in ("start", "slope") and table.lines is not None:
            texts.append(spelling.number(float(getattr(table.lines, head)[region])))
        else:
            output = "calibrated" if head == "value" else head
            texts.append(spelling.number(float(table.values(output)[region])))
    return texts


def _expression(table: Table, output: str, spelling: Dialect, score: str) -> str:
    """An output of the piece that a row is joined with; NULL without one."""
    if table.lines is None or output in ("region", "set"):
        return _of_piece(spelling, output)
    value, slope, start = (_of_piece(spelling, name) for name in ("value", "slope", "start"))
    offset = None if output == "calibrated" else _of_piece(spelling, output)
    curve = on_curve(table.lines, spelling, as_double(spelling, score), value, slope, start, offset)
    if offset is None and not table.lines.logit:
        return curve
    return f"CASE WHEN {value} IS NOT NULL THEN {curve} END"  # what is clipped ignores NULL


def _conditions(table: Table, spelling: Dialect, score: str, segment: str | None) -> list[str]:
    """What has to hold for a row and its piece."""
    number = as_double(spelling, score)
    conditions = [spelling.guard.format(score)] if spelling.guard else []
    conditions += [
        f"{number} >= {_of_piece(spelling, 'low')}",
        f"{number} < {_of_piece(spelling, 'high')}",
    ]
    if segment is None:
        return conditions
    own = _of_piece(spelling, "segment")
    named = table.segments
    column = (
        spelling.binary_text.format(segment) if named and isinstance(named[0], str) else segment
    )
    if not table.takes_others:
        return [*conditions, f"{column} = {own}"]
    if not named:
        return [*conditions, f"{segment} IS NOT NULL"]
    literals = [
        spelling.text(one) if isinstance(one, str) else spelling.literal(one) for one in named
    ]
    rest = f"{own} IS NULL AND {column} NOT IN ({', '.join(literals)})"  # which is not true of NULL
    return [*conditions, f"({column} = {own} OR ({rest}))"]


def _written(
    spelling: Dialect, name: str, heads: Sequence[str], rows: Sequence[Sequence[str]]
) -> list[str]:
    """The pieces as a table in the statement itself."""
    columns = [spelling.name(head) for head in heads]
    listed = [f"({', '.join(row)})" for row in rows]
    before = f"WITH {spelling.name(name)} ({', '.join(columns)}) AS ("
    body = ["VALUES", *indented(_with_commas(listed))]
    if spelling.rows_as_structs:
        before = f"WITH {spelling.name(name)} AS ("
        first = ", ".join(
            f"{value} AS {column}" for value, column in zip(rows[0], columns, strict=True)
        )
        body = [
            "SELECT * FROM UNNEST([",
            *indented(_with_commas([f"STRUCT({first})", *listed[1:]])),
            "])",
        ]
    elif spelling.rows_in_from:
        body = ["SELECT * FROM (VALUES", *indented(_with_commas(listed)), ")"]
    return [before, *indented(body), ")"]


def _with_commas(lines: Sequence[str]) -> list[str]:
    return [*(f"{line}," for line in lines[:-1]), lines[-1]]
