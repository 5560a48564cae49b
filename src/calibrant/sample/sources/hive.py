"""Folders named key=value, as written by Hive, Spark and Arrow: each key is a column of the rows in
its files.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote

from calibrant._optional import pa

_MISSING = "__HIVE_DEFAULT_PARTITION__"
_WHOLE = re.compile(r"-?[0-9]{1,18}")  # as many digits always fit in 64 bits

Read: TypeAlias = Callable[[list[str] | None], Iterable[Any]]
"""From column names (None for all) to record batches."""


def columns_of_folders(
    paths: Sequence[Path], types: Mapping[str, Any], *, as_text: bool = False
) -> list[dict[str, Any]]:
    """For each file, the columns from its folder names, as Arrow scalars.

    A column has the same type in all files.

    Values are whole numbers if all of them are, and text otherwise. The paths are used as given.

    >>> columns_of_folders([Path("sales/month=1/a.parquet"), Path("sales/month=02/b.parquet")], {})
    [{'month': <pyarrow.Int64Scalar: 1>}, {'month': <pyarrow.Int64Scalar: 2>}]
    """
    found = [_entries(path) for path in paths]
    names = dict.fromkeys(name for entries in found for name in entries)
    kinds = {}
    for name in names:
        texts = [text for entries in found if (text := entries.get(name)) is not None]
        whole = not as_text and all(map(_WHOLE.fullmatch, texts))
        kinds[name] = types.get(name, pa.int64() if whole else pa.string())
    return [
        {name: pa.scalar(text, pa.string()).cast(kinds[name]) for name, text in entries.items()}
        for entries in found
    ]


def _entries(path: Path) -> dict[str, str | None]:
    """Keys and values in folder names."""
    parts = (part.split("=", 1) for part in path.parts[:-1] if "=" in part.strip("="))
    return {unquote(name): None if text == _MISSING else unquote(text) for name, text in parts}


def with_columns(read: Read, own: list[str], added: Mapping[str, Any]) -> Read:
    """Read a file whose columns are `own`, with an additional constant column for each of `added`."""
    if not added:
        return read

    def batches(names: list[str] | None) -> Iterator[Any]:
        asked = None if names is None else [name for name in names if name not in added]
        wanted = [name for name in added if names is None or name in names]
        for batch in read(
            own[:1] if asked == [] else asked
        ):  # without any column the rows could not be counted
            constant = [pa.repeat(added[name], batch.num_rows) for name in wanted]
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, *constant], names=[*batch.schema.names, *wanted]
            )

    return batches
