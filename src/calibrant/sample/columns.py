"""Read columns as they are, such as times, attributes or all columns in use, into memory in row
order.
"""

from collections.abc import Mapping
from contextlib import closing
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
class TakeColumns(Work[tuple[tuple[Place, Any], ...]]):
    """Take columns as they are, without rows whose label is skipped.

    With a draw, take a random part of them.
    """

    on_rows = False
    nothing = ()
    names: tuple[str, ...]
    draw: Draw | None = None

    @property
    def columns(self) -> Columns:
        """The columns, the first in the role of a score."""
        first, *others = self.names
        return Columns(first, pending=self.data_columns.pending, also=tuple(others))

    def __call__(self, batch: Any, place: Place) -> tuple[tuple[Place, Any], ...]:
        """Take one batch of them."""
        columns = [plain_column(batch.column(name)) for name in self.names]
        pending = self.data_columns.pending
        absent = None if pending is None else absent_rows(plain_column(batch.column(pending)))
        kept = None if absent is None else ~absent
        if self.draw is not None:
            drawn = self.draw.chosen(position_keys(place.key, len(batch)))
            kept = drawn if kept is None else drawn & kept
        if kept is not None:
            columns = [column.filter(pa.array(kept)) for column in columns]
        return ((place, columns),)


def table_of(data: Rows, wanted: Mapping[str, str], draw: Draw | None = None) -> Any:
    """Columns, in the order of `collect`, as an Arrow table.

    `wanted` are the names of the columns, each with what an error calls it. With a draw, only the
    rows drawn by position.
    """
    for name, part in wanted.items():
        check_name(part, name, data.names())
        if part != "label":
            data.columns.check_no_label(part, name)
    pieces = data.fold(TakeColumns(data.columns, tuple(wanted), draw))
    ordered = [columns for _, columns in sorted(pieces, key=lambda piece: piece[0])]
    arrays = map(pa.chunked_array, zip(*ordered, strict=True))
    table = pa.table(dict(zip(wanted, arrays, strict=True)))
    if table.num_rows > COLLECT_LIMIT:
        raise InvalidTypeError("the data", f"have at most {COLLECT_LIMIT:,} rows here", got="more")
    return table


def column_of(data: Rows, name: str, part: str) -> Any:
    """A column, in the order of `collect`, as an Arrow array; `part` is its name in errors."""
    return table_of(data, {name: part}).column(name)


def drawn_rows(data: Rows, others: Mapping[str, str], draw: Draw) -> "ArrowData":
    """The drawn rows in memory, in order: columns with a role, and `others`, keyed by their names
    in errors.
    """
    from calibrant.sample.sources.arrow import from_arrow

    whole = data.with_columns(replace(data.columns, pending=None))
    wanted = {name: part for part, name in {**others, **whole.columns.named}.items()}
    table = table_of(whole, wanted, draw)
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
    names = [
        name
        for name in data.names()
        if data.schema is None or _can_be_id(data.schema.field(name).type)
    ]
    found = []
    left = most
    try:
        with closing(data.batches(list(dict.fromkeys([*named, *names])))) as batches:
            for batch, _ in batches:
                found.append(batch)
                left -= batch.num_rows
                if left <= 0:
                    break
    except NotImplementedError:  # rows that are elsewhere: on a cluster or a device
        return None
    if not found:
        return None
    table = pa.Table.from_batches(found).slice(0, most)
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
