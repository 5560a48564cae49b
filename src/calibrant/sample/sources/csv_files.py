"""CSV files: find the delimiter, and raise errors that name the column, the row and the entry."""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from calibrant._optional import Lazy, pa, pc
from calibrant.errors import CalibrantError, InvalidTypeError, InvalidValueError
from calibrant.params.arrays import is_number
from calibrant.sample.arrow_columns import kind_in_words
from calibrant.sample.batch import Columns
from calibrant.sample.faults import Place
from calibrant.sample.sources.arrow import Part
from calibrant.sample.sources.file_kind import SAVE_AS_UTF8, beginning
from calibrant.text.sentences import Setting, Text

arrow_csv: Any = Lazy("pyarrow.csv")

_DELIMITERS = ",;\t|"
_HEADER_SIZES = (
    1 << 16,
    1 << 22,
)  # bytes searched for the end of the header; Arrow's blocks hold 8 MB


@dataclass(frozen=True)
class CsvFile:
    """A CSV file. Score and weight are read as numbers, other columns as `types` says or by
    inference.

    Blanks around the names of columns are dropped. `decimal` is the decimal mark of all numbers. If
    the first score has a per cent sign, all of them must have one; the same for weights.
    """

    path: Path
    delimiter: str
    columns: Columns
    types: Mapping[str, Any]
    decimal: str = "."

    def open(self, names: Sequence[str] | None) -> Any:
        """A reader of these columns; None for all."""
        known = self._known_types()
        percent = [name for name in self.percent_columns if names is None or name in names]
        if not percent:
            return self._reader(names, known, strings_can_be_null=True)
        texts = dict.fromkeys(percent, pa.string())
        reader = self._reader(names, known | texts, strings_can_be_null=True)
        schema = pa.schema([(one.name, known.get(one.name, one.type)) for one in reader.schema])

        def batches() -> Iterator[Any]:
            for batch, place in Part(lambda names: reader, name=self.path.name).batches(None):
                for name in percent:
                    numbers = self.as_type(batch.column(name), name, known[name], place)
                    index = batch.schema.get_field_index(name)
                    batch = batch.set_column(index, name, numbers)
                yield batch

        return pa.RecordBatchReader.from_batches(schema, batches())

    @cached_property
    def percent_columns(self) -> tuple[str, ...]:
        """The columns of scores and weights whose first entry has a per cent sign."""
        numeric = [name for name in (self.columns.score, self.columns.weight) if name]
        wanted = [name for name in numeric if self.header.count(name) == 1]
        start = beginning(self.path, _HEADER_SIZES[0]).decode("utf-8-sig", "replace")
        if not wanted or "%" not in start:
            return ()
        rows = csv.reader(io.StringIO(start.lstrip("\r\n"), newline=""), delimiter=self.delimiter)
        next(rows, None)
        missing = set(_missing())
        first: dict[str, str] = {}
        for row in rows:
            for name in wanted:
                place = self.header.index(name)
                if place < len(row) and row[place].strip() not in missing:
                    first.setdefault(name, row[place])
            if len(first) == len(wanted):
                break
        return tuple(name for name, text in first.items() if text.rstrip().endswith("%"))

    def as_type(self, texts: Any, name: str, kind: Any, place: Place) -> Any:
        """Convert a text column to its type, with missing entries as null.

        Entries of a column in per cent are divided by 100. Raise an error for an entry of another
        type.
        """
        missing = pc.is_in(texts, pa.array(_missing()))
        known = pc.if_else(missing, pa.scalar(None, pa.string()), texts)
        if kind == pa.string():
            return known
        is_percent = name in self.percent_columns
        trimmed = pc.utf8_trim_whitespace(known)
        plain = trimmed
        if pa.types.is_floating(kind) and self.decimal != ".":  # a point is then no decimal mark
            plain = pc.replace_substring(pc.replace_substring(plain, ".", "_"), self.decimal, ".")
        if is_percent:
            bare = pc.utf8_rtrim_whitespace(pc.utf8_rtrim(plain, "%"))
            unfit = pc.binary_join_element_wise(plain, "_", "")
            plain = pc.if_else(pc.ends_with(plain, "%"), bare, unfit)
        try:
            numbers = pc.cast(plain, kind)
            return pc.divide(numbers, 100.0) if is_percent else numbers
        except pa.ArrowInvalid:
            row = _first_odd(plain, kind)
        text = _shortened(trimmed[row].as_py(), 40)
        got = f"{text!r} in {place.after(row)}"
        named = self.columns.named
        part = next((part for part, column in named.items() if column == name), None)
        if part in ("score", "weight"):
            rule = "contain real numbers"
            advice = _number_hint(text, self.decimal)
            if is_percent:
                rule = "have a per cent sign in each row, or in none"
                advice = None
            raise InvalidTypeError(part, rule, got=got, advice=advice, column=name)
        got += f", and only {kind_in_words(kind)} in other rows"
        raise InvalidTypeError(
            part or f"column {name!r}", "contain one kind of entry", got, column=part and name
        )

    def open_as_text(self, names: Sequence[str] | None, **settings: Any) -> Any:
        """A reader that keeps every entry as text, with nothing read as a number or as missing."""
        return self._reader(
            names, dict.fromkeys(self.header, pa.string()), strings_can_be_null=False, **settings
        )

    def _reader(
        self,
        names: Sequence[str] | None,
        types: Mapping[str, Any],
        *,
        strings_can_be_null: bool,
        use_threads: bool = True,
        **parsing: Any,
    ) -> Any:
        written = dict(zip(self.header, self._written_header, strict=True))
        reader = arrow_csv.open_csv(
            pa.input_stream(str(self.path), compression="detect"),
            arrow_csv.ReadOptions(use_threads=use_threads, block_size=1 << 23),
            arrow_csv.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=len(self.header)
                > 1,  # with a single column, an empty line is a row with a missing entry
                **parsing,
            ),
            arrow_csv.ConvertOptions(
                column_types={written.get(name, name): kind for name, kind in types.items()},
                include_columns=(
                    None if names is None else [written.get(name, name) for name in names]
                ),
                null_values=_missing(),
                strings_can_be_null=strings_can_be_null,
                decimal_point=self.decimal,
            ),
        )
        if self.header == self._written_header:
            return reader
        return _renamed(reader, {raw: name for name, raw in written.items()})

    def parsed(self, batch: Any, columns: Columns, place: Place) -> Any:
        """The columns of a batch of text that are used, converted to their types."""
        kinds = {**self.types, self.columns.score: pa.float64()}
        texts = {name: batch.column(name) for name in columns.to_read}
        return pa.RecordBatch.from_pydict(
            {
                name: self.as_type(column, name, kinds.get(name, pa.string()), place)
                for name, column in texts.items()
            }
        )

    def _known_types(self) -> dict[str, Any]:
        numeric = (self.columns.score, self.columns.weight)
        return {**self.types, **{name: pa.float64() for name in numeric if name is not None}}

    @cached_property
    def header(self) -> list[str]:
        """The names of the columns, without blanks around them."""
        return _without_blanks(self._written_header)

    @cached_property
    def _written_header(self) -> list[str]:
        """The names in the header line, which may be quoted and then contain line breaks."""
        header = _header(self.path, self.delimiter)
        if header is None:
            where = f"the header line of {self.path.name!r}"
            advice = "check that it is a CSV file"
            raise InvalidValueError(
                where, "end within its first 4 MB", got="no line break", advice=advice
            )
        return header

    def check_text(self, schema: Any) -> None:
        """Raise an error for columns whose text is not UTF-8, which Arrow reads as bytes."""
        for part, name in self.columns.named.items():
            if (
                name in schema.names
                and schema.names.count(name) == 1
                and pa.types.is_binary(schema.field(name).type)
            ):
                got = f"other bytes in {self.path.name!r}"
                raise InvalidValueError(
                    part, "be UTF-8 text", got=got, advice=SAVE_AS_UTF8, column=name
                )

    def fault(self, names: Sequence[str] | None) -> CalibrantError | None:
        """Return the error for the first unreadable row, or None.

        Reads the file again, as text.
        """
        uneven: list[Any] = []

        def keep(row: Any) -> str:
            uneven.append(row)
            return "error"

        try:
            kinds = {field.name: field.type for field in self.open(names).schema}
        except pa.ArrowInvalid:
            kinds = self._known_types()
        try:
            reader = self.open_as_text(names, use_threads=False, invalid_row_handler=keep)
            for batch, place in Part(lambda names: reader, name=self.path.name).batches(None):
                for name in set(kinds) & set(batch.schema.names):
                    with suppress(
                        pa.ArrowNotImplementedError
                    ):  # a type that Arrow infers from text only in files
                        self.as_type(batch.column(name), name, kinds[name], place)
        except CalibrantError as error:
            return error
        except pa.ArrowException:
            for row in uneven:
                rule = f"have {row.expected_columns} fields, as the header has"
                got = f"{row.actual_columns}: "
                where = Place(
                    0, row.number - 2, self.path.name
                )  # counted from 0, without the header
                return InvalidValueError(str(where), rule, got=got + repr(_shortened(row.text, 60)))
        return None


def _missing() -> list[str]:
    return ["<NA>", *arrow_csv.ConvertOptions().null_values]


def _renamed(reader: Any, names: Mapping[str, str]) -> Any:
    """A reader whose columns have other names."""
    new = [names[name] for name in reader.schema.names]
    schema = pa.schema(
        [pa.field(name, one.type) for name, one in zip(new, reader.schema, strict=True)]
    )
    batches = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in reader)
    return pa.RecordBatchReader.from_batches(schema, batches)


def _without_blanks(names: list[str]) -> list[str]:
    """Names without blanks around them, unless two would then be equal or one empty."""
    plain = [name.strip() for name in names]
    return plain if len(set(plain)) == len(set(names)) and all(plain) else names


def _first_odd(texts: Any, kind: Any) -> int:
    """Return the index of the first entry that does not have the type; there must be one."""
    if len(texts) == 1:
        return 0
    half = len(texts) // 2
    try:
        pc.cast(texts[:half], kind)
    except pa.ArrowInvalid:
        return _first_odd(texts[:half], kind)
    return half + _first_odd(texts[half:], kind)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def _number_hint(text: str, decimal: str) -> Text | None:
    other = "," if decimal == "." else "."
    if re.fullmatch(rf"-?\d*[{other}]\d+([eE][-+]?\d+)?\s*%?", text):
        return (f"if {other!r} is the decimal mark, give ", Setting("decimal", other))
    if re.fullmatch(r"-?[\d.,]+\s*%", text):
        return "write all entries with a per cent sign, or none"
    return None


def _header(path: Path, delimiter: str) -> list[str] | None:
    """Return the fields of the first line that is not empty.

    None if it does not end within the limit.
    """
    for size in _HEADER_SIZES:
        start = beginning(path, size)
        text = start.decode("utf-8-sig", "surrogateescape").lstrip("\r\n")
        if not text.strip():
            raise InvalidValueError(
                f"the file {path.name!r}", "contain a header line and rows", got="an empty file"
            )
        lines = io.StringIO(text, newline="")
        try:
            header = next(csv.reader(lines, delimiter=delimiter))
        except csv.Error:  # a field of more than 128 KB
            continue
        if len(start) < size or lines.tell() < len(text):
            _check_names(header, path)
            return header
    return None


def _check_names(header: list[str], path: Path) -> None:
    """Raise an error for a name that is not UTF-8, as Excel writes names with accents."""
    for name in header:
        raw = name.encode("utf-8", "surrogateescape")
        try:
            raw.decode()
        except UnicodeDecodeError:
            got = repr(_shortened(raw.decode("cp1252", "replace"), 60)) + " in another encoding"
            where = f"the names of columns in {path.name!r}"
            raise InvalidValueError(where, "be UTF-8 text", got=got, advice=SAVE_AS_UTF8) from None


def delimiter_of(path: Path, columns: Columns) -> str:
    """The delimiter with which the header contains the requested columns; a comma if there is none."""
    wanted = {name for name in columns.named.values() if name}
    held = {mark: _without_blanks(_header(path, mark) or []) for mark in _DELIMITERS}
    best = max(
        _DELIMITERS, key=lambda mark: (len(wanted & set(held[mark])), len(held[mark]), mark == ",")
    )
    if not wanted & set(held[best]):
        if any(map(is_number, held[best])):
            rule = "begin with a header line that names the columns"
            raise InvalidValueError(
                f"the file {path.name!r}", rule, got=f"numbers: {best.join(held[best])[:60]!r}"
            )
        if len(held[best]) == 1 and len(wanted) > 1:
            rule = "be separated by a comma, semicolon, tab or |"
            got = f"a header without any: {held[best][0][:60]!r}"
            raise InvalidValueError(f"fields of the file {path.name!r}", rule, got=got)
    return best
