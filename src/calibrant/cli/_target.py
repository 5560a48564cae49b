"""Output files: where they may be, and which format their names imply."""

import os
import stat
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import click

from calibrant.cli._errors import RefusedError
from calibrant.cli._input import STANDARD_INPUT

STANDARD_OUTPUT = "-"
_BESIDE = ("wal", "shm", "journal")  # files of SQLite beside its database


class InputPath(click.Path):
    """The type of every argument and option that names files to read."""

    name = "input"
    is_read = True

    def files(self, value: str) -> list[Any]:
        """The files that are read; empty if there are none, which is an error elsewhere."""
        from calibrant.errors import CalibrantError
        from calibrant.sample.sources.files import find_files

        try:
            return [sys.stdin.fileno()] if value == STANDARD_INPUT else find_files(value)
        except (CalibrantError, OSError, ValueError, AttributeError):  # standard input is no file
            return []


class OutputPath(click.Path):
    """The type of every option that names a file to write."""

    name = "output"
    is_read = False

    def files(self, value: str) -> list[Any]:
        """The files that are written for a value of the option."""
        return [] if value == STANDARD_OUTPUT else [value]


class StorePath(OutputPath):
    """The type of an option that names a store: a file, or the URL of a database."""

    def files(self, value: str) -> list[Any]:
        """The files of SQLite, if it is one, and the lines that could not be read."""
        file = sqlite_file(value)
        own = [] if file is None else [file, *(f"{file}-{end}" for end in _BESIDE)]
        return [*own, quarantine_of(value)]


def sqlite_file(store: str) -> str | None:
    """The SQLite file that a path or a URL names; None if it names none.

    >>> sqlite_file("watch.db"), sqlite_file("sqlite:///watch.db"), sqlite_file("postgresql://h/n")
    ('watch.db', 'watch.db', None)
    """
    kind, mark, rest = store.partition("://")
    if not mark:
        return store
    path = rest.partition("?")[0].removeprefix("/").removeprefix("file:")
    return path if kind.partition("+")[0] == "sqlite" and path else None


def quarantine_of(store: str) -> str:
    """The file of lines that could not be read: beside the store, or in the current folder if the
    store is not a file.
    """
    return f"{sqlite_file(store) or 'calibrant'}.quarantine.jsonl"


def check_apart(parameters: Iterable[click.Parameter], values: Mapping[str, Any]) -> None:
    """Reject an output that is one of the inputs, or another output, under any name: a link or
    another path to it is the same file.

    This runs before every command and uses the types of its parameters, so no command can forget a
    check. Standard output is an output, too, if it goes to a file.
    """
    inputs: list[Any] = []
    outputs: list[tuple[str, str, list[Any]]] = []
    for parameter in parameters:
        given = values.get(parameter.name or "")
        entries = given if isinstance(given, tuple) else () if given is None else (given,)
        kind: Any = parameter.type
        for entry in entries if hasattr(kind, "is_read") else ():
            if kind.is_read:
                inputs += kind.files(entry)
            else:
                outputs.append((min(parameter.opts, key=len), entry, kind.files(entry)))
    others = _standard_output()
    for option, entry, files in outputs:
        if any(_same_file(one, file) for one in inputs for file in files):
            raise RefusedError(option, "not name a file that is read", got=repr(entry))
        if any(_same_file(one, file) for one in others for file in files):
            rule = "not name a file that is written for another option, or standard output"
            raise RefusedError(option, rule, got=repr(entry))
        others += files


def _standard_output() -> list[Any]:
    """Standard output, if it goes to a file."""
    try:
        number = sys.stdout.fileno()
        return [number] if stat.S_ISREG(os.fstat(number).st_mode) else []
    except (OSError, ValueError, AttributeError):  # it is closed, or not of the system
        return []


def _same_file(one: Any, other: Any) -> bool:
    """Whether two names, or the numbers of open files, are the same file, or would be once it is
    made.
    """
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):  # a file does not exist yet
        if isinstance(one, int) or isinstance(other, int):
            return False
    names = [os.path.normcase(os.path.realpath(str(name))) for name in (one, other)]
    return names[0] == names[1]


def check_target(options: Mapping[str, Any]) -> None:
    """Reject an output path that cannot be written, before any work is done."""
    from calibrant._file import check_place

    check_place(options["output"], overwrite=options["overwrite"])


def kind_of(output: str) -> tuple[str, str | None]:
    """Format and compression that a name implies; - is CSV."""
    from pathlib import Path

    from calibrant.sample.sources.file_kind import COMPRESSIONS, format_of

    if output == "-":
        return "csv", None
    path = Path(output)
    kind = format_of(path)
    compression = COMPRESSIONS.get(path.suffix.lower())
    if kind is None or (compression is not None and kind not in ("csv", "json")):
        rule = (
            "end in .parquet, .csv, .csv.gz, .tsv, .jsonl or .arrow, or be - for CSV on standard"
            " output"
        )
        raise RefusedError("-o", rule, got=repr(output))
    return kind, compression


def check_escaping(options: Mapping[str, Any], kind: str | None) -> None:
    """Reject --escape-formulas for an output that no spreadsheet reads as text.

    `kind` is its format, if it has one.
    """
    if options["escape_formulas"] and kind != "csv":
        got = "no file" if options["output"] is None else repr(options["output"])
        raise RefusedError(
            "--escape-formulas", "be used with CSV or TSV, which spreadsheets open", got=got
        )
