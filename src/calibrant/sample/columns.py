"""Read a column with no role in calibration, such as a time, into memory in row order."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from calibrant._optional import pa
from calibrant.errors import InvalidTypeError
from calibrant.params.random import Draw
from calibrant.sample.arrow_columns import absent_rows, plain_column
from calibrant.sample.batch import Columns, Work, check_name
from calibrant.sample.faults import Place
from calibrant.sample.row_keys import position_keys
from calibrant.sample.rows import Rows
from calibrant.sample.taken_rows import COLLECT_LIMIT

if TYPE_CHECKING:
    from calibrant.sample.sources.arrow import ArrowData


@dataclass(frozen=True, slots=True)
class TakeColumn(Work[tuple[tuple[Place, Any], ...]]):
    """Take a column as it is, without rows whose label is skipped.

    With a draw, take a random part of it.
    """

    name: str = ""
    draw: Draw | None = None

    @property
    def columns(self) -> Columns:
        """The column, in the role of a score."""
        return Columns(self.name, pending=self.data_columns.pending)

    def __call__(self, batch: Any, place: Place) -> tuple[tuple[Place, Any], ...]:
        """Take one batch of it."""
        column = plain_column(batch.column(self.name))
        pending = self.data_columns.pending
        absent = None if pending is None else absent_rows(plain_column(batch.column(pending)))
        kept = None if absent is None else ~absent
        if self.draw is not None:
            drawn = self.draw.chosen(position_keys(place.key, len(column)))
            kept = drawn if kept is None else drawn & kept
        return ((place, column if kept is None else column.filter(pa.array(kept))),)

    def nothing(self) -> tuple[tuple[Place, Any], ...]:
        """No rows."""
        return ()


def column_of(data: Rows, name: str, part: str, draw: Draw | None = None) -> Any:
    """A column, in the order of `collect`, as an Arrow array; `part` is its name in errors.

    With a draw, only the rows drawn by position.
    """
    check_name(part, name, data.names())
    if part != "label":
        data.columns.check_no_label(part, name)
    pieces = data.fold(TakeColumn(data.columns, name, draw))
    ordered = [column for _, column in sorted(pieces, key=lambda piece: piece[0])]
    if sum(map(len, ordered)) > COLLECT_LIMIT:
        raise InvalidTypeError("the data", f"have at most {COLLECT_LIMIT:,} rows here", got="more")
    return pa.chunked_array(ordered)


def drawn_rows(data: Rows, others: Mapping[str, str], draw: Draw) -> "ArrowData":
    """The drawn rows in memory, in order: columns with a role, and `others`, keyed by their names
    in errors.
    """
    from calibrant.sample.sources.arrow import from_arrow

    whole = data.with_columns(replace(data.columns, pending=None))
    wanted = {**others, **whole.columns.named}
    table = pa.table({name: column_of(whole, name, part, draw) for part, name in wanted.items()})
    return from_arrow(table, data.columns, threads=1, progress=False)


def first_rows_of(data: Rows, most: int) -> Any:
    """The first rows as an Arrow table: scores, labels, and columns that can be ids.

    None if there are no rows.

    Floats, truth values and nested columns are left out, and so are unusable rows. None for
    streams, which can be read only once.
    """
    if data.reads_once:
        return None
    named = [name for name in (data.columns.score, data.columns.label) if name is not None]
    try:
        wanted = [*named, *(name for name in data.first_names() if name not in named)]
        batches = data.first_batches(wanted, most)
    except NotImplementedError:  # rows that are elsewhere: on a cluster or a device
        return None
    table = pa.Table.from_batches(batches).slice(0, most) if batches else None
    if table is None:
        return None
    for name in named:
        absent = absent_rows(plain_column(table.column(name).combine_chunks()))
        table = table if absent is None else table.filter(pa.array(~absent))
    kept = [
        name
        for name in table.schema.names
        if name in named or _can_be_id(table.schema.field(name).type)
    ]
    return table.select(kept)


def _can_be_id(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        return _can_be_id(kind.value_type)
    kinds = ("integer", "string", "large_string", "date")
    return any(getattr(pa.types, f"is_{name}")(kind) for name in kinds)
