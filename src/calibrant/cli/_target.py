"""Output files: where they may be, and which format their names imply."""

import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import click

from calibrant.cli._errors import RefusedError
from calibrant.cli._input import STANDARD_INPUT


class InputPath(click.Path):
    """The type of every argument and option that names files to read."""

    name = "input"


class OutputPath(click.Path):
    """The type of every option that names a file to write."""

    name = "output"


def check_apart(parameters: Iterable[click.Parameter], values: Mapping[str, Any]) -> None:
    """Reject an output that is one of the inputs, under any name: a link or another path to it is
    the same file.

    This runs before every command and uses the types of its parameters, so no command can forget a
    check.
    """
    paths: dict[type, list[tuple[str, str]]] = {InputPath: [], OutputPath: []}
    for parameter in parameters:
        given = values.get(parameter.name or "")
        if type(parameter.type) in paths and given is not None:
            entries = given if isinstance(given, tuple) else (given,)
            option = min(parameter.opts, key=len)
            paths[type(parameter.type)].extend((option, entry) for entry in entries)
    for option, output in paths[OutputPath]:
        for _, entry in paths[InputPath]:
            if output != STANDARD_INPUT and any(
                _same_file(path, output) for path in _files_of(entry)
            ):
                raise RefusedError(option, "not name a file that is read", got=repr(output))


def _files_of(entry: str) -> list[Any]:
    """The files that an argument names; empty if there are none, which is an error elsewhere."""
    from calibrant.errors import CalibrantError
    from calibrant.sample.sources.files import find_files

    try:
        return [sys.stdin.fileno()] if entry == STANDARD_INPUT else find_files(entry)
    except (
        CalibrantError,
        OSError,
        ValueError,
        AttributeError,
    ):  # standard input need not be a file
        return []


def _same_file(path: Any, output: str) -> bool:
    try:
        return os.path.samefile(path, output)
    except (OSError, ValueError):  # the file does not exist yet
        return False


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
