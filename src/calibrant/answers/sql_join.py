"""A table as SQL that joins rows with a small table of pieces.

Each piece of a curve has its own line. Values that many pieces share, such as the limits of a bin,
are in a second table, of bins.
"""

import math
from collections.abc import Collection, Mapping, Sequence

from calibrant.calibrators.table import Segment, Steps, Table
from calibrant.cells.lines import Lines
from calibrant.sample.sql.dialects import Dialect
from calibrant.sample.sql.search import as_double, indented, on_curve

_PIECES = "calibrant_pieces"
_BINS = "calibrant_bins"
_ALIAS = "k"
_BIN_ALIAS = "b"
_BIN = "bin"
_LIMITS = ("lower", "upper")


def joined_with_pieces(
    table: Table,
    chosen: Mapping[str, str],
    spelling: Dialect,
    score: str,
    segment: str | None,
    taken: Sequence[str],
) -> tuple[list[str], dict[str, str], list[str]]:
    """Return the lines before SELECT, which define the pieces; the expression of each output; and
    the lines after FROM, which determine the piece of a row.

    `taken` holds names that the pieces must not use.

    A score belongs to a piece if low <= score < high. Both ends are numbers, so a score that is
    missing, NaN or infinite has no piece, even where NaN sorts above all numbers.
    """
    held = {name.lower() for name in taken}
    on_line = _line_heads(table, chosen)
    shared = [output for output in chosen if output != "calibrated"] if on_line else []
    own = [*on_line, *([] if on_line else chosen)]
    # values that several pieces of a curve share are written once, and numbered
    of_bin = _texts(table, shared, spelling)
    bins: dict[tuple[str, ...], int] = {}
    ends = ["segment", "low", "high"] if table.is_segmented else ["low", "high"]
    heads = [*ends, *own, *([_BIN] if shared else [])]
    texts = list(map(list, _texts(table, own, spelling)))
    if shared:
        for row, values in zip(texts, of_bin, strict=True):
            row.append(str(bins.setdefault(values, len(bins) + 1)))
    rows = [row for steps in table.steps for row in _rows(table, steps, texts, spelling)]
    pieces = _free(_PIECES, held)
    written = _written(spelling, pieces, heads, rows)
    conditions = _conditions(table, spelling, score, segment)
    joined = [
        f"LEFT JOIN {spelling.name(pieces)} AS {spelling.name(_ALIAS)}",
        *indented([f"ON {conditions[0]}", *(f"AND {more}" for more in conditions[1:])]),
    ]
    if shared:
        name = _free(_BINS, held)
        written[-1] += ","
        numbered = [[str(number), *values] for values, number in bins.items()]
        written += _written(spelling, name, [_BIN, *shared], numbered)
        same = f"{_of_bin(spelling, _BIN)} = {_of_piece(spelling, _BIN)}"
        joined += [
            f"LEFT JOIN {spelling.name(name)} AS {spelling.name(_BIN_ALIAS)}",
            *indented([f"ON {same}"]),
        ]
    written[0] = f"WITH {written[0]}"
    expressions = {
        output: _expression(table, output, spelling, score, on_line) for output in chosen
    }
    return written, expressions, joined


def _free(name: str, held: Collection[str]) -> str:
    """A name that no table of the statement has."""
    while name in held:
        name += "_"
    return name


def _of_bin(spelling: Dialect, name: str) -> str:
    return f"{spelling.name(_BIN_ALIAS)}.{spelling.name(name)}"


def _of_piece(spelling: Dialect, name: str) -> str:
    return f"{spelling.name(_ALIAS)}.{spelling.name(name)}"


def _line_heads(table: Table, chosen: Mapping[str, str]) -> list[str]:
    """The columns of a curve's line, if one is requested."""
    if table.lines is None or not {"calibrated", *_LIMITS} & chosen.keys():
        return []
    if table.lines.beta:
        return ["value"]
    return ["value", "slope"] if _starts_low(table, table.lines) else ["start", "value", "slope"]


def _starts_low(table: Table, lines: Lines) -> bool:
    """Whether each line starts at the low end of its piece, or is flat, so that any start will do."""
    for steps in table.steps:
        lows = [steps.low, *steps.cuts.tolist()]
        highs = [*steps.cuts.tolist(), steps.high]
        for low, high, region in zip(lows, highs, steps.regions.tolist(), strict=True):
            level = lines.slope[region] == 0.0 and math.isfinite(high - low)
            if region >= 0 and lines.start[region] != low and not level:
                return False
    return True


def _rows(
    table: Table, steps: Steps, texts: Sequence[Sequence[str]], spelling: Dialect
) -> list[list[str]]:
    """The pieces of one segment; identical neighbours are merged."""
    starts = [None] * len(texts) if table.lines is None else table.lines.start.tolist()
    cuts, regions = steps.runs(list(zip(map(tuple, texts), starts, strict=True)))
    lows = [steps.low, *cuts]
    highs = [*cuts, math.nextafter(steps.high, math.inf)]
    segment = []
    if table.is_segmented:  # NULL for all segments that are not named
        own = steps.segment
        segment = [segment_text(own, spelling) if isinstance(own, str | int | float) else "NULL"]
    return [
        [*segment, spelling.number(low), spelling.number(high), *texts[region]]
        for low, high, region in zip(lows, highs, regions, strict=True)
        if region >= 0
    ]


def segment_text(segment: Segment, spelling: Dialect) -> str:
    """A segment that is named, as SQL text."""
    return spelling.text(segment) if isinstance(segment, str) else spelling.literal(segment)


def _texts(table: Table, heads: Sequence[str], spelling: Dialect) -> list[tuple[str, ...]]:
    """The column values of each region."""
    columns = [column_texts(table, head, spelling) for head in heads]
    return list(zip(*columns, strict=True)) if heads else [()] * table.calibrated.size


def column_texts(table: Table, head: str, spelling: Dialect) -> list[str]:
    """The values of one column, by region."""
    if head == "region":
        return [str(number) for number in table.region_numbers]
    if head == "set":
        return [spelling.text(name) for name in table.set_names]
    if head in ("start", "slope") and table.lines is not None:
        values = getattr(table.lines, head)
    else:
        values = table.values("calibrated" if head == "value" else head)
    return [spelling.number(value) for value in values.tolist()]


def _expression(
    table: Table, output: str, spelling: Dialect, score: str, on_line: Sequence[str]
) -> str:
    """An output of the piece that a row is joined with; NULL without one."""
    if not on_line:
        return _of_piece(spelling, output)
    if table.lines is None or output in ("region", "set"):
        return _of_bin(spelling, output)
    value = _of_piece(spelling, "value")
    slope = _of_piece(spelling, "slope")
    start = _of_piece(spelling, "start" if "start" in on_line else "low")
    offset = None if output == "calibrated" else _of_bin(spelling, output)
    curve = on_curve(table.lines, spelling, as_double(spelling, score), value, slope, start, offset)
    if offset is None and not table.lines.logit:
        return curve
    return f"CASE WHEN {value} IS NOT NULL THEN {curve} END"  # clipping would ignore NULL


def _conditions(table: Table, spelling: Dialect, score: str, segment: str | None) -> list[str]:
    """The conditions under which a row matches its piece."""
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
    literals = [segment_text(one, spelling) for one in named]
    rest = f"{own} IS NULL AND {column} NOT IN ({', '.join(literals)})"  # not true for NULL
    return [*conditions, f"({column} = {own} OR ({rest}))"]


def _written(
    spelling: Dialect, name: str, heads: Sequence[str], rows: Sequence[Sequence[str]]
) -> list[str]:
    """The pieces as a table inside the statement."""
    columns = [spelling.name(head) for head in heads]
    listed = [f"({', '.join(row)})" for row in rows]
    before = f"{spelling.name(name)} ({', '.join(columns)}) AS ("
    body = ["VALUES", *indented(_with_commas(listed))]
    if spelling.rows_as_structs:
        before = f"{spelling.name(name)} AS ("
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
