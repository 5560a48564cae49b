"""Output files: where they may be, and which format their names ask for."""

import os
from contextlib import suppress

from calibrant.cli._errors import RefusedError


def check_target(output: str, *, overwrite: bool, inputs: list[str] | None = None) -> None:
    """Refuse an output path that cannot be written to, before any work is done."""
    if os.path.isdir(output):
        raise RefusedError("-o", "name a file", got=f"the folder {output!r}")
    if not os.path.isdir(os.path.dirname(output) or "."):
        raise RefusedError("-o", "name a file in a folder that exists", got=repr(output))
    if not os.path.exists(output):
        return
    for entry in inputs or []:
        with suppress(OSError):
            if os.path.samefile(entry, output):
                raise RefusedError("-o", "not name a file that is read", got=repr(output))
    if not overwrite:
        raise RefusedError("-o", "name a new file", got=f"{output!r}, which exists", advice="--overwrite replaces it")


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
