"""Columns of files whose rows may be nested: CSV, Parquet, Arrow, JSON lines, Inspect logs and
promptfoo results.

Inspect writes a log as JSON with a list of samples, or as a zip archive (.eval) with one JSON file
per sample. promptfoo writes JSON with a list of results. Both are recognised by their format alone.
A nested field is named with dots, such as scores.judge.value.
"""

import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from calibrant.cli._errors import RefusedError
from calibrant.cli._input import Files
from calibrant.text.sentences import did_you_mean

_MOST_NAMES = 15  # listed in an error
_DEEPEST = 4
_TRUTH = {"true": True, "false": False, "": None}
_ABSENT = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "<NA>")
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
            return _table_columns(path, kind, named)
        records = _records_of(path)
    _check_fields(records, named)
    return {role: [value_of(record, name) for record in records] for role, name in named.items()}


def _table_columns(path: Path, kind: str, named: Mapping[str, str]) -> dict[str, list[Any]]:
    """Columns of CSV, Parquet and Arrow files.

    They may contain records, whose fields are named with dots.
    """
    from calibrant.sample.batch import Columns
    from calibrant.sample.sources.file_kind import check_kind
    from calibrant.sample.sources.files import File, stamp_of

    check_kind(path, kind)
    schema, parts = File(path, kind, Columns(""), {}, kind == "csv", stamp_of(path)).opened()
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
    if kind == "csv":
        read = {whole: _from_text(values) for whole, values in read.items()}
    return {
        role: (
            read[whole]
            if whole == named[role]
            else [value_of({whole: entry}, named[role]) for entry in read[whole]]
        )
        for role, whole in wholes.items()
    }


def _from_text(texts: Sequence[str]) -> list[Any]:
    """A text column as truth values or numbers, if all of its entries are.

    An empty entry is None.

    >>> _from_text(["1", "", "0.5"]), _from_text(["true", "False", ""]), _from_text(["pass", "1"])
    ([1.0, None, 0.5], [True, False, None], ['pass', '1'])
    """
    entries = [text.strip() for text in texts]
    lower = [entry.lower() for entry in entries]
    if all(entry in _TRUTH for entry in lower):
        return [_TRUTH[entry] for entry in lower]
    try:
        return [None if entry in _ABSENT else float(entry) for entry in entries]
    except ValueError:
        return [entry or None for entry in entries]


def value_of(record: Any, name: str) -> Any:
    """A field of a record, or None.

    >>> value_of({"output": {"judge": [{"pass": True}]}}, "output.judge.0.pass")
    True
    """
    if isinstance(record, Mapping) and name in record:
        return record[name]
    head, _, rest = name.partition(".")
    if isinstance(record, Mapping) and head in record:
        inner = record[head]
    elif (
        isinstance(record, Sequence)
        and not isinstance(record, str)
        and head.isdigit()
        and int(head) < len(record)
    ):
        inner = record[int(head)]
    else:
        return None
    return value_of(inner, rest) if rest else inner


def _records_of(path: Path) -> list[Record]:
    """The rows of a JSON file: one object per line, a list of objects, an Inspect log or promptfoo
    results.
    """
    from calibrant._optional import pa

    with pa.input_stream(str(path), compression="detect") as stream:
        text = stream.read().decode("utf-8-sig")
    first, _, others = text.lstrip().partition("\n")
    if others.strip() and _parsed(first) is not None:
        return [
            _line(path, number, line)
            for number, line in enumerate(text.splitlines(), start=1)
            if line.strip()
        ]
    try:
        document = json.loads(text)
    except ValueError as error:
        raise RefusedError(repr(path.name), "be JSON, or JSON lines", got=str(error)) from None
    return _rows_in(document, path)


def _rows_in(document: Any, path: Path) -> list[Record]:
    if isinstance(document, Mapping) and "eval" in document and "status" in document:
        samples = document.get("samples")
        if not samples:
            raise RefusedError(f"the Inspect log {path.name!r}", "contain samples", got="none")
        return list(samples)
    if isinstance(document, Mapping) and "results" in document:
        results = document["results"]
        rows = results.get("results") if isinstance(results, Mapping) else results
        if isinstance(rows, list) and rows:
            return [_promptfoo_row(row) for row in rows]
        raise RefusedError(
            f"the results of promptfoo in {path.name!r}",
            "contain a list of results",
            got="none",
        )
    if isinstance(document, list) and all(isinstance(row, Mapping) for row in document):
        return document
    return [document] if isinstance(document, Mapping) else [_line(path, 1, "")]


def _promptfoo_row(row: Record) -> Record:
    """A result with two more fields: `human`, the manual rating, and `judge`, the verdict without
    it.

    A manual rating is one of the component results, with an assertion of type "human". It overrides
    `success`, so `success` is not the judge's verdict for rated results.
    """
    graded = row.get("gradingResult") or {}
    parts = [part for part in graded.get("componentResults") or [] if isinstance(part, Mapping)]
    human = [part for part in parts if (part.get("assertion") or {}).get("type") == "human"]
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
            for name in names:
                yield json.loads(archive.read(name))
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        advice = "write it as JSON with: inspect log convert --to json"
        raise RefusedError(
            f"the archive {path.name!r}",
            "be an Inspect log",
            got=str(error),
            advice=advice,
        ) from None


def _parsed(line: str) -> Record | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, Mapping) else None


def _line(path: Path, number: int, line: str) -> Record:
    found = _parsed(line)
    if found is None:
        raise RefusedError(
            f"line {number:,} of {path.name!r}", "be a JSON object", got=repr(line[:40])
        )
    return found


def _check_fields(records: Sequence[Record], named: Mapping[str, str]) -> None:
    """Raise an error for a field that no record has."""
    for role, name in named.items():
        if not any(_has(record, name) for record in records):
            raise _no_field(role, name, _field_names(records))
        whole = next((one for one in records if isinstance(value_of(one, name), Mapping)), None)
        if whole is not None:
            inner = [one for one in _field_names([whole]) if one.startswith(f"{name}.")]
            rule = f"name a field inside this one, such as {', '.join(map(repr, inner[:3]))}"
            raise RefusedError(f"--{role}", rule, got=repr(name))


def _has(record: Any, name: str) -> bool:
    """Whether a record has the field, even if it is null."""
    if isinstance(record, Mapping) and name in record:
        return True
    head, _, rest = name.partition(".")
    if not rest:
        return value_of(record, head) is not None
    return _has(value_of(record, head), rest)


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
    shown = ", ".join(map(repr, names[:_MOST_NAMES]))
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    rule = f"name a field of the data, which has {shown}{more}"
    return RefusedError(f"--{role}", rule, got=repr(name), advice=did_you_mean(name, names))
