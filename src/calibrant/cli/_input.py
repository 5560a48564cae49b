"""From what stands on the command line to scored data: files, folders, globs, and standard input."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.cli._errors import RefusedError

if TYPE_CHECKING:
    from calibrant.rows.arrow import ArrowData

STANDARD_INPUT = "-"
_SCORES = ("score", "p", "prob", "proba", "probability", "pred", "prediction", "y_prob", "y_pred", "y_score", "p_hat")
_LABELS = ("label", "y", "target", "outcome", "class", "y_true", "actual", "truth")
_SUFFIXES = {"parquet": ".parquet", "csv": ".csv", "json": ".jsonl", "ipc": ".arrow"}


@dataclass(frozen=True, slots=True)
class Files:
    """The files to read: their paths, what to call them, and their format where it was given."""

    paths: tuple[str, ...]
    file_format: str | None = None

    @property
    def names(self) -> list[str]:
        """Names without folders, which say nothing to anyone else."""
        from calibrant.rows.files import find_files

        return [path.name for path in find_files(list(self.paths))]

    def schema(self) -> Any:
        """Names and types of the columns."""
        from calibrant.rows.files import schema_of

        return schema_of(list(self.paths), self.file_format)

    def format(self) -> str:
        """The one format of all files."""
        from calibrant.rows.files import common_format, find_files

        return common_format(find_files(list(self.paths)), self.file_format)

    def scored(
        self,
        roles: Mapping[str, str | None],
        *,
        threads: int | None = None,
        quiet: bool = False,
        types: Mapping[str, Any] | None = None,
        with_rows: bool = True,
    ) -> "ArrowData":
        """Scored data, with the columns that play the parts named in `roles`; refused if empty, unless that is fine."""
        from calibrant._optional import needed
        from calibrant._params import thread_count
        from calibrant.rows.batch import Columns
        from calibrant.rows.files import from_files

        needed("pyarrow", "cli", "files are read")
        columns = Columns(**{part: name for part, name in roles.items() if name is not None})
        _check_different(columns.named)
        data = from_files(
            list(self.paths),
            columns,
            threads=thread_count(-1 if threads is None else threads),
            progress=False if quiet else None,
            format=self.file_format,
            types=types,
        )
        if with_rows and _is_empty(data):
            shown = self.names
            raise RefusedError(
                f"{shown[0]!r} must hold at least one row of data; got none"
                if len(shown) == 1
                else "the files must hold at least one row of data; got none"
            )
        return data


def _is_empty(data: "ArrowData") -> bool:
    """Whether there is no row: read no further than to the first."""
    if data.known_rows() is not None:
        return data.known_rows() == 0
    batches = (batch for part in data._parts for batch, _ in part.batches([data.columns.score]))
    return not any(batch.num_rows for batch in batches)


@contextmanager
def files(paths: Sequence[str], file_format: str | None = None) -> Iterator[Files]:
    """The files that were named; standard input is kept in a file that is gone afterwards."""
    if STANDARD_INPUT not in paths:
        yield Files(tuple(paths), file_format)
        return
    if len(paths) > 1:
        raise RefusedError("- (standard input) must stand alone; got other files beside it")
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="calibrant-") as folder:
        yield Files((str(_spool(Path(folder), file_format)),), None)


def _spool(folder: Path, file_format: str | None) -> Path:
    """Write standard input to a file whose name tells its format."""
    import shutil

    from calibrant.rows.sniffing import sniff

    if sys.stdin is None or sys.stdin.isatty():
        raise RefusedError("standard input must be a pipe or a file; got a terminal: name a file instead of -")
    raw = folder / "input"
    with raw.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
    with raw.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    if packed:
        raw = raw.rename(folder / "standard-input.gz")
    if raw.stat().st_size == 0:
        raise RefusedError("standard input is empty: it must hold rows of data")
    kind = file_format or sniff(raw)
    if kind is None:
        raise RefusedError("standard input must be CSV, Parquet, JSON lines or Arrow IPC; got something else")
    return raw.rename(folder / f"standard-input{_SUFFIXES[kind]}{'.gz' if packed else ''}")


def roles(source: Files, **given: str | None) -> dict[str, str | None]:
    """Columns by part; where the score or the label is not named, tell which columns there are."""
    missing = [part for part in ("score", "label") if part in given and given[part] is None]
    if not missing:
        return given
    schema = source.schema()
    found = ", ".join(f"{name!r} ({_kind(schema.field(place).type)})" for place, name in enumerate(schema.names[:15]))
    more = f" and {len(schema.names) - 15} more" if len(schema.names) > 15 else ""
    guesses = {part: given[part] or _guess(schema.names, part) for part in ("score", "label") if part in given}
    hint = " ".join(f"--{part} {name}" for part, name in guesses.items() if name is not None)
    advice = f"; perhaps {hint}?" if hint and guesses[missing[0]] is not None else ""
    asked = " and ".join(f"--{part}" for part in missing)
    verb = "must name a column" if len(missing) == 1 else "must name columns"
    raise RefusedError(f"{asked} {verb} of the data, which has {found}{more}{advice}")


def _guess(names: Sequence[str], part: str) -> str | None:
    lower = {name.lower(): name for name in names}
    return next((lower[name] for name in (_SCORES if part == "score" else _LABELS) if name in lower), None)


def _kind(kind: Any) -> str:
    import pyarrow as pa

    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "numbers"
    if pa.types.is_integer(kind):
        return "whole numbers"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind):
        return "text"
    return "true or false" if pa.types.is_boolean(kind) else str(kind)


def _check_different(named: Mapping[str, str]) -> None:
    if named.get("label") == named["score"]:
        raise RefusedError(f"--score and --label must be different columns; got {named['score']!r} for both")


def label_of(text: str | None, kind: Any, option: str) -> Any:
    """A label as written on the command line, as the kind of value that the column holds."""
    import pyarrow as pa

    if text is None:
        return None
    try:
        if pa.types.is_boolean(kind):
            return {"true": True, "1": True, "false": False, "0": False}[text.strip().lower()]
        if pa.types.is_integer(kind):
            return int(text)
        if pa.types.is_floating(kind):
            return float(text)
    except (KeyError, ValueError):
        raise RefusedError(f"{option} must be one of the labels, which are {_kind(kind)}; got {text!r}") from None
    return text


def class_parameters(data: "ArrowData", pos_label: str | None, classes: str | None) -> dict[str, Any]:
    """The parameters `pos_label` and `classes` of a calibrator or an audit."""
    kind = data.schema.field(data.columns.label).type
    pair = None
    if classes is not None:
        parts = [part.strip() for part in classes.split(",")]
        if len(parts) != 2:
            raise RefusedError(f"--classes must be two labels with a comma between them; got {classes!r}")
        pair = tuple(label_of(part, kind, "--classes") for part in parts)
    return {"pos_label": label_of(pos_label, kind, "--pos-label"), "classes": pair}
