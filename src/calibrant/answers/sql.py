"""A fitted calibrator as SQL: a formula, nested comparisons or a join, which give exactly what
`predict` gives.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from calibrant.answers.sql_join import column_texts, joined_with_pieces, segment_text
from calibrant.answers.table import Exportable, export_table
from calibrant.calibrators.table import Steps, Table
from calibrant.errors import InvalidTypeError, InvalidValueError, warn_caller
from calibrant.params.rules import Choice
from calibrant.sample.sql import dialects
from calibrant.sample.sql.dialects import Dialect
from calibrant.sample.sql.search import (
    as_double,
    bin_of,
    by_segment,
    indented,
    on_curve,
    one_line,
)

DIALECTS = tuple(dialects.DIALECTS)
"""The engines for which SQL can be written."""

SEARCHES = ("auto", "case", "join")
"""How the piece of a score is found."""

LONG_TEXT = 100_000
"""Bytes of comparisons from which on "auto" joins."""
_TOO_LONG = 1_000_000  # bytes that a warehouse takes in one statement

_ALIAS = "t"


def to_sql(
    calibrator: Exportable,
    *,
    dialect: str,
    score: str | Sequence[str] = "score",
    segment: str | Sequence[str] | None = None,
    table: str | Sequence[str] | None = None,
    outputs: Sequence[str] | Mapping[str, str] | None = None,
    coverage: float = 0.95,
    search: str = "auto",
) -> str:
    """Return a fitted calibrator as SQL text.

    Guarantee: in PostgreSQL, DuckDB, Spark SQL and SQLite every output equals what `predict`,
    `predict_interval` and `predict_set` give, bit for bit, for columns of doubles and of 32-bit
    floats; for curves with exp, the relative difference is at most 1e-12. Every output is NULL for
    a score that they do not accept (missing, NaN, infinite, outside the score range) and for a
    segment that is missing or, unless the calibrator has regions for all other segments, was not
    seen in `fit`. The text for Snowflake and BigQuery has the same shape, but was not run there.
    Assumptions: the engine computes and compares doubles as IEEE 754 says, and the column of
    segments has the type that segments had in `fit`.

    Parameters
    ----------
    calibrator : calibrator of scores, Threshold or MonotoneBand
        A fitted calibrator whose prediction is a step function of the score, or a threshold; see
        `export_table`.
    dialect : {"postgres", "duckdb", "snowflake", "bigquery", "spark", "sqlite"}
        The engine.
    score : str or sequence of str, default="score"
        Name of the column with the scores of the positive class; a sequence such as ("t", "score")
        qualifies it.
    segment : str or sequence of str, optional
        Name of the column with the segments, for a calibrator that was fitted with segments.
    table : str or sequence of str, optional
        Return a whole statement, `SELECT t.*, ... FROM table AS t`. Without it, return the
        expressions alone, to paste after SELECT. A text is split at dots, as in "schema.table"; a
        sequence of names is not.
    outputs : sequence or mapping, optional
        Which of "calibrated", "lower", "upper", "region" and "set"; a mapping gives them names. All
        but the region by default. Sets are text, such as '{0, 1}'.
    coverage : float, default=0.95
        Coverage of the sets.
    search : {"auto", "case", "join"}, default="auto"
        How the piece for a score is found. "case": by nested comparisons, in each output. "join":
        the pieces are a table in the statement, with one line for each piece, and rows are joined
        with it. That is much shorter for a curve, but rows may come back in another order, and it
        is slower: by a factor of 1.4 in DuckDB and 9 in SQLite, for 220 pieces. It needs `table`.
        "auto": comparisons, or a join if there is a `table` and they have more than 100 kB, because
        a warehouse may take no more than 1 MB.

    Returns
    -------
    str
        A comment with the guarantee, and the expressions or the statement.

    Notes
    -----
    A score is compared as a double: comparing a 32-bit float with a cut that was rounded to 32 bits
    would move scores into the next bin. Cuts are found by binary search, so 5,000 bins are nested
    13 deep; in Spark, more than 63 cuts are an array with binary search. SQLite reads some decimals
    with an error of one unit in the last place. So for SQLite, and for the engines that were not
    run, doubles are written as whole numbers over powers of two.

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
        0.1003996003996004e0
      ELSE
        0.7997002997002997e0
      END
    END AS "calibrated"
    <BLANKLINE>
    """
    Choice(DIALECTS).check("dialect", dialect)
    Choice(SEARCHES).check("search", search)
    if search == "join" and table is None:
        raise InvalidValueError(
            "search", "be 'auto' or 'case' without a table to join with", got="'join'"
        )
    spelling = dialects.DIALECTS[dialect]
    found = export_table(calibrator, coverage=coverage)
    chosen = found.choose(outputs)
    _check_segment(found, segment)
    alias = () if table is None else (_ALIAS,)
    score_column = _column("score", score, spelling, alias)
    segment_column = None if segment is None else _column("segment", segment, spelling, alias)
    notes = [
        f"-- {dialects.comment(line)}" for note in found.notes for line in textwrap.wrap(note, 110)
    ]
    if table is None:
        columns = _nested(found, chosen, spelling, score_column, segment_column)
        text = "\n".join([*notes, *_listed(columns)]) + "\n"
        n_bytes = len(text.encode())
        if n_bytes > _TOO_LONG:
            warn_caller(
                f"the expressions have {n_bytes / 1e6:.1f} MB, and some warehouses take at most 1"
                " MB: name the table, for a shorter statement with a join, or fewer outputs"
            )
        return text
    names = tuple(table.split(".")) if isinstance(table, str) else tuple(table)
    source = f"FROM {_qualified('table', names, spelling)} AS {spelling.name(_ALIAS)}"
    everything = f"{spelling.name(_ALIAS)}.*"

    def statement(before: list[str], columns: list[list[str]], after: list[str]) -> str:
        selected = ["SELECT", *indented(_listed([[everything], *columns]))]
        return "\n".join([*notes, *before, *selected, source, *after]) + "\n"

    if search != "join":
        columns = _nested(found, chosen, spelling, score_column, segment_column)
        nested = statement([], columns, [])
        if search == "case" or len(nested.encode()) <= LONG_TEXT:
            return nested
    pieces, texts, condition = joined_with_pieces(
        found, chosen, spelling, score_column, segment_column, names
    )
    columns = [[f"{text} AS {spelling.name(chosen[output])}"] for output, text in texts.items()]
    return statement(pieces, columns, condition)


def _check_segment(table: Table, segment: str | Sequence[str] | None) -> None:
    """Require a segment column exactly if there are segments."""
    if table.is_segmented and segment is None:
        raise InvalidTypeError(
            "segment",
            "name a column: this calibrator was fitted with segments",
            got="None",
        )
    if not table.is_segmented and segment is not None:
        raise InvalidTypeError(
            "segment",
            "be None: this calibrator was fitted without segments",
            got=repr(segment),
        )


def _nested(
    table: Table,
    chosen: Mapping[str, str],
    spelling: Dialect,
    score_column: str,
    segment_column: str | None,
) -> list[list[str]]:
    """The lines of each output's expression: nested comparisons, or a formula."""
    columns = []
    for output, name in chosen.items():
        lines = _expression(table, output, spelling, score_column, segment_column)
        columns.append([*lines[:-1], f"{lines[-1]} AS {spelling.name(name)}"])
    return columns


def _listed(columns: list[list[str]]) -> list[str]:
    """Put a comma after every column but the last."""
    lines = []
    for place, column in enumerate(columns, start=1):
        lines += [*column[:-1], column[-1] + ("," if place < len(columns) else "")]
    return lines


def _column(
    parameter: str, name: str | Sequence[str], spelling: Dialect, alias: tuple[str, ...]
) -> str:
    return _qualified(parameter, (*alias, name) if isinstance(name, str) else tuple(name), spelling)


def _qualified(parameter: str, parts: tuple[str, ...], spelling: Dialect) -> str:
    if not parts or not all(isinstance(part, str) and part for part in parts):
        raise InvalidValueError(
            parameter, "be a name, or several that qualify each other", got=repr(parts)
        )
    return ".".join(spelling.name(part) for part in parts)


def _expression(
    table: Table,
    output: str,
    spelling: Dialect,
    score_column: str,
    segment_column: str | None,
) -> list[str]:
    """The lines of one output's expression."""
    bodies = [
        (steps.segment, _of_steps(table, steps, output, spelling, score_column))
        for steps in table.steps
    ]
    if segment_column is None:
        return bodies[0][1]
    column = (
        spelling.binary_text.format(segment_column)
        if isinstance(bodies[0][0], str)
        else segment_column
    )
    literals = [
        (segment_text(segment, spelling), body)
        for segment, body in bodies
        if isinstance(segment, str | int | float)
    ]
    return by_segment(column, literals, bodies[-1][1] if table.takes_others else None)


def _of_steps(table: Table, steps: Steps, output: str, spelling: Dialect, column: str) -> list[str]:
    """One output for the scores of one segment."""

    def looked_up(literals: list[str]) -> list[str]:
        cuts, regions = steps.runs(literals)
        leaves = [literals[region] if region >= 0 else "NULL" for region in regions]
        return bin_of(spelling, column, steps.low, steps.high, cuts, leaves)

    if table.lines is None or output in ("region", "set"):
        return looked_up(column_texts(table, output, spelling))
    parts = [table.calibrated, table.lines.slope, table.lines.start]
    if output != "calibrated":
        parts.append(table.values(output))
    texts = [[spelling.number(value) for value in part.tolist()] for part in parts]
    score = as_double(spelling, column)
    if spelling.most_nested is not None and steps.cuts.size > spelling.most_nested:
        found = [one_line(looked_up(text)) for text in texts]
        curve = on_curve(table.lines, spelling, score, *found)
        return [
            f"CASE WHEN {found[0]} IS NOT NULL THEN {curve} END"
        ]  # clipping a limit would ignore NULL
    return looked_up(
        [on_curve(table.lines, spelling, score, *row) for row in zip(*texts, strict=True)]
    )
