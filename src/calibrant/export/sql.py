"""A fitted calibrator as SQL: one nested CASE for each output, the same bits as `predict`."""

import textwrap
from collections.abc import Mapping, Sequence

from calibrant._params import check_choice
from calibrant.calibrators.base import ScoreCalibrator
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.export import _dialects
from calibrant.export._dialects import Dialect
from calibrant.export._tree import balanced
from calibrant.export.table import LARGEST, ExportTable, Steps, export_table

DIALECTS = tuple(_dialects.DIALECTS)
"""The engines that SQL can be written for."""

_ALIAS = "t"
_INDENT = "  "


def to_sql(
    calibrator: ScoreCalibrator,
    *,
    dialect: str,
    score: str | Sequence[str] = "score",
    segment: str | Sequence[str] | None = None,
    table: str | Sequence[str] | None = None,
    outputs: Sequence[str] | Mapping[str, str] | None = None,
    coverage: float = 0.95,
) -> str:
    """Return a fitted calibrator as SQL text.

    Claimed: in PostgreSQL, DuckDB, Spark SQL and SQLite every output equals what `predict`, `predict_interval` and
    `predict_set` give, bit for bit, for columns of doubles and of 32-bit floats. Where they refuse a score (missing,
    NaN, infinite, outside the score range) or a segment (missing, not seen in `fit`), every output is NULL. The text
    for Snowflake and BigQuery has the same shape, but was not run there. Assumed: the engine compares doubles as IEEE
    754 says, and the column of segments has the type that segments had in `fit`.

    Parameters
    ----------
    calibrator : calibrator of scores
        A fitted calibrator whose prediction is a step function of the score; see `export_table`.
    dialect : {"postgres", "duckdb", "snowflake", "bigquery", "spark", "sqlite"}
        The engine.
    score : str or sequence of str, default="score"
        Name of the column with the scores of the positive class; a sequence such as ("t", "score") qualifies it.
    segment : str or sequence of str, optional
        Name of the column with the segments, for a calibrator that was fitted with segments.
    table : str or sequence of str, optional
        Return a whole statement, `SELECT t.*, ... FROM table AS t`. Without it, return the expressions alone, to be
        pasted behind SELECT. A text is cut at dots, as in "schema.table"; a sequence of names is not.
    outputs : sequence or mapping, optional
        Which of "calibrated", "lower", "upper", "region" and "set"; a mapping gives them names. All but the region
        by default. Sets are text, such as '{0, 1}'.
    coverage : float, default=0.95
        Coverage of the sets.

    Returns
    -------
    str
        A comment with the promise, and the expressions or the statement.

    Notes
    -----
    A score is compared as a double: comparing a 32-bit float with a cut that was rounded to 32 bits would move scores
    into the next bin. Cuts are searched by halving, so that 5,000 bins nest 13 deep; in Spark, where there are more
    than 63 cuts, they are an array that is halved. SQLite reads some decimals one unit in the last place off, so
    there, and where it could not be tried, doubles are whole numbers over powers of two.

    Examples
    --------
    >>> from calibrant import BinningCalibrator, Partition, Tally
    >>> bins = Partition.fixed_width(2)
    >>> tally = Tally.from_counts([1000, 1000], [100, 800], partition=bins)
    >>> calibrator = BinningCalibrator.from_tally(bins, tally)
    >>> text = to_sql(calibrator, dialect="duckdb", outputs=["calibrated"])
    >>> print("".join(line for line in text.splitlines(keepends=True) if not line.startswith("--")))
    CASE WHEN CAST("score" AS DOUBLE) >= 0.0e0 AND CAST("score" AS DOUBLE) <= 1.0e0 THEN
      CASE WHEN CAST("score" AS DOUBLE) < 0.5e0 THEN
        0.1e0
      ELSE
        0.8e0
      END
    END AS "calibrated"
    <BLANKLINE>
    """
    check_choice("dialect", dialect, DIALECTS)
    spelling = _dialects.DIALECTS[dialect]
    steps = export_table(calibrator, coverage=coverage)
    chosen = steps.choose(outputs)
    if steps.is_segmented and segment is None:
        raise InvalidTypeError("segment must name a column, for this calibrator was fitted with segments; got None")
    if not steps.is_segmented and segment is not None:
        raise InvalidTypeError(
            f"segment must be None, for this calibrator was fitted without segments; got {segment!r}"
        )
    alias = () if table is None else (_ALIAS,)
    score_column = _column("score", score, spelling, alias)
    segment_column = None if segment is None else _column("segment", segment, spelling, alias)
    columns = []
    for output, name in chosen.items():
        lines = _expression(steps, output, spelling, score_column, segment_column)
        columns.append([*lines[:-1], f"{lines[-1]} AS {spelling.name(name)}"])
    notes = [f"-- {_dialects.comment(line)}" for note in steps.notes for line in textwrap.wrap(note, 110)]
    if table is None:
        return "\n".join([*notes, *_listed(columns)]) + "\n"
    everything = f"{spelling.name(_ALIAS)}.*"
    source = f"FROM {_table(table, spelling)} AS {spelling.name(_ALIAS)}"
    return "\n".join([*notes, "SELECT", *_indented(_listed([[everything], *columns])), source]) + "\n"


def _indented(lines: list[str]) -> list[str]:
    """Move lines to the right: those of the list, and not what follows a line break inside a text."""
    return [_INDENT + line for line in lines]


def _listed(columns: list[list[str]]) -> list[str]:
    """Put a comma behind every column but the last."""
    lines = []
    for place, column in enumerate(columns, start=1):
        lines += [*column[:-1], column[-1] + ("," if place < len(columns) else "")]
    return lines


def _column(parameter: str, name: str | Sequence[str], spelling: Dialect, alias: tuple[str, ...]) -> str:
    parts = (*alias, name) if isinstance(name, str) else tuple(name)
    return _qualified(parameter, parts, spelling)


def _table(table: str | Sequence[str], spelling: Dialect) -> str:
    return _qualified("table", tuple(table.split(".")) if isinstance(table, str) else tuple(table), spelling)


def _qualified(parameter: str, parts: tuple[str, ...], spelling: Dialect) -> str:
    if not parts or not all(isinstance(part, str) and part for part in parts):
        raise InvalidValueError(f"{parameter} must be a name, or several that qualify each other; got {parts!r}")
    return ".".join(spelling.name(part) for part in parts)


def _expression(
    table: ExportTable, output: str, spelling: Dialect, score_column: str, segment_column: str | None
) -> list[str]:
    """The lines of one output's expression."""
    literals = _literals(table, output, spelling)
    inner = [_search(steps, literals, spelling, score_column) for steps in table.steps]
    if segment_column is None:
        return inner[0]
    is_text = isinstance(table.steps[0].segment, str)
    lines = [f"CASE {spelling.binary_text.format(segment_column) if is_text else segment_column}"]
    for steps, body in zip(table.steps, inner, strict=True):
        lines += [f"WHEN {_segment_literal(steps.segment, spelling)} THEN", *_indented(body)]
    return [*lines, "END"]


def _literals(table: ExportTable, output: str, spelling: Dialect) -> list[str]:
    """The text of an output in each region."""
    if output == "region":
        return [str(region) for region in range(table.calibrated.size)]
    if output == "set":
        return [spelling.text(name) for name in table.set_names]
    return [spelling.number(value) for value in getattr(table, output).tolist()]


def _search(steps: Steps, literals: list[str], spelling: Dialect, score_column: str) -> list[str]:
    score = f"CAST({score_column} AS {spelling.double})"

    def fork(cut: float, below: list[str], above: list[str]) -> list[str]:
        test = f"CASE WHEN {score} < {spelling.number(cut)} THEN"
        return [test, *_indented(below), "ELSE", *_indented(above), "END"]

    cuts, regions = steps.runs(literals)
    leaves = [[literals[region] if region >= 0 else "NULL"] for region in regions]
    conditions = [spelling.guard.format(score_column)] if spelling.guard else []
    conditions += _limits(steps, score, spelling)
    if spelling.most_nested is not None and len(cuts) > spelling.most_nested:
        body = _halved(cuts, [leaf for (leaf,) in leaves], score)
    else:
        body = balanced(cuts, leaves, fork)
    return [f"CASE WHEN {' AND '.join(conditions)} THEN", *_indented(body), "END"]


def _halved(cuts: list[float], leaves: list[str], score: str) -> list[str]:
    """Search an array of cuts, in Spark, by steps of halving length; padded so that no step leaves it.

    An array is one text that is split: Spark does that once, before it looks at rows, and a text of thousands of
    numbers costs it little where thousands of expressions would not fit into its memory.
    """
    bits = len(cuts).bit_length()
    padded = [*map(repr, cuts), *["Infinity"] * (2**bits - 1 - len(cuts))]
    place, step = "_place", "_step"
    while place in score.lower() or step in score.lower():  # inside a lambda its variables hide columns of that name
        place, step = f"{place}_", f"{step}_"
    steps = ", ".join(str(2**bit) for bit in reversed(range(bits)))
    found = [
        f"{_INDENT}1 + aggregate(array({steps}), 0, ({place}, {step}) -> {place} + CASE WHEN",
        f"{_INDENT * 2}element_at({_split(padded, 'DOUBLE')}, {place} + {step}) <= {score} THEN {step} ELSE 0 END)",
        ")",
    ]
    if "NULL" not in leaves and not leaves[0].startswith("'"):
        kind = "DOUBLE" if leaves[0].endswith("D") else "INT"
        return ["element_at(", f"{_INDENT}{_split([leaf.removesuffix('D') for leaf in leaves], kind)},", *found]
    places = {leaf: place for place, leaf in enumerate(dict.fromkeys(leaves), start=1)}
    numbers = [str(places[leaf]) for leaf in leaves]
    return [
        "element_at(",
        f"{_INDENT}array({', '.join(places)}),",
        f"{_INDENT}element_at({_split(numbers, 'INT')},",
        *_indented(found),
        ")",
    ]


def _split(values: list[str], kind: str) -> str:
    return f"CAST(split('{','.join(values)}', ',') AS ARRAY<{kind}>)"


def _limits(steps: Steps, score: str, spelling: Dialect) -> list[str]:
    """What a score must be. NULL, NaN and infinities are not, also where NaN is sorted above all numbers."""
    low = f">= {spelling.number(steps.low)}" if steps.low > -LARGEST else f"> {spelling.infinity.format('-')}"
    high = f"<= {spelling.number(steps.high)}" if steps.high < LARGEST else f"< {spelling.infinity.format('')}"
    return [f"{score} {low}", f"{score} {high}"]


def _segment_literal(segment: str | int | float | bool | None, spelling: Dialect) -> str:
    if isinstance(segment, bool):
        return spelling.booleans[segment]
    if isinstance(segment, str):
        return spelling.text(segment)
    return str(segment) if isinstance(segment, int) else spelling.number(float(segment or 0.0))
