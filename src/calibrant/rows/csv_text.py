"""CSV in, CSV out: every column that was there leaves as the text it was, 007 and 1.10 included."""

from collections.abc import Iterator, Mapping
from typing import Any

from calibrant._optional import pa, pc
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.rows.added_columns import AddColumns
from calibrant.rows.arrow import ArrowData, stamp_of
from calibrant.rows.batch import Columns
from calibrant.rows.csv_files import CsvFile, delimiter_of, header_of
from calibrant.rows.faults import Place
from calibrant.rows.file_kind import check_kind
from calibrant.rows.files import find_files
from calibrant.rows.progress import Progress, watched
from calibrant.rows.work import Result, Work

_MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "n/a", "#N/A", "-nan", "-NaN", "#NA", "<NA>")


class TextData(ArrowData):
    """CSV files, read as text; only what a calibrator looks at is read as numbers, beside it."""

    def __init__(self, source: Any, columns: Columns, *, progress: Progress, types: Mapping[str, Any]) -> None:
        paths = find_files(source)
        for path in paths:
            check_kind(path, "csv")
        self.delimiter = delimiter_of(paths[0], columns)
        header = header_of(paths[0], self.delimiter)
        columns.check(header)
        parts = []
        for number, path in enumerate(paths):
            stamp, mark = stamp_of(path), delimiter_of(path, columns)
            own = header_of(path, mark)
            if own != header:
                rule = "all have the same columns in the same order"
                raise InvalidValueError("the files", rule, got=f"{own[:8]} in {path.name!r}")
            parts.append(CsvFile(path, number, stamp=stamp, columns=columns, delimiter=mark, as_text=True))
        schema = pa.schema([pa.field(name, pa.string()) for name in header])
        super().__init__(parts, schema, columns, progress=progress)
        self._types = {columns.score: pa.float64(), **{name: types[name] for name in types if name in header}}

    def apply(self, added: AddColumns) -> Any:
        """A reader over the rows as text, with the columns added."""
        schema = added.schema(self.schema)
        return pa.RecordBatchReader.from_batches(schema, self._applied(added, schema))

    def _applied(self, added: AddColumns, schema: Any) -> Iterator[Any]:
        with watched(self._progress, self.known_rows(), "applying") as advance:
            for part in self._parts:
                for batch, place in part.batches(None):
                    new = added(self._looked_at(batch, added.columns, place)).columns[len(added.columns.to_read) :]
                    yield pa.RecordBatch.from_arrays([*batch.columns, *new], schema=schema)
                    advance(batch.num_rows)

    def fold(self, work: Work[Result]) -> Result:
        """Do `work` on every batch, whose columns are read as what they stand for."""
        total = work.nothing()
        for part in self._parts:
            for batch, place in part.batches(work.columns.to_read):
                total = total + work(self._looked_at(batch, work.columns, place), place)
        return total

    def _looked_at(self, batch: Any, columns: Columns, place: Place) -> Any:
        """The columns that are looked at, as what they stand for."""
        names = columns.to_read
        typed = [self._typed(batch.column(name), name, place) for name in names]
        return pa.RecordBatch.from_arrays(typed, names=names)

    def _typed(self, texts: Any, name: str, place: Place) -> Any:
        """A column of text as what it stands for; missing entries are null."""
        kind = self._types.get(name, pa.string())
        missing = pc.is_in(texts, pa.array(_MISSING))
        known = pc.if_else(missing, pa.scalar(None, pa.string()), texts)
        if kind == pa.string():
            return known
        trimmed = pc.utf8_trim_whitespace(known)
        try:
            return pc.cast(trimmed, kind)
        except pa.ArrowInvalid:
            for row, text in enumerate(trimmed.to_pylist()):
                try:
                    pc.cast(pa.scalar(text, pa.string()), kind)
                except pa.ArrowInvalid:
                    what = "real numbers" if kind == pa.float64() else str(kind)
                    part = "score" if name == self.columns.score else "segment"
                    got = f"{text!r} in {place.after(row)}"
                    raise InvalidTypeError(part, f"hold {what}", got=got, column=name) from None
            raise
