"""Output files: where they may be, and which format their names ask for."""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from calibrant.cli._errors import RefusedError
from calibrant.cli._input import STANDARD_INPUT


def check_target(options: Mapping[str, Any]) -> None:
    """Refuse an output path that cannot be written to, or that is read, before any work is done."""
    from calibrant._file import check_place
    from calibrant.rows.files import find_files

    output, model = options["output"], options.get("model")
    data = [entry for entry in options.get("data", ()) if entry != STANDARD_INPUT]
    read: list[Any] = [*find_files(data), *([] if model in (None, STANDARD_INPUT) else [model])]
    if STANDARD_INPUT in (model, *options.get("data", ())):
        with suppress(OSError, ValueError, AttributeError):  # standard input need not be a file
            read.append(sys.stdin.fileno())
    for entry in read:
        with suppress(OSError):
            if os.path.samefile(entry, output):
                raise RefusedError("-o", "not name a file that is read", got=repr(output))
    check_place(output, overwrite=options["overwrite"])


def kind_of(output: str) -> tuple[str, str | None]:
    """Format and compression that a name asks for; - is CSV."""
    from pathlib import Path

    from calibrant.rows.file_kind import COMPRESSIONS, format_of

    if output == "-":
        return "csv", None
    path = Path(output)
    kind, compression = format_of(path), COMPRESSIONS.get(path.suffix.lower())
    if kind is None or (compression is not None and kind not in ("csv", "json")):
        rule = "end in .parquet, .csv, .csv.gz, .tsv, .jsonl or .arrow, or be - for CSV on standard output"
        raise RefusedError("-o", rule, got=repr(output))
    return kind, compression
