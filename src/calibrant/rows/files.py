"""Files on disk as parts to read: Parquet by row group, CSV, JSON lines and Arrow IPC by file."""

import glob
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from calibrant._optional import pa, pq
from calibrant._text import Setting
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.rows.arrow import BATCH_ROWS, ArrowData, FilePart, stamp_of
from calibrant.rows.batch import Columns
from calibrant.rows.csv_files import CsvFile, delimiter_of, header_of
from calibrant.rows.file_kind import (
    FORMATS,
    SUFFIXES,
    beginning,
    check_foreign,
    check_kind,
    first_bad_line,
    format_of,
    reading,
    sniff,
    unreadable,
)
from calibrant.rows.progress import Progress

_PART_ROWS = 1 << 17  # of small row groups, which are read together


def find_files(source: Any) -> list[Path]:
    """The files that a path, a folder, a glob or a list of them names; those of a folder or a glob are sorted."""
    if isinstance(source, list | tuple):
        return [path for entry in source for path in find_files(entry)]
    found = _found(str(source))
    for path in found:
        if any(0xD800 <= ord(letter) < 0xE000 for letter in str(path)):  # how Python writes bytes that are no UTF-8
            raise InvalidValueError("the name of a file", "be UTF-8", got=ascii(str(path)), advice="rename it")
    return found


def _found(text: str) -> list[Path]:
    path = Path(text)
    if path.is_file():
        return [path]
    if path.is_dir():
        found = sorted(entry for entry in path.rglob("*") if entry.is_file() and _wanted(entry.relative_to(path)))
        if not found:
            raise InvalidValueError(f"the folder {text!r}", f"hold files of data ({', '.join(SUFFIXES)})", got="none")
        return found
    found = sorted(Path(entry) for entry in glob.glob(text, recursive=True) if Path(entry).is_file())
    if not found:
        what = "no file matches" if glob.has_magic(text) else "there is no file"
        raise InvalidValueError(None, f"{what} {text!r}")
    return found


def _wanted(path: Path) -> bool:
    hidden = any(part.startswith((".", "_")) for part in path.parts)
    return not hidden and format_of(path) is not None


def from_files(
    source: Any,
    columns: Columns,
    *,
    threads: int,
    progress: Progress,
    format: str | None = None,
    types: Mapping[str, Any] | None = None,
) -> ArrowData:
    """The files that `source` names, all of one format; `types` are Arrow types of columns where text is read.

    Columns are read in the order of the first file. Rows are counted over the files in the order of their names.
    """
    paths = find_files(source)
    kind = common_format(paths, format)
    for path in paths:
        check_kind(path, kind)
    ranks = {place: rank for rank, place in enumerate(sorted(range(len(paths)), key=lambda place: paths[place]))}
    first: Any = None
    parts: list[FilePart] = []
    rows = [0] * len(paths)
    for place, path in enumerate(paths):
        stamp = stamp_of(path)
        own, found, rows[ranks[place]] = _OPEN[kind](path, ranks[place], columns, types or {})
        columns.check(own.names)
        first = own if first is None else first
        if different := sorted(set(own.names) ^ set(first.names)):
            got = f"{path.name!r}, which differs in {different[:5]}"
            raise InvalidValueError("the files", "all have the same columns", got=got)
        order = None if own.names == first.names else tuple(first.names)
        parts += [replace(part, order=order, stamp=stamp) for part in found]
    _check_flat(first, columns)
    known = rows if kind == "parquet" else None
    return ArrowData(parts, first, columns, part_rows=known, threads=threads, progress=progress)


def _check_flat(schema: Any, columns: Columns) -> None:
    """Raise an error for lists and records in the columns of labels and segments."""
    for role in ("label", "segment"):
        name = getattr(columns, role)
        if name is not None and pa.types.is_nested(kind := schema.field(name).type):
            raise InvalidTypeError(role, "hold numbers, bools or text", got=str(kind), column=name)


def common_format(paths: Sequence[Path], format: str | None = None) -> str:
    """The one format of all files: as given, as their names say, or as the beginning of a file without a name does."""
    formats: dict[str, Path] = {}
    for path in paths:
        kind = format or format_of(path) or sniff(path)
        if kind is None:
            check_foreign(path, beginning(path))
            advice = ("give its format, ", Setting("format"), f", as one of {', '.join(FORMATS)}")
            rule = f"end in one of {', '.join(SUFFIXES)}"
            raise InvalidValueError(f"the name of the file {path.name!r}", rule, advice=advice)
        formats.setdefault(kind, path)
    if len(formats) > 1:
        got = ", ".join(f"{kind} ({path.name!r})" for kind, path in sorted(formats.items()))
        raise InvalidValueError("the files", "be of one format", got=got)
    return next(iter(formats))


def schema_of(source: Any, format: str | None = None) -> Any:
    """The names and types of the columns of the first file."""
    path = find_files(source)[0]
    kind = common_format([path], format)
    check_kind(path, kind)
    return _OPEN[kind](path, 0, Columns(""), {})[0]


Opened = tuple[Any, Sequence[FilePart], int]
"""The schema of a file, its parts, and how many rows it has; 0 where that is not known."""


def _open_parquet(path: Path, number: int, columns: Columns, types: Mapping[str, Any]) -> Opened:
    with reading(path, "parquet"), pq.ParquetFile(path) as file:
        metadata, schema = file.metadata, file.schema_arrow
    parts, first, groups, rows = [], 0, [], 0
    for group in range(metadata.num_row_groups):
        groups.append(group)
        rows += metadata.row_group(group).num_rows
        if rows >= _PART_ROWS or group == metadata.num_row_groups - 1:
            parts.append(RowGroups(path, number, first_row=first, metadata=metadata, groups=groups))
            first, groups, rows = first + rows, [], 0
    return schema, parts, first


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroups(FilePart):
    """Row groups of a Parquet file that follow each other: one, or many small ones."""

    metadata: Any
    groups: list[int]

    def read(self, columns: list[str] | None) -> Iterator[Any]:
        """The batches of the row groups."""
        with (
            reading(self.path, "parquet"),
            pq.ParquetFile(self.path, metadata=self.metadata, pre_buffer=False) as file,
        ):
            yield from file.iter_batches(BATCH_ROWS, row_groups=self.groups, columns=columns, use_threads=False)


def _open_csv(path: Path, number: int, columns: Columns, types: Mapping[str, Any]) -> Opened:
    part = CsvFile(path, number, columns=columns, delimiter=delimiter_of(path, columns), types=types)
    if columns.score:
        columns.check(header_of(path, part.delimiter))
    return part.schema(), [part], 0


def _open_json(path: Path, number: int, columns: Columns, types: Mapping[str, Any]) -> Opened:
    part = JsonFile(path, number, score=columns.score)
    return part.open().schema, [part], 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonFile(FilePart):
    """A file of JSON lines."""

    score: str

    def read(self, columns: list[str] | None) -> Iterator[Any]:
        """The file's batches, as it is read."""
        try:
            reader = self.open()
            yield from reader if hasattr(reader, "read_next_batch") else reader.to_batches()
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from None

    def open(self) -> Any:
        """A reader of the file."""
        from pyarrow import json

        try:
            source = pa.input_stream(str(self.path), compression="detect")
            return getattr(json, "open_json", json.read_json)(source, json.ReadOptions(block_size=1 << 23))
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: Exception) -> InvalidValueError:
        reason = first_bad_line(self.path, self.score)
        return unreadable(self.path, "json", error) if reason is None else InvalidValueError(None, reason)


def _open_ipc(path: Path, number: int, columns: Columns, types: Mapping[str, Any]) -> Opened:
    part = IpcFile(path, number)
    return part.open().schema, [part], 0


@dataclass(frozen=True, slots=True, kw_only=True)
class IpcFile(FilePart):
    """An Arrow IPC file or stream."""

    def read(self, columns: list[str] | None) -> Iterator[Any]:
        """The file's batches, none longer than the limit."""
        with reading(self.path, "ipc"):
            reader = self.open()
            count = getattr(reader, "num_record_batches", None)
            for whole in reader if count is None else map(reader.get_batch, range(count)):
                yield from (whole.slice(start, BATCH_ROWS) for start in range(0, whole.num_rows, BATCH_ROWS))

    def open(self) -> Any:
        """A reader of the file."""
        with reading(self.path, "ipc"):
            source = pa.memory_map(str(self.path))
            try:
                return pa.ipc.open_file(source)
            except pa.ArrowInvalid:
                source.seek(0)
                return pa.ipc.open_stream(source)


_OPEN: dict[str, Callable[[Path, int, Columns, Mapping[str, Any]], Opened]] = {
    "parquet": _open_parquet,
    "csv": _open_csv,
    "json": _open_json,
    "ipc": _open_ipc,
}
