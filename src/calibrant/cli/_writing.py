"""Files that are whole or not there: written beside their place, batch by batch, then moved."""

import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from calibrant.cli._errors import RefusedError
from calibrant.cli._lines import csv_bytes, csv_header, json_bytes

_PACKED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
_KINDS = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".txt": "csv",
    ".jsonl": "json", ".ndjson": "json", ".json": "json", ".arrow": "ipc", ".feather": "ipc", ".ipc": "ipc",
}  # fmt: skip


def check_target(output: str, *, overwrite: bool, inputs: list[str] | None = None) -> None:
    """Refuse, before any work is done, a place that can not be written to."""
    path = Path(output)
    if path.is_dir():
        raise RefusedError(f"-o must name a file; {output!r} is a folder")
    if not path.parent.is_dir():
        raise RefusedError(f"-o must name a file in a folder that exists; there is no folder {str(path.parent)!r}")
    if not path.exists():
        return
    for entry in inputs or []:
        with suppress(OSError):
            if os.path.samefile(entry, path):
                raise RefusedError(f"-o must not name a file that is read; got {output!r}")
    if not overwrite:
        raise RefusedError(f"{output!r} is there already; --overwrite replaces it")


@contextmanager
def draft_of(output: str, *, overwrite: bool) -> Iterator[Path]:
    """A file beside the target, which takes its place at the end, and is gone if anything goes wrong."""
    target = Path(output)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    try:
        yield draft
        if not overwrite and target.exists():
            raise RefusedError(f"{output!r} has appeared meanwhile; --overwrite replaces it")
        if target.exists():
            with suppress(OSError):  # who may read it stays as it was
                draft.chmod(target.stat().st_mode & 0o7777)
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def write_text(text: str | bytes, output: str, *, overwrite: bool) -> None:
    """Write a small file."""
    check_target(output, overwrite=overwrite)
    with draft_of(output, overwrite=overwrite) as draft:
        draft.write_bytes(text.encode() if isinstance(text, str) else text)


def kind_of(output: str) -> tuple[str, str | None]:
    """Format and compression that a name asks for; - is CSV."""
    if output == "-":
        return "csv", None
    suffixes = [suffix.lower() for suffix in Path(output).suffixes]
    packing = _PACKED.get(suffixes[-1]) if suffixes else None
    if packing is not None:
        suffixes.pop()
    kind = _KINDS.get(suffixes[-1]) if suffixes else None
    if kind is None or (packing is not None and kind not in ("csv", "json")):
        raise RefusedError(
            f"-o must end in .parquet, .csv, .csv.gz, .tsv, .jsonl or .arrow, or be - for CSV on standard output; got "
            f"{output!r}"
        )
    return kind, packing


def delimiter_for(output: str, delimiter: str | None) -> str:
    """Tabs where the name asks for them; else as in what was read."""
    return "\t" if ".tsv" in Path(output).suffixes else delimiter or ","


@contextmanager
def opened(
    place: Path | None, schema: Any, kind: str, packing: str | None, mark: str
) -> Iterator[Callable[[Any], None]]:
    """A function that writes a record batch to a file; to standard output where the place is None."""
    import pyarrow as pa

    with ExitStack() as stack:
        if kind == "parquet":
            import pyarrow.parquet as pq

            writer = stack.enter_context(pq.ParquetWriter(str(place), schema, compression="zstd"))
            yield writer.write_batch
            return
        if kind == "ipc":
            file = stack.enter_context(pa.OSFile(str(place), "wb"))
            yield stack.enter_context(pa.ipc.new_file(file, schema)).write_batch
            return
        plain: Any = sys.stdout.buffer if place is None else stack.enter_context(open(place, "wb"))
        stream = plain if packing is None else stack.enter_context(pa.output_stream(plain, compression=packing))
        if kind == "csv":
            stream.write(csv_header(schema.names, mark))
            yield lambda batch: _write(stream, csv_bytes(batch, mark))
        else:
            yield lambda batch: _write(stream, json_bytes(batch))
        stream.flush()


def _write(stream: Any, data: Any) -> None:
    stream.write(data)
