"""Columns of files whose rows may be nested: CSV, Parquet, Arrow, JSON lines, Inspect logs and
promptfoo results.

Inspect writes a log as JSON with a list of samples, or as a zip archive (.eval) with one JSON file
per sample. promptfoo writes JSON with a list of results. Both are recognised by their format alone.
A nested field is named with dots, such as scores.judge.value.
"""

import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from calibrant._json import MOST_BYTES, NotJsonError, read_json
from calibrant.cli._errors import RefusedError
from calibrant.cli._input import Files
from calibrant.errors import InvalidValueError
from calibrant.text.sentences import did_you_mean

_MOST_NAMES = 15  # listed in an error
_MOST_DIGITS = 10  # of a position in a list
_DEEPEST = 4
_BOM = b"\xef\xbb\xbf"
_ZIP = b"PK\x03\x04"

Record = Mapping[str, Any]


def read_columns(source: Files, wanted: Mapping[str, str | None]) -> dict[str, list[Any]]:
    """Columns by role, all of the same length, in file order.

    None where a row lacks the field.
    """
    from calibrant.sample.sources.files import find_files

    named = {role: name for role, name in wanted.items() if name is not None}
    columns: dict[str, list[Any]] = {role: [] for role in named}
    for path in find_files(source.paths):
        found = _columns_of(path, source, named)
        for role, values in found.items():
            columns[role] += values
    if not columns["score"]:
        raise RefusedError("the data", "contain at least one item", got="none")
    return columns


def _columns_of(path: Path, source: Files, named: Mapping[str, str]) -> dict[str, list[Any]]:
    with path.open("rb") as file:
        start = file.read(4)
    if start == _ZIP:
        records = list(_inspect_archive(path))
    else:
        kind = Files([str(path)], source.file_format).format()
        if kind != "json":
            return _table_columns(path, kind, named, source.decimal)
        records = _records_of(path)
    _check_fields(records, named)
    return {role: [value_of(record, name) for record in records] for role, name in named.items()}


def _table_columns(
    path: Path, kind: str, named: Mapping[str, str], decimal: str
) -> dict[str, list[Any]]:
    """Columns of CSV, Parquet and Arrow files.

    They may contain records, whose fields are named with dots.
    """
    from calibrant.sample.batch import Columns
    from calibrant.sample.sources.file_kind import check_kind
    from calibrant.sample.sources.files import File

    check_kind(path, kind)
    file = File(path, kind, Columns(named["score"]), decimal=decimal)
    if kind != "csv" or not file.csv().percent_columns:
        file = File(path, kind, decimal=decimal)  # verdicts of a judge may be words
    schema, parts = file.opened()
    wholes = {}
    for role, name in named.items():
        wholes[role] = name if name in schema.names else name.partition(".")[0]
        if wholes[role] not in schema.names:
            raise _no_field(role, name, schema.names)
    read: dict[str, list[Any]] = {whole: [] for whole in wholes.values()}
    for batches, _ in parts:
        for batch in batches(list(read)):
            for whole, values in read.items():
                values += batch.column(whole).to_pylist()
    return {
        role: (
            read[whole]
            if whole == named[role]
            else [value_of({whole: entry}, named[role]) for entry in read[whole]]
        )
        for role, whole in wholes.items()
    }


def value_of(record: Any, name: str, absent: Any = None) -> Any:
    """A field of a record; `absent` if it has none.

    >>> value_of({"output": {"judge": [{"pass": True}]}}, "output.judge.0.pass")
    True
    """
    while True:
        if isinstance(record, Mapping) and name in record:
            return record[name]
        head, _, name = name.partition(".")
        if isinstance(record, Mapping) and head in record:
            record = record[head]
        elif isinstance(record, list | tuple) and (place := _place(head)) < len(record):
            record = record[place]
        else:
            return absent
        if not name:
            return record


def _place(text: str) -> int:
    """A position in a list; too large for any list if the text is none."""
    return int(text) if text.isdecimal() and len(text) < _MOST_DIGITS else sys.maxsize


def _records_of(path: Path) -> list[Record]:
    """The rows of a JSON file: one object per line, a list of objects, an Inspect log or promptfoo
    results.
    """
    from calibrant._optional import pa
    from calibrant.sample.sources.file_kind import unreadable

    name = repr(path.name)
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            data = stream.read(MOST_BYTES + 1)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, "json", error) from None
    first, _, others = data.removeprefix(_BOM).lstrip().partition(b"\n")
    if others.strip() and _is_object(first):
        return [
            _line(path, number, line)
            for number, line in enumerate(data.splitlines(), start=1)
            if line.strip()
        ]
    try:
        document = read_json(data, name)
    except NotJsonError as error:
        raise RefusedError(name, "be JSON, or JSON lines", got=error.got) from None
    return _rows_in(document, path)


def _rows_in(document: Any, path: Path) -> list[Record]:
    if isinstance(document, Mapping) and "eval" in document and "status" in document:
        return _objects(document.get("samples"), f"samples of the Inspect log {path.name!r}")
    if isinstance(document, Mapping) and "results" in document:
        results = document["results"]
        rows = results.get("results") if isinstance(results, Mapping) else results
        where = f"the results of promptfoo in {path.name!r}"
        return [_promptfoo_row(row) for row in _objects(rows, where)]
    return [document] if isinstance(document, Mapping) else _objects(document, repr(path.name))


def _objects(rows: Any, where: str) -> list[Record]:
    """A list of objects, which is not empty."""
    rule = "be a list of objects"
    if not isinstance(rows, list):
        raise RefusedError(where, rule, got=_kind_of(rows))
    if not rows:
        raise RefusedError(where, rule, got="an empty list")
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise RefusedError(where, rule, got=f"{_kind_of(row)} at position {place:,}")
    return rows


def _kind_of(value: Any) -> str:
    """A kind of JSON value in words."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true or false"
    kinds: dict[type, str] = {dict: "an object", list: "a list", str: "text"}
    return kinds.get(type(value), "a number")


def _promptfoo_row(row: Record) -> Record:
    """A result with two more fields: `human`, the manual rating, and `judge`, the verdict without
    it.

    A manual rating is one of the component results, with an assertion of type "human". It overrides
    `success`, so `success` is not the judge's verdict for rated results.
    """
    found = value_of(row, "gradingResult.componentResults")
    parts = [part for part in found if isinstance(part, Mapping)] if isinstance(found, list) else []
    human = [part for part in parts if value_of(part, "assertion.type") == "human"]
    others = [bool(part.get("pass")) for part in parts if part not in human]
    judge = all(others) if others else row.get("success")
    rated = human[-1].get("pass") if human else None
    return {**row, "judge": judge, "human": rated}


def _inspect_archive(path: Path) -> Iterator[Record]:
    """The samples of an Inspect log in a zip archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(
                name
                for name in archive.namelist()
                if name.startswith("samples/") and name.endswith(".json")
            )
            if not names:
                raise RefusedError(
                    f"the archive {path.name!r}",
                    "be an Inspect log with samples",
                    got="none",
                )
            left = MOST_BYTES
            for name in names:
                with archive.open(name) as member:
                    data = member.read(left + 1)
                left -= len(data)
                if left < 0:
                    rule = f"have at most {MOST_BYTES:,} bytes of samples"
                    raise RefusedError(f"the archive {path.name!r}", rule, got="more")
                where = f"{name!r} in {path.name!r}"
                sample = read_json(data, where)
                if not isinstance(sample, Mapping):
                    raise RefusedError(where, "be a JSON object", got=_kind_of(sample))
                yield sample
    except (zipfile.BadZipFile, zlib.error, EOFError):
        fault = "damaged content"
    except NotImplementedError:
        fault = "a compression that Python cannot read"
    except RuntimeError:  # zipfile's error for a password
        fault = "encrypted content"
    else:
        return
    advice = "write it as JSON with: inspect log convert --to json"
    raise RefusedError(f"the archive {path.name!r}", "be an Inspect log", got=fault, advice=advice)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(read_json(line, "the line"), Mapping)
    except InvalidValueError:
        return False


def _line(path: Path, number: int, line: bytes) -> Record:
    where = f"line {number:,} of {path.name!r}"
    try:
        found = read_json(line, where)
    except NotJsonError:
        found = None
    if not isinstance(found, Mapping):
        got = repr(line[:40].decode("utf-8", "replace"))
        raise RefusedError(where, "be a JSON object", got=got)
    return found


def _check_fields(records: Sequence[Record], named: Mapping[str, str]) -> None:
    """Raise an error for a field that no record has."""
    nothing = object()  # a field that is null is not nothing
    for role, name in named.items():
        if all(value_of(record, name, nothing) is nothing for record in records):
            raise _no_field(role, name, _field_names(records))
        whole = next(
            (one for one in records if isinstance(value_of(one, name), Mapping | list)), None
        )
        if whole is not None:
            inner = [one for one in _field_names([whole]) if one.startswith(f"{name}.")]
            inner = inner or [f"{name}.0"]
            rule = f"name a field inside this one, such as {', '.join(map(repr, inner[:3]))}"
            raise RefusedError(f"--{role}", rule, got=repr(name))


def _field_names(records: Sequence[Record]) -> list[str]:
    """Names of plain fields, with dots, in order of first occurrence."""
    found: dict[str, None] = {}

    def walk(value: Any, prefix: str, depth: int) -> None:
        if isinstance(value, Mapping) and depth < _DEEPEST:
            for key, inner in value.items():
                walk(inner, f"{prefix}.{key}" if prefix else str(key), depth + 1)
        elif not isinstance(value, list) and prefix:
            found.setdefault(prefix)

    for record in records[:20]:
        walk(record, "", 0)
    return list(found)


def _no_field(role: str, name: str, names: Sequence[str]) -> RefusedError:
    shown = ", ".join(map(repr, names[:_MOST_NAMES])) or "none"
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    rule = f"name a field of the data, which has {shown}{more}"
    return RefusedError(f"--{role}", rule, got=repr(name), advice=did_you_mean(name, names))
