"""Output files: where they may be, and how record batches are written to them."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from calibrant.cli._errors import RefusedError
from calibrant.cli._lines import csv_bytes, csv_header, json_bytes


def check_target(output: str, *, overwrite: bool, inputs: list[str] | None = None) -> None:
    """Refuse an output path that cannot be written to, before any work is done."""
    path = Path(output)
    if path.is_dir():
        raise RefusedError("-o", "name a file", got=f"the folder {output!r}")
    if not path.parent.is_dir():
        raise RefusedError("-o", "name a file in a folder that exists", got=repr(output))
    if not path.exists():
        return
    for entry in inputs or []:
        with suppress(OSError):
            if os.path.samefile(entry, path):
                raise RefusedError("-o", "not name a file that is read", got=repr(output))
    if not overwrite:
        raise RefusedError("-o", "name a new file", got=f"{output!r}, which exists", advice="--overwrite replaces it")


def kind_of(output: str) -> tuple[str, str | None]:
    """Format and compression that a name asks for; - is CSV."""
    from calibrant.rows.file_kind import COMPRESSIONS, format_of

    if output == "-":
        return "csv", None
    path = Path(output)
    kind, compression = format_of(path), COMPRESSIONS.get(path.suffix.lower())
    if kind is None or (compression is not None and kind not in ("csv", "json")):
        rule = "end in .parquet, .csv, .csv.gz, .tsv, .jsonl or .arrow, or be - for CSV on standard output"
        raise RefusedError("-o", rule, got=repr(output))
    return kind, compression


@contextmanager
def opened(
    place: Path | None, schema: Any, kind: str, packing: str | None, mark: str
) -> Iterator[Callable[[Any], object]]:
    """A function that writes a record batch to a file; to standard output where the place is None."""
    import pyarrow as pa

    with ExitStack() as stack:
        if kind == "parquet":
            import pyarrow.parquet as pq

            yield stack.enter_context(pq.ParquetWriter(str(place), schema, compression="zstd")).write_batch
            return
        if kind == "ipc":
            file = stack.enter_context(pa.OSFile(str(place), "wb"))
            yield stack.enter_context(pa.ipc.new_file(file, schema)).write_batch
            return
        plain: Any = sys.stdout.buffer if place is None else stack.enter_context(open(place, "wb"))
        stream = plain if packing is None else stack.enter_context(pa.output_stream(plain, compression=packing))
        if kind == "csv":
            stream.write(csv_header(schema.names, mark))
        yield lambda batch: stream.write(csv_bytes(batch, mark) if kind == "csv" else json_bytes(batch))
        stream.flush()
