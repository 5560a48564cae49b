"""CSV files: which mark separates the fields, and errors that name the column, the row and what stands there."""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calibrant._optional import pa
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.rows.arrow import FilePart
from calibrant.rows.batch import Columns
from calibrant.rows.file_kind import beginning, unreadable

_DELIMITERS = ",;\t|"
_HEADER_SIZES = (1 << 16, 1 << 22)  # bytes that are searched for the end of the header; Arrow's blocks hold 8 MB
_NOT_A_NUMBER = re.compile(
    r"In CSV column #(\d+): Row #(\d+): CSV conversion error to ([\w\[\]]+): invalid value '(.*)'", re.S
)
_RAGGED = re.compile(r"CSV parse error: Row #(\d+): Expected (\d+) columns, got (\d+): ?(.*)", re.S)


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvFile(FilePart):
    """A CSV file; its score and weight columns are read as numbers, other columns as what they look like."""

    columns: Columns
    delimiter: str
    types: Mapping[str, Any] = field(default_factory=dict)
    as_text: bool = False  # every column as the text it is, nothing read as a number or as missing

    def schema(self) -> Any:
        """The columns of the file."""
        schema = self._open(None, threads=True).schema
        self._check_text(schema)
        return schema

    def read(self, columns: list[str] | None) -> Iterator[Any]:
        """The file's batches, as it is read."""
        try:
            yield from self._open(columns, threads=True)
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error, columns, again=True) from None

    def _open(self, columns: Sequence[str] | None, *, threads: bool) -> Any:
        from pyarrow import csv as arrow_csv

        header = header_of(self.path, self.delimiter)
        if self.as_text:
            chosen = {name: pa.string() for name in header}
        else:
            numeric = (self.columns.score, self.columns.weight)
            chosen = {**self.types, **{name: pa.float64() for name in numeric if name is not None}}
        convert = arrow_csv.ConvertOptions(
            column_types=chosen,
            include_columns=None if columns is None else list(columns),
            strings_can_be_null=not self.as_text,
        )
        read = arrow_csv.ReadOptions(use_threads=threads, block_size=1 << 23)
        parse = arrow_csv.ParseOptions(
            delimiter=self.delimiter,
            newlines_in_values=True,
            ignore_empty_lines=len(header) > 1,  # of a single column an empty line is a row, with a missing entry
        )
        try:
            source = pa.input_stream(str(self.path), compression="detect")
            return arrow_csv.open_csv(source, read, parse, convert)
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error, columns, again=threads) from None

    def _check_text(self, schema: Any) -> None:
        """Refuse columns in use whose text is not UTF-8, which Arrow takes for bytes."""
        for part, name in self.columns.named.items():
            if name in schema.names and schema.names.count(name) == 1 and pa.types.is_binary(schema.field(name).type):
                got = f"other bytes in {self.path.name!r}"
                raise InvalidValueError(part, "be UTF-8 text", got=got, advice="save the file as UTF-8", column=name)

    def _unreadable(
        self, error: Exception, columns: Sequence[str] | None, *, again: bool
    ) -> InvalidValueError | InvalidTypeError:
        """The error with the number of the row, which Arrow tells only when it reads with one thread."""
        if again and "Row #" not in str(error) and "CSV" in str(error):
            try:
                for _ in self._open(columns, threads=False):
                    pass
            except (pa.ArrowException, OSError, InvalidValueError, InvalidTypeError) as with_row:
                error = with_row
        if isinstance(error, InvalidValueError | InvalidTypeError):
            return error
        return self._explained(str(error)) or unreadable(self.path, "csv", error)

    def _explained(self, message: str) -> InvalidValueError | InvalidTypeError | None:
        """What Arrow's message means, with rows numbered as everywhere: from 1, without the header."""
        if found := _NOT_A_NUMBER.search(message):
            header = header_of(self.path, self.delimiter)
            column = header[int(found[1])] if int(found[1]) < len(header) else f"number {int(found[1]) + 1}"
            where = f"row {int(found[2]) - 1:,} of {self.path.name}"
            text = found[4] if len(found[4]) <= 40 else found[4][:37] + "..."
            part = next((part for part, name in self.columns.named.items() if name == column), None)
            if part in ("score", "weight"):
                got = f"{text!r} in {where}"
                return InvalidTypeError(part, "hold real numbers", got=got, advice=_number_hint(text), column=column)
            got = f"{text!r} in {where}, and only {found[3]} in its first rows"
            if part is None:
                return InvalidTypeError(f"column {column!r}", "hold one kind of entry", got=got)
            return InvalidTypeError(part, "hold one kind of entry", got=got, column=column)
        if found := _RAGGED.search(message):
            line = found[4] if len(found[4]) <= 60 else found[4][:57] + "..."
            where = f"row {int(found[1]) - 1:,} of {self.path.name}"
            rule = f"have {found[2]} fields, as the header has"
            return InvalidValueError(where, rule, got=f"{found[3]}: {line!r}")
        return None


def _number_hint(text: str) -> str | None:
    if re.fullmatch(r"\s*-?\d*,\d+\s*", text):
        return "write decimals with a point, not with a comma"
    if re.fullmatch(r"\s*-?[\d.]+\s*%\s*", text):
        return "write it without the per cent sign, divided by 100"
    return None


def header_of(path: Path, delimiter: str) -> list[str]:
    """The names in the header line, which may be quoted and then hold line breaks."""
    header = _header(path, delimiter)
    if header is None:
        rule, got = "end within its first 4 MB", "no line break"
        raise InvalidValueError(
            f"the header line of {path.name!r}", rule, got=got, advice="check that it is a CSV file"
        )
    return header


def _header(path: Path, delimiter: str) -> list[str] | None:
    """The fields of the first line that is not empty; None where it has no end within the limit."""
    for size in _HEADER_SIZES:
        start = beginning(path, size)
        text = start.decode("utf-8-sig", "replace").lstrip("\r\n")
        if not text.strip():
            raise InvalidValueError(f"the file {path.name!r}", "hold a header line and rows", got="an empty file")
        lines = io.StringIO(text, newline="")
        try:
            header = next(csv.reader(lines, delimiter=delimiter))
        except csv.Error:  # a field of more than 128 KB
            continue
        if len(start) < size or lines.tell() < len(text):
            return header
    return None


def delimiter_of(path: Path, columns: Columns) -> str:
    """The delimiter that makes the header hold the columns asked for; a comma where none does."""
    wanted = {name for name in columns.named.values() if name}
    held = {mark: _header(path, mark) or [] for mark in _DELIMITERS}
    best = max(_DELIMITERS, key=lambda mark: (len(wanted & set(held[mark])), len(held[mark]), mark == ","))
    if not wanted & set(held[best]):
        if any(map(_is_number, held[best])):
            rule = "begin with a header line that names the columns"
            raise InvalidValueError(f"the file {path.name!r}", rule, got=f"numbers: {best.join(held[best])[:60]!r}")
        if len(held[best]) == 1 and len(wanted) > 1:
            rule = "be separated by a comma, semicolon, tab or |"
            got = f"a header without any: {held[best][0][:60]!r}"
            raise InvalidValueError(f"fields of the file {path.name!r}", rule, got=got)
    return best


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
