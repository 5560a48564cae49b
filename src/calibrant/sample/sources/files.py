"""Files on disk as parts to read: Parquet by row group; CSV, JSON lines and Arrow IPC by file."""

import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from calibrant._optional import Lazy, pa, pq
from calibrant.errors import CalibrantError, InvalidTypeError, InvalidValueError
from calibrant.sample.arrow_columns import kind_in_words
from calibrant.sample.batch import NO_COLUMNS, Columns
from calibrant.sample.progress import Progress
from calibrant.sample.row_keys import key_kind
from calibrant.sample.sources import file_kind
from calibrant.sample.sources.arrow import BATCH_ROWS, ArrowData, Part
from calibrant.sample.sources.csv_files import CsvFile, delimiter_of
from calibrant.sample.sources.hive import Read, columns_of_folders, with_columns
from calibrant.sample.sources.json_lines import LONGEST_LINE, check_nesting
from calibrant.sample.sources.spool import Room, parsed_once
from calibrant.text.sentences import Setting, did_you_mean

json: Any = Lazy("pyarrow.json")

_PART_ROWS = 1 << 17  # rows up to which small row groups are read together
_LARGE_GROUP = 1 << 26  # bytes of a row group from which on its columns are read in pieces
_BUFFER = 1 << 20  # bytes per piece


def find_files(source: Any) -> list[Path]:
    """The files named by a path, a folder, a glob or a list of them.

    The files of a folder or a glob are sorted.
    """
    if isinstance(source, list | tuple):
        return [path for entry in source for path in find_files(entry)]
    found = _found(str(source))
    for path in found:
        if any(
            0xD800 <= ord(letter) < 0xE000 for letter in str(path)
        ):  # how Python represents bytes that are not UTF-8
            raise InvalidValueError(
                "the name of a file", "be UTF-8", got=ascii(str(path)), advice="rename it"
            )
    return found


def _found(text: str) -> list[Path]:
    path = Path(text)
    if path.is_file():
        return [path]
    if path.is_dir():
        found = sorted(
            entry
            for entry in path.rglob("*")
            if entry.is_file() and _wanted(entry.relative_to(path))
        )
        if not found:
            rule = f"contain files of data ({', '.join(file_kind.SUFFIXES)})"
            raise InvalidValueError(f"the folder {text!r}", rule, got="none")
        return found
    found = sorted(
        Path(entry) for entry in glob.glob(text, recursive=True) if Path(entry).is_file()
    )
    if not found and path.exists():
        rule = "be a file, a folder or a glob, because rows are read several times"
        advice = (
            "write the rows to a file; on the command line, pipe them in and name - (standard"
            " input)"
        )
        raise InvalidValueError(repr(text), rule, got="a pipe or a device", advice=advice)
    if not found:
        what = "no file matches" if glob.has_magic(text) else "there is no file"
        raise InvalidValueError(None, f"{what} {text!r}", advice=_similar_file(path))
    return found


def _similar_file(path: Path) -> str | None:
    """A question that names a file in the same folder with nearly this name, if there is one."""
    try:
        names = os.listdir(path.parent)
    except OSError:
        return None
    return did_you_mean(path.name, names)


def _wanted(path: Path) -> bool:
    hidden = any(part.startswith((".", "_")) for part in path.parts)
    return not hidden and file_kind.format_of(path) is not None


def from_files(
    source: Any,
    columns: Columns,
    *,
    threads: int,
    progress: Progress,
    format: str | None = None,
    types: Mapping[str, Any] | None = None,
    as_text: bool = False,
    decimal: str = ".",
) -> ArrowData:
    """The files that `source` names, all in one format.

    `types` gives the Arrow types of columns that are read from text, `decimal` their decimal mark.

    Columns are read in the order of the first file. Rows are counted over the files in the order of
    their names. CSV files may be read as plain text. Folders named key=value are columns too.
    """
    paths = find_files(source)
    kind = common_format(paths, format)
    for path in paths:
        file_kind.check_kind(path, kind)
    ranks = {
        place: rank
        for rank, place in enumerate(sorted(range(len(paths)), key=lambda place: paths[place]))
    }
    first: Any = None
    parts: list[Part] = []
    rows = [0] * len(paths)
    room = Room()
    of_folders = columns_of_folders(paths, types or {}, as_text=as_text)
    files = [
        File(path, kind, columns, types or {}, as_text, added, decimal, room)
        for path, added in zip(paths, of_folders, strict=True)
    ]
    for place, file in enumerate(files):
        own, reads = file.opened()
        columns.check(own.names)
        first = own if first is None else first
        if different := sorted(set(own.names) ^ set(first.names)):
            got = f"{file.path.name!r}, which differs in {different[:5]}"
            raise InvalidValueError("the files", "all have the same columns", got=got)
        _check_one_kind(own, first, columns.group)
        for read, part_rows in reads:
            parts.append(Part(read, ranks[place], rows[ranks[place]], file.path.name))
            rows[ranks[place]] += part_rows
    _check_flat(first, columns)
    known = rows if kind == "parquet" else None
    settings: dict[str, Any] = {"part_rows": known, "threads": threads, "progress": progress}
    if as_text:  # each entry is written as it was read, including 007 and 1.10
        settings["file"] = files[0].csv()
    return ArrowData(parts, first, columns, **settings)


def _check_one_kind(schema: Any, first: Any, group: str | None) -> None:
    """Raise an error for groups that are numbers in one file and text in another."""
    if group is not None:
        kinds = {key_kind(each.field(group).type) for each in (schema, first)} - {None}
        if len(kinds) > 1:
            got = " and ".join(sorted(map(str, kinds)))
            advice = "write them in the same way in all files"
            raise InvalidTypeError(
                "group", "contain one kind of entry in all files", got, advice, group
            )


def _check_flat(schema: Any, columns: Columns) -> None:
    """Raise an error for lists and records in label and segment columns."""
    for role in ("label", "segment"):
        name = getattr(columns, role)
        if name is not None and pa.types.is_nested(kind := schema.field(name).type):
            raise InvalidTypeError(
                role, "contain numbers, bools or text", got=kind_in_words(kind), column=name
            )


def common_format(paths: Sequence[Path], format: str | None = None) -> str:
    """The common format of all files: as given, as their names indicate, or as the first bytes of a
    file without a suffix do.
    """
    formats: dict[str, Path] = {}
    for path in paths:
        kind = format or file_kind.format_of(path) or file_kind.sniff(path)
        if kind is None:
            file_kind.check_foreign(path, file_kind.beginning(path))
            advice = (
                "give its format, ",
                Setting("format"),
                f", as one of {', '.join(file_kind.FORMATS)}",
            )
            rule = f"end in one of {', '.join(file_kind.SUFFIXES)}"
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
    file_kind.check_kind(path, kind)
    return File(path, kind, of_folders=columns_of_folders([path], {})[0]).opened()[0]


Opened: TypeAlias = tuple[Any, list[tuple[Read, int]]]
"""The schema of a file, and its parts with the number of rows in each; 0 if unknown."""


@dataclass(slots=True)
class File:
    """A file in one format, and the columns from its folder names."""

    path: Path
    kind: str
    columns: Columns = NO_COLUMNS
    types: Mapping[str, Any] = field(default_factory=dict)
    as_text: bool = False
    of_folders: Mapping[str, Any] = field(default_factory=dict)
    decimal: str = "."
    room: Room = field(default_factory=Room)
    stamp: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.stamp = self._stamp()

    def _stamp(self) -> tuple[int, ...]:
        """Inode, size and modification time, which show whether a file has changed."""
        try:
            found = self.path.stat()
        except OSError:  # removed, or no longer accessible
            return ()
        return found.st_ino, found.st_size, found.st_mtime_ns

    def opened(self) -> Opened:
        """Return the schema and the parts, which raise our own errors."""
        with self._reading(None):
            schema, parts = _OPEN[self.kind](self)
            names = list(schema.names)  # raises an error if a name is not UTF-8
        added = {name: value for name, value in self.of_folders.items() if name not in names}
        for name, value in added.items():
            schema = schema.append(pa.field(name, value.type))
        if self.kind in ("csv", "json"):
            parts = [(parsed_once(read, self.room), rows) for read, rows in parts]
        return schema, [
            (with_columns(partial(self._read, read), names, added), rows) for read, rows in parts
        ]

    def _read(self, read: Read, names: list[str] | None) -> Iterator[Any]:
        with self._reading(names):
            yield from read(names)

    @contextmanager
    def _reading(self, names: list[str] | None) -> Iterator[None]:
        """Turn Arrow errors into ours.

        Raise an error if the file has changed since it was first opened.
        """
        self._check_unchanged()
        try:
            yield
        except Exception as error:
            self._check_unchanged()  # which explains the error better
            if not isinstance(error, pa.ArrowException | OSError | UnicodeDecodeError):
                raise
            raise self._fault(names) or file_kind.unreadable(self.path, self.kind, error) from None
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        if self._stamp() != self.stamp:
            what = f"the file {self.path.name!r} changed while it was read"
            raise InvalidValueError(None, f"{what}: run again when it is complete")

    def csv(self) -> CsvFile:
        """The file as CSV."""
        delimiter = delimiter_of(self.path, self.columns)
        return CsvFile(self.path, delimiter, self.columns, self.types, self.decimal)

    def _fault(self, names: list[str] | None) -> CalibrantError | None:
        """The error for the first unreadable row, if one is found."""
        if self.kind == "csv":
            return self.csv().fault(names)
        reason = (
            file_kind.first_bad_line(self.path, self.columns.score) if self.kind == "json" else None
        )
        return None if reason is None else InvalidValueError(None, reason)


def _open_parquet(file: File) -> Opened:
    with pq.ParquetFile(file.path) as opened:
        metadata = opened.metadata
        schema = opened.schema_arrow

    sizes = [metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)]
    buffer = _BUFFER if max(sizes, default=0) > _LARGE_GROUP else 0

    def part(groups: list[int]) -> Read:
        def read(names: list[str] | None) -> Iterator[Any]:
            given = {"metadata": metadata, "pre_buffer": False, "buffer_size": buffer}
            with pq.ParquetFile(file.path, **given) as opened:
                yield from opened.iter_batches(
                    BATCH_ROWS, row_groups=groups, columns=names, use_threads=False
                )

        return read

    parts: list[tuple[Read, int]] = []
    groups = []
    rows = 0
    for group in range(metadata.num_row_groups):
        groups.append(group)
        rows += metadata.row_group(group).num_rows
        if rows >= _PART_ROWS or group == metadata.num_row_groups - 1:
            parts.append((part(groups), rows))
            groups = []
            rows = 0
    return schema, parts


def _open_csv(file: File) -> Opened:
    opened = file.csv()
    if file.columns.score:
        file.columns.check(
            [*opened.header, *(name for name in file.of_folders if name not in opened.header)]
        )
    if file.as_text:
        return pa.schema([(name, pa.string()) for name in opened.header]), [
            (opened.open_as_text, 0)
        ]
    schema = opened.open(None).schema
    opened.check_text(schema)
    return schema, [(opened.open, 0)]


def _open_json(file: File) -> Opened:
    def reader() -> Any:
        source = pa.input_stream(str(file.path), compression="detect")
        return getattr(json, "open_json", json.read_json)(
            source, json.ReadOptions(block_size=LONGEST_LINE)
        )

    def read(names: list[str] | None) -> Any:
        opened = reader()
        return opened if hasattr(opened, "read_next_batch") else opened.to_batches()

    with pa.input_stream(str(file.path), compression="detect") as stream:
        check_nesting(stream, repr(file.path.name))
    return reader().schema, [(read, 0)]


def _open_ipc(file: File) -> Opened:
    """An Arrow IPC file or stream."""

    def reader() -> Any:
        source = pa.memory_map(str(file.path))
        try:
            return pa.ipc.open_file(source)
        except pa.ArrowInvalid:
            source.seek(0)
            return pa.ipc.open_stream(source)

    def read(names: list[str] | None) -> Any:
        opened = reader()
        count = getattr(opened, "num_record_batches", None)
        return opened if count is None else map(opened.get_batch, range(count))

    return reader().schema, [(read, 0)]


_OPEN: dict[str, Callable[[File], Opened]] = {
    "parquet": _open_parquet,
    "csv": _open_csv,
    "json": _open_json,
    "ipc": _open_ipc,
}
