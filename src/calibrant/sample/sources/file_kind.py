"""File formats, recognised by name or by first bytes, and the reasons why a file cannot be read."""

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from calibrant._json import NotJsonError, read_json
from calibrant._optional import pa
from calibrant.errors import InvalidValueError
from calibrant.text.sentences import Setting, Text, joined

FORMATS = {"parquet": "Parquet", "csv": "CSV", "json": "JSON lines", "ipc": "Arrow IPC"}
"""The supported formats, and their names in sentences."""

_SUFFIXES = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".tsv", ".txt"),
    "json": (".jsonl", ".ndjson", ".json"),
    "ipc": (".arrow", ".feather", ".ipc"),
}
SUFFIXES = sorted(suffix for suffixes in _SUFFIXES.values() for suffix in suffixes)
"""The suffixes of file names."""

COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
"""The suffixes of compressed files, and Arrow's names for the compressions."""

SAVE_AS_UTF8 = (
    "save it as UTF-8 (in Excel as 'CSV UTF-8', in a shell with iconv -f CP1252 -t UTF-8)"
)
"""What to do with text in another encoding."""

_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")
_FOREIGN = {
    b"PK\x03\x04": "a zip file or an Excel workbook",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"SQLite format 3": "a SQLite database",
    b"\x89HDF": "an HDF5 file",
    b"%PDF": "a PDF",
    b"ORC": "an ORC file",
    b"Obj\x01": "an Avro file",
    b"\x80\x04\x95": "a pickle",
    b"\x80\x05\x95": "a pickle",
}
_WEB_PAGE = re.compile(
    rb"(\xef\xbb\xbf)?\s*<(!doctype|html|head|body|table|script|\?xml)[\s>]", re.IGNORECASE
)
_BINARY = ("parquet", "ipc")


def format_of(path: Path) -> str | None:
    """Return the format that a file's name indicates, or None."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return next(
        (kind for kind, known in _SUFFIXES.items() if suffixes and suffixes[-1] in known), None
    )


def beginning(path: Path, size: int = 4096) -> bytes:
    """The first bytes of a file, decompressed if its name indicates compression."""
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            return bytes(stream.read(size))
    except PermissionError:
        raise _not_allowed(path) from None
    except (pa.ArrowException, OSError):
        why = "it is cut short, damaged, or not compressed at all"
        raise InvalidValueError(None, f"{path.name!r} cannot be decompressed: {why}") from None


def sniff_bytes(start: bytes) -> str | None:
    """Return the format of a file that starts with these bytes, or None."""
    if start[:4] == b"PAR1":
        return "parquet"
    if start[:6] == b"ARROW1" or start[:4] == b"\xff\xff\xff\xff":
        return "ipc"
    if _foreign(start) or b"\x00" in start or start[: len(_COMPRESSED[0])] in _COMPRESSED:
        return None
    if start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{":
        return "json"
    return "csv" if start.strip() else None


def sniff(path: Path) -> str | None:
    """Return the format that the first bytes of a file indicate, or None."""
    return sniff_bytes(beginning(path))


def check_kind(path: Path, format: str) -> None:
    """Raise an error for a file that is empty or clearly not of the given format."""
    start = beginning(path) if path.stat().st_size else b""
    if not start:
        raise InvalidValueError(None, f"{path.name!r} is empty: it must contain rows of data")
    check_foreign(path, start)
    reason = _strange(start, format)
    if reason is not None:
        raise InvalidValueError(
            None, joined(f"{path.name!r} cannot be read as {FORMATS[format]}: it ", reason)
        )


def _strange(start: bytes, format: str) -> Text | None:
    """Return why a file that starts with these bytes does not have the format, or None."""
    found = sniff_bytes(start)
    few = start[:64]
    if found is not None and found != format and (found in _BINARY or format in _BINARY):
        return (f"looks like {FORMATS[found]}; rename it, or give ", Setting("format", found))
    if few[:2] in (b"\xff\xfe", b"\xfe\xff") or (
        format not in _BINARY and few.count(0) > len(few) // 4
    ):
        return f"is in UTF-16; {SAVE_AS_UTF8.replace('CP1252', 'UTF-16')}"
    if format not in _BINARY and start.startswith(_COMPRESSED):
        return "is compressed; let its name end in .gz, .bz2, .zst or .lz4"
    if format == "json" and start.lstrip()[:1] == b"[":
        return "must contain one JSON object on each line, not a JSON array"
    if format == "csv" and _WEB_PAGE.match(start):
        return "looks like a web page; save the data themselves as CSV"
    return None


def check_foreign(path: Path, start: bytes) -> None:
    """Raise an error for a file in a known but unsupported format."""
    if (foreign := _foreign(start)) is not None:
        raise InvalidValueError(
            None, f"{path.name!r} cannot be read: it is {foreign}; save it as CSV or Parquet"
        )


def _foreign(start: bytes) -> str | None:
    return next((name for magic, name in _FOREIGN.items() if start.startswith(magic)), None)


def first_bad_line(path: Path, score: str) -> str | None:
    """Return why a file of JSON lines cannot be read, with the row, or None if all lines are valid."""
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            lines = (
                line
                for line in io.TextIOWrapper(stream, encoding="utf-8", errors="replace")
                if line.strip()
            )
            kinds: dict[str, str] = {}
            for row, line in enumerate(lines, start=1):
                if (reason := _bad_object(line, score, kinds)) is not None:
                    return f"{reason} in row {row:,} of {path.name}"
    except (pa.ArrowException, OSError):
        pass
    return None


def _bad_object(line: str, score: str, kinds: dict[str, str]) -> str | None:
    """Why a line cannot be read after others, whose fields have these kinds, or None."""
    try:
        entry: Any = read_json(line, "each line", strict=True)
    except NotJsonError:
        entry = None
    except InvalidValueError as error:
        return str(error)
    if not isinstance(entry, dict):
        return (
            "each line must be a JSON object; got"
            f" {(line.strip() if len(line) <= 60 else line[:57] + '...')!r}"
        )
    value = entry.get(score)
    if isinstance(value, str | list | dict):
        return f"score column {score!r} must contain real numbers; got {value!r}"
    for field, kind in _kinds_in(entry):
        if kinds.setdefault(field, kind) != kind:
            return f"field {field!r} must contain one kind of entry; got {kinds[field]}, and {kind}"
    return None


def _kinds_in(value: Any, field: str = "") -> Iterator[tuple[str, str]]:
    """The kind of each field, with dots in the names of nested ones; null has none."""
    if isinstance(value, dict):
        if field:
            yield field, "an object"
        for name, inner in value.items():
            yield from _kinds_in(inner, f"{field}.{name}" if field else name)
    elif isinstance(value, list):
        yield field, "a list"
        for inner in value:
            yield from _kinds_in(inner, f"{field}.0")
    elif isinstance(value, bool):
        yield field, "true or false"
    elif value is not None:
        yield field, "text" if isinstance(value, str) else "a number"


def _not_allowed(path: Path) -> InvalidValueError:
    return InvalidValueError(None, f"{path.name!r} may not be read: permission denied")


def unreadable(path: Path, format: str, error: Exception) -> InvalidValueError:
    """Return the error for a file that Arrow could not read."""
    if isinstance(error, PermissionError):
        return _not_allowed(path)
    if isinstance(error, UnicodeDecodeError) or "invalid UTF8" in str(error):
        return InvalidValueError(
            f"the text in {path.name!r}", "be UTF-8", got="other bytes", advice=SAVE_AS_UTF8
        )
    reason = f"its content is not {FORMATS[format]}; write it again with another program"
    if isinstance(error, pa.ArrowNotImplementedError):
        reason = "it has a type or a compression that cannot be read here"
    elif format in _BINARY or path.suffix.lower() in COMPRESSIONS:
        reason = "it is cut short or damaged: get it again from its source"
    return InvalidValueError(None, f"{path.name!r} cannot be read as {FORMATS[format]}: {reason}")
