"""Files on disk as parts to read: Parquet by row group, CSV, JSON lines and Arrow IPC by file."""

import glob
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.rows.arrow import BATCH_ROWS, ArrowData, Part
from calibrant.rows.batch import Columns
from calibrant.rows.csv_files import CsvFile, delimiter_of, header_of
from calibrant.rows.faults import Place
from calibrant.rows.file_kind import check_kind, first_bad_line, sniff, unreadable
from calibrant.rows.progress import Progress

_FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
}
FORMATS = ("parquet", "csv", "json", "ipc")
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}


def find_files(source: Any) -> list[Path]:
    """The files that a path, a folder, a glob or a list of them names, in the order of their names."""
    if isinstance(source, list | tuple):
        return [path for entry in source for path in find_files(entry)]
    text = str(source)
    path = Path(text)
    if path.is_dir():
        found = sorted(entry for entry in path.rglob("*") if entry.is_file() and _wanted(entry.relative_to(path)))
        if not found:
            known = ", ".join(sorted(_FORMATS))
            raise InvalidValueError(f"folder {text!r} must hold files of data ({known}); got none")
        return found
    if path.is_file():
        return [path]
    found = sorted(Path(entry) for entry in glob.glob(text, recursive=True) if Path(entry).is_file())
    if not found:
        what = "no file matches" if glob.has_magic(text) else "there is no file"
        raise InvalidValueError(f"{what} {text!r}")
    return found


def _wanted(path: Path) -> bool:
    hidden = any(part.startswith((".", "_")) for part in path.parts)
    return not hidden and format_of(path) is not None


def format_of(path: Path) -> str | None:
    """The format that a file's name tells; None where it tells none."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return _FORMATS.get(suffixes[-1]) if suffixes else None


def from_files(
    source: Any,
    columns: Columns,
    *,
    threads: int,
    progress: Progress,
    format: str | None = None,
    types: Mapping[str, Any] | None = None,
) -> ArrowData:
    """The files that `source` names, all of one format; `types` are Arrow types of columns where text is read."""
    paths = find_files(source)
    kind = common_format(paths, format)
    for path in paths:
        check_kind(path, kind)
    parts, schema, rows = _OPEN[kind](_numbered(paths), columns, types or {})
    _check_flat(schema, columns)
    return ArrowData(parts, schema, columns, part_rows=rows, threads=threads, progress=progress)


def _numbered(paths: Sequence[Path]) -> list[tuple[int, Path]]:
    """Files in the order given, each with its number in the order of the names, in which rows are counted."""
    ranks = {place: rank for rank, place in enumerate(sorted(range(len(paths)), key=lambda place: paths[place]))}
    return [(ranks[place], path) for place, path in enumerate(paths)]


def _check_flat(schema: Any, columns: Columns) -> None:
    """Refuse lists and records where labels and segments are looked for."""
    import pyarrow as pa

    for part in ("label", "segment"):
        name = getattr(columns, part)
        if name is not None and pa.types.is_nested(schema.field(name).type):
            raise InvalidTypeError(
                f"{part} column {name!r} must hold numbers, bools or text; got {schema.field(name).type}"
            )


def common_format(paths: Sequence[Path], format: str | None = None) -> str:
    """The one format of all files: as given, as their names say, or as the beginning of a file without a name does."""
    formats: dict[str, Path] = {}
    for path in paths:
        kind = format or format_of(path) or sniff(path)
        if kind is None:
            raise InvalidValueError(
                f"file {path.name!r} must end in one of {', '.join(sorted(_FORMATS))}, or its format must be given "
                f"as one of {', '.join(FORMATS)}"
            )
        formats.setdefault(kind, path)
    if len(formats) > 1:
        told = ", ".join(f"{kind} ({path.name!r})" for kind, path in sorted(formats.items()))
        raise InvalidValueError(f"files must be of one format; got {told}")
    return next(iter(formats))


def schema_of(source: Any, format: str | None = None) -> Any:
    """The names and types of the columns of the first file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = find_files(source)[0]
    kind = common_format([path], format)
    check_kind(path, kind)
    if kind == "parquet":
        try:
            return pq.read_schema(path)
        except (pa.ArrowInvalid, OSError) as error:
            raise unreadable(path, "Parquet", error) from None
    nothing = Columns("")
    if kind == "csv":
        return CsvFile(path, 0, nothing, delimiter_of(path, nothing)).schema()
    return JsonFile(path, 0, nothing).schema() if kind == "json" else IpcFile(path, 0).schema()


def _parquet_parts(
    paths: list[tuple[int, Path]], columns: Columns, types: Mapping[str, Any]
) -> tuple[list[Part], Any, list[int]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts: list[Part] = []
    schema, rows = None, [0] * len(paths)
    for number, path in paths:
        try:
            with pq.ParquetFile(path) as file:
                metadata, own = file.metadata, file.schema_arrow
        except (pa.ArrowInvalid, OSError) as error:
            raise unreadable(path, "Parquet", error) from None
        columns.check(own.names)
        _check_same_columns(path, own, schema)
        schema = own if schema is None else schema
        first = 0
        for group in range(metadata.num_row_groups):
            parts.append(_in_order(RowGroup(path, metadata, group, number, first), own, schema))
            first += metadata.row_group(group).num_rows
        rows[number] = first
    return parts, schema, rows


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group of a Parquet file."""

    path: Path
    metadata: Any
    group: int
    number: int
    first_row: int

    def batches(self, columns: Sequence[str] | None) -> Iterator[tuple[Any, Place]]:
        """The row group's batches."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        row = self.first_row
        try:
            with pq.ParquetFile(self.path, metadata=self.metadata, pre_buffer=False) as file:
                names = None if columns is None else list(columns)
                for batch in file.iter_batches(BATCH_ROWS, row_groups=[self.group], columns=names, use_threads=False):
                    chosen = batch if names is None else batch.select(names)
                    yield chosen, Place(self.number, row, self.path.name)
                    row += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise unreadable(self.path, "Parquet", error) from None


@dataclass(frozen=True, slots=True)
class InOrder:
    """A part whose columns stand in another order than those of the first file."""

    part: Part
    names: tuple[str, ...]

    def batches(self, columns: Sequence[str] | None) -> Iterator[tuple[Any, Place]]:
        """The part's batches, with the columns in the order of the first file."""
        return self.part.batches(self.names if columns is None else columns)


def _in_order(part: Any, own: Any, first: Any) -> Part:
    return part if own.names == first.names else InOrder(part, tuple(first.names))


def _csv_parts(
    paths: list[tuple[int, Path]], columns: Columns, types: Mapping[str, Any]
) -> tuple[list[Part], Any, None]:
    parts = [CsvFile(path, number, columns, delimiter_of(path, columns), types) for number, path in paths]
    for part in parts:
        columns.check(header_of(part.path, part.delimiter))
    return *_with_schema(parts, columns), None


def _json_parts(
    paths: list[tuple[int, Path]], columns: Columns, types: Mapping[str, Any]
) -> tuple[list[Part], Any, None]:
    parts = [JsonFile(path, number, columns) for number, path in paths]
    return *_with_schema(parts, columns), None


@dataclass(frozen=True, slots=True)
class JsonFile:
    """A file of JSON lines."""

    path: Path
    number: int
    columns: Columns

    def schema(self) -> Any:
        """The columns of the file."""
        return self._open().schema

    def batches(self, columns: Sequence[str] | None) -> Iterator[tuple[Any, Place]]:
        """The file's batches, as it is read."""
        import pyarrow as pa

        row = 0
        try:
            reader = self._open()
            for batch in reader if hasattr(reader, "read_next_batch") else reader.to_batches():
                yield (
                    (batch if columns is None else batch.select(list(columns))),
                    Place(self.number, row, self.path.name),
                )
                row += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from None

    def _open(self) -> Any:
        import pyarrow as pa
        from pyarrow import json

        read = json.ReadOptions(block_size=1 << 23)
        try:
            source = pa.input_stream(str(self.path), compression="detect")
            return getattr(json, "open_json", json.read_json)(source, read)
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: Exception) -> InvalidValueError:
        reason = first_bad_line(self.path, self.columns.score)
        return unreadable(self.path, "JSON lines", error) if reason is None else InvalidValueError(reason)


def _ipc_parts(
    paths: list[tuple[int, Path]], columns: Columns, types: Mapping[str, Any]
) -> tuple[list[Part], Any, None]:
    parts = [IpcFile(path, number) for number, path in paths]
    return *_with_schema(parts, columns), None


@dataclass(frozen=True, slots=True)
class IpcFile:
    """An Arrow IPC file or stream."""

    path: Path
    number: int

    def schema(self) -> Any:
        """The columns of the file."""
        return self._open().schema

    def batches(self, columns: Sequence[str] | None) -> Iterator[tuple[Any, Place]]:
        """The file's batches, none longer than the limit."""
        import pyarrow as pa

        row = 0
        try:
            reader = self._open()
            count = getattr(reader, "num_record_batches", None)
            for whole in reader if count is None else map(reader.get_batch, range(count)):
                batch = whole if columns is None else whole.select(list(columns))
                for start in range(0, batch.num_rows, BATCH_ROWS):
                    piece = batch.slice(start, BATCH_ROWS)
                    yield piece, Place(self.number, row, self.path.name)
                    row += piece.num_rows
        except (pa.ArrowException, OSError) as error:
            raise unreadable(self.path, "Arrow IPC", error) from None

    def _open(self) -> Any:
        import pyarrow as pa

        try:
            source = pa.memory_map(str(self.path))
            try:
                return pa.ipc.open_file(source)
            except pa.ArrowInvalid:
                source.seek(0)
                return pa.ipc.open_stream(source)
        except (pa.ArrowInvalid, OSError) as error:
            raise unreadable(self.path, "Arrow IPC", error) from None


def _with_schema(parts: Sequence[Any], columns: Columns) -> tuple[list[Part], Any]:
    """The parts, their columns in the order of the first one's, and its schema."""
    schema, ordered = None, []
    for part in parts:
        own = part.schema()
        columns.check(own.names)
        _check_same_columns(part.path, own, schema)
        schema = own if schema is None else schema
        ordered.append(_in_order(part, own, schema))
    return ordered, schema


def _check_same_columns(path: Path, own: Any, first: Any) -> None:
    if first is not None and set(own.names) != set(first.names):
        different = sorted(set(own.names) ^ set(first.names))
        raise InvalidValueError(f"files must all have the same columns; {path.name!r} differs in {different[:5]}")


_OPEN = {"parquet": _parquet_parts, "csv": _csv_parts, "json": _json_parts, "ipc": _ipc_parts}
