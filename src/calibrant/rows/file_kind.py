"""What a file is, by how it begins; and which line of JSON is at fault."""

import json
from pathlib import Path
from typing import Any

from calibrant.errors import InvalidValueError

_NAMES = {"parquet": "Parquet", "csv": "CSV", "json": "JSON lines", "ipc": "Arrow IPC"}
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
_DAMAGE = ("runcated", "Unexpected end", "smaller than", "magic bytes", "thrift", "xpected to read", "orrupt")
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")


def beginning(path: Path, size: int = 4096) -> bytes:
    """The first bytes of a file, decompressed where its name says that it is compressed."""
    import pyarrow as pa

    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            return bytes(stream.read(size))
    except PermissionError:
        raise InvalidValueError(f"{path.name!r} may not be read: permission denied") from None
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:160]
        raise InvalidValueError(
            f"{path.name!r} can not be decompressed ({reason}): it is cut short, damaged, or not compressed at all"
        ) from None


def sniff_bytes(start: bytes) -> str | None:
    """The format that bytes begin like; None for those of no format that is read."""
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
    """The format that a file begins like; None where it begins like none."""
    return sniff_bytes(beginning(path))


def check_kind(path: Path, format: str) -> None:
    """Refuse a file that is empty, or plainly of another kind than `format`."""
    if path.stat().st_size == 0:
        raise InvalidValueError(f"{path.name!r} is empty: it must hold rows of data")
    start = beginning(path)
    name = _NAMES[format]
    if not start:
        raise InvalidValueError(f"{path.name!r} is empty: it must hold rows of data")
    foreign = _foreign(start)
    if foreign is not None:
        raise InvalidValueError(f"{path.name!r} can not be read as {name}: it is {foreign}; save it as CSV or Parquet")
    found = sniff_bytes(start)
    binary = ("parquet", "ipc")
    if found is not None and found != format and (found in binary or format in binary):
        raise InvalidValueError(
            f"{path.name!r} can not be read as {name}: it looks like {_NAMES[found]}; rename it, or give its format "
            f"as {found}"
        )
    if _is_utf16(start, format):
        raise InvalidValueError(f"{path.name!r} can not be read as {name}: it is in UTF-16; save it as UTF-8")
    if format in ("csv", "json") and start.startswith(_COMPRESSED):
        raise InvalidValueError(
            f"{path.name!r} can not be read as {name}: it is compressed; let its name end in .gz, .bz2, .zst or .lz4"
        )
    if format == "json" and start.lstrip()[:1] == b"[":
        raise InvalidValueError(
            f"{path.name!r} must hold one JSON object on each line; got a JSON array, which must be read as a whole"
        )
    if format == "csv" and start.lstrip()[:1] == b"<":
        raise InvalidValueError(f"{path.name!r} can not be read as CSV: it looks like a web page")


def _is_utf16(start: bytes, format: str) -> bool:
    few = start[:64]
    return few[:2] in (b"\xff\xfe", b"\xfe\xff") or (format in ("csv", "json") and few.count(0) > len(few) // 4)


def _foreign(start: bytes) -> str | None:
    return next((name for magic, name in _FOREIGN.items() if start.startswith(magic)), None)


def first_bad_line(path: Path, score: str) -> str | None:
    """Why a file of JSON lines can not be read, with the row; None where every line is well."""
    import io

    import pyarrow as pa

    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            row = 0
            for line in io.TextIOWrapper(stream, encoding="utf-8", errors="replace"):
                if not line.strip():
                    continue
                row += 1
                reason = _bad_object(line, score)
                if reason is not None:
                    return f"{reason} in row {row:,} of {path.name}"
    except (pa.ArrowException, OSError):
        return None
    return None


def _bad_object(line: str, score: str) -> str | None:
    shown = repr(line.strip() if len(line) <= 60 else line[:57] + "...")
    try:
        entry: Any = json.loads(line)
    except ValueError:
        return f"each line must be a JSON object; got {shown}"
    if not isinstance(entry, dict):
        return f"each line must be a JSON object; got {shown}"
    value = entry.get(score)
    if isinstance(value, str | list | dict):
        return f"score column {score!r} must hold real numbers; got {value!r}"
    return None


def unreadable(path: Path, kind: str, error: Exception) -> InvalidValueError:
    """What to say of a file that Arrow could not read."""
    reason = " ".join(str(error).split())
    if isinstance(error, PermissionError):
        return InvalidValueError(f"{path.name!r} may not be read: permission denied")
    if any(sign in reason for sign in _DAMAGE):
        reason = f"it is cut short or damaged ({reason[:160]}): get it again from where it was made"
    elif "zlib" in reason or "decompress" in reason or "inflate" in reason:
        reason = f"its compression is damaged ({reason[:160]}): get it again from where it was made"
    elif "Empty CSV" in reason:
        reason = "it is empty, and must hold a header line and rows"
    return InvalidValueError(f"{path.name!r} can not be read as {kind}: {reason}")
