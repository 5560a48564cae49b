"""Write record batches to Parquet, Arrow, minimally quoted CSV, and JSON lines.

Arrow's CSV writer puts quotes around all text. So cells are formatted column by column and joined
row by row; the concatenated bytes of the joined texts are the file.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from calibrant._file import draft_of
from calibrant._optional import pa, pc, pq
from calibrant.cli._errors import RefusedError
from calibrant.cli._output import harmless
from calibrant.cli._target import kind_of
from calibrant.sample.arrow_columns import kind_in_words
from calibrant.sample.sources.file_kind import SAVE_AS_UTF8
from calibrant.text import formulas
from calibrant.text.numbers import plain


@contextmanager
def opened(options: Mapping[str, Any], schema: Any, data: Any) -> Iterator[Callable[[Any], object]]:
    """Yield a function that writes record batches to the output file, which in the end is complete
    or absent.

    - is standard output.

    CSV uses the delimiter and the decimal mark of the `data` that were read. With
    --escape-formulas, CSV text that a spreadsheet would run as a formula gets a leading '.
    """
    output = options["output"]
    escape = options["escape_formulas"]
    overwrite = options["overwrite"]
    kind, packing = kind_of(output)
    read = getattr(data, "file", None)
    mark = "," if read is None else read.delimiter
    if ".tsv" in Path(output).name:
        mark = "\t"
    decimal = "." if read is None else read.decimal
    with ExitStack() as stack:
        place = (
            None if output == "-" else stack.enter_context(draft_of(output, overwrite=overwrite))
        )
        file: Any = sys.stdout.buffer if place is None else stack.enter_context(open(place, "wb"))
        if kind == "parquet":
            yield stack.enter_context(
                pq.ParquetWriter(file, schema, compression="zstd")
            ).write_batch
            return
        if kind == "ipc":
            yield stack.enter_context(pa.ipc.new_file(file, schema)).write_batch
            return
        stream = (
            file
            if packing is None
            else stack.enter_context(pa.output_stream(file, compression=packing))
        )
        write = _write_harmless if place is None and sys.stdout.isatty() else stream.write
        if kind == "csv":
            write(csv_header(schema.names, mark, escape=escape))
        yield lambda batch: write(
            csv_bytes(batch, mark, escape=escape, decimal=decimal)
            if kind == "csv"
            else json_bytes(batch)
        )
        stream.flush()


def _write_harmless(data: Any) -> None:
    """Write to a terminal, without control characters from untrusted text."""
    sys.stdout.write(harmless(bytes(data).decode()))


def csv_header(names: list[str], mark: str, *, escape: bool = False) -> Any:
    """The header line, which is a row of text."""
    row = pa.record_batch([pa.array([name]) for name in names], names=names)
    return csv_bytes(row, mark, escape=escape)


def csv_bytes(batch: Any, mark: str, *, escape: bool = False, decimal: str = ".") -> Any:
    """The batch as lines of CSV; only fields that need quotes get them."""
    columns = zip(batch.schema.names, batch.columns, strict=True)
    how: dict[str, Any] = {"escape": escape, "decimal": decimal}
    cells = [_csv_cells(column, name, mark, **how) for name, column in columns]
    return _joined(cells, mark) if batch.num_rows else b""


def json_bytes(batch: Any) -> bytes:
    """The batch as JSON objects, one per line; numbers that JSON lacks become null."""
    lines = (json.dumps(row, ensure_ascii=False, allow_nan=False) for row in _plain_rows(batch))
    return "".join(f"{line}\n" for line in lines).encode()


def _plain_rows(batch: Any) -> Any:
    """The rows as plain JSON values; bytes become text."""
    for row in batch.to_pylist():
        yield plain(
            {
                name: value.decode("utf-8", "replace") if isinstance(value, bytes) else value
                for name, value in row.items()
            }
        )


def _text(value: str) -> Any:
    return pa.scalar(value, pa.large_string())


def _joined(cells: list[Any], mark: str) -> Any:
    """Rows of cells as one sequence of bytes."""
    lines = pc.binary_join_element_wise(*cells, _text(mark))
    whole = pc.binary_join_element_wise(lines, _text("\n"), _text(""))
    ends = memoryview(whole.buffers()[1]).cast("q")
    first = ends[whole.offset]
    last = ends[whole.offset + len(whole)]
    return whole.buffers()[2].slice(first, last - first)


def _csv_cells(column: Any, name: str, mark: str, *, escape: bool, decimal: str) -> Any:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _csv_cells(column.dictionary_decode(), name, mark, escape=escape, decimal=decimal)
    try:
        texts = column.cast(pa.large_string()).fill_null("")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        rule = "be numbers, text or dates in CSV"
        advice = "use -o out.parquet"
        if pa.types.is_binary(kind):
            advice += f"; or, if the input is CSV, {SAVE_AS_UTF8}"
        raise RefusedError(
            f"column {name!r}", rule, got=kind_in_words(kind), advice=advice
        ) from None
    if decimal != "." and pa.types.is_floating(kind):
        texts = pc.replace_substring(texts, ".", decimal)
    elif not _is_text(kind):
        return texts
    elif escape:
        texts = _escaped(texts)
    special = pc.match_substring_regex(texts, f'["\\r\\n{mark}]')
    if not pc.any(special).as_py():
        return texts
    doubled = pc.replace_substring(texts, '"', '""')
    quoted = pc.binary_join_element_wise(_text('"'), doubled, _text('"'), _text(""))
    return pc.if_else(special, quoted, texts)


def _escaped(texts: Any) -> Any:
    """The same as `formulas.escaped`, for a whole column."""
    inside = pc.replace_substring_regex(
        texts, formulas.AFTER_SEPARATOR, formulas.ESCAPED_AFTER_SEPARATOR
    )
    whole = pc.replace_substring_regex(inside, formulas.AT_START, formulas.ESCAPED_AT_START)
    return pc.if_else(pc.match_substring_regex(texts, formulas.NUMBER), texts, whole)


def _is_text(kind: Any) -> bool:
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    return pa.types.is_string(kind) or pa.types.is_binary(kind) or wide or "view" in str(kind)
