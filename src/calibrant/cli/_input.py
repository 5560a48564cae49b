"""From arguments to scored data: files, folders, globs, and standard input."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calibrant._optional import needed, pa
from calibrant.cli._errors import RefusedError

if TYPE_CHECKING:
    from pathlib import Path

    from calibrant.params.random import Draw
    from calibrant.sample.batch import Columns
    from calibrant.sample.sources.arrow import ArrowData

STANDARD_INPUT = "-"
ROLES = ("score", "label", "segment", "weight", "id", "group")
"""The roles of columns, each with an option in the commands that read such a column."""
CALIBRATE_FIRST = "calibrate them first, with calibrant fit and apply"
"""Advice for scores that are not probabilities."""
_USUAL_NAMES = {
    "score": (
        "score",
        "p",
        "prob",
        "proba",
        "probability",
        "pred",
        "prediction",
        "y_prob",
        "y_pred",
        "y_score",
        "p_hat",
    ),
    "label": ("label", "y", "target", "outcome", "class", "y_true", "actual", "truth"),
}
_START = 64  # bytes; a model file begins with its format
_MOST_COLUMNS = 15  # listed in an error
_SUFFIXES = {"parquet": ".parquet", "csv": ".csv", "json": ".jsonl", "ipc": ".arrow"}


@dataclass(frozen=True, slots=True)
class Files:
    """The files to read, and how to read them."""

    paths: list[str]
    file_format: str | None = None
    threads: int | None = None
    quiet: bool = False
    decimal: str = "."

    @property
    def names(self) -> list[str]:
        """File names without folders."""
        from calibrant.sample.sources.files import find_files

        return [path.name for path in find_files(self.paths)]

    def format(self) -> str:
        """The common format of all files."""
        from calibrant.sample.sources.files import common_format, find_files

        return common_format(find_files(self.paths), self.file_format)

    def scored(
        self,
        roles: Mapping[str, str | None],
        *,
        types: Mapping[str, Any] | None = None,
        with_rows: bool = True,
        skip_missing: bool = False,
        as_text: bool = False,
    ) -> "ArrowData":
        """Scored data, with columns in their roles.

        Data without rows are rejected, unless `with_rows` is False.
        """
        from calibrant.params.rules import thread_count
        from calibrant.sample.sources.files import from_files

        needed("pyarrow", "cli", "files are read")
        columns = _columns({**roles, "pending": roles["label"]} if skip_missing else roles)
        if columns.label == columns.score:
            raise RefusedError(
                "--score and --label",
                "be different columns",
                got=f"{columns.score!r} for both",
            )
        data = from_files(
            self.paths,
            columns,
            threads=thread_count(self.threads or -1),
            progress=False if self.quiet else None,
            format=self.file_format,
            types=types,
            as_text=as_text,
            decimal=self.decimal,
        )
        if with_rows and _is_empty(data):
            what = repr(self.names[0]) if len(self.names) == 1 else "the files"
            raise RefusedError(what, "contain at least one row of data", got="none")
        return data


def _columns(roles: Mapping[str, str | None]) -> "Columns":
    from calibrant.sample.batch import Columns

    named: dict[str, Any] = {part: name for part, name in roles.items() if name is not None}
    return Columns(**named)


def _is_empty(data: "ArrowData") -> bool:
    """Whether there are no rows; reads no further than the first."""
    if data.known_rows() is not None:
        return data.known_rows() == 0
    batches = (batch for part in data.parts for batch, _ in part.batches([data.columns.score]))
    return not any(batch.num_rows for batch in batches)


def _refuse_model(path: str, options: Mapping[str, Any]) -> None:
    """Raise an error for a model file in place of data."""
    from pathlib import Path

    if not path.lower().endswith(".json") or not Path(path).is_file():
        return
    with Path(path).open("rb") as file:
        start = file.read(_START)
    if b'"calibrant.model/' in start:
        takes_model = "model" in options and options["model"] is None
        advice = f"give the data, and --model {path}" if takes_model else "give the data"
        raise RefusedError(
            repr(path), "contain rows of data", got="a model file of calibrant", advice=advice
        )


@contextmanager
def files(options: Mapping[str, Any]) -> Iterator[Files]:
    """The files named on the command line. Standard input is stored in a temporary file."""
    paths = list(options["data"])
    for path in paths:
        _refuse_model(path, options)
    file_format = options["file_format"]
    how = {name: options[name] for name in ("threads", "quiet", "decimal")}
    if STANDARD_INPUT not in paths:
        yield Files(paths, file_format, **how)
        return
    if len(paths) > 1:
        raise RefusedError("- (standard input)", "be the only input", got=f"{len(paths)} inputs")
    from pathlib import Path
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="calibrant-") as folder:
        yield Files([str(_spool(Path(folder), file_format))], **how)


@contextmanager
def labelled(
    options: Mapping[str, Any],
) -> Iterator[tuple[Files, "ArrowData", dict[str, Any]]]:
    """The files, their rows with the columns that options name, and the parameters `pos_label` and
    `classes`.
    """
    with files(options) as source:
        named = with_defaults(source, {role: options[role] for role in ROLES if role in options})
        data = source.scored(named, skip_missing=options["skip_missing"])
        yield source, data, _class_parameters(data, options["pos_label"], options["classes"])


def sample_of(data: "ArrowData", options: Mapping[str, Any]) -> tuple[int, "Draw | None"]:
    """The number of rows, and how to draw a sample if there are more than --most-rows."""
    most = options["most_rows"]
    n_rows = sum(data.sizes().values())
    return n_rows, data.draw(
        most / n_rows, options.get("random_state", 0)
    ) if n_rows > most else None


def _spool(folder: "Path", file_format: str | None) -> "Path":
    """Write standard input to a file whose suffix is its format."""
    import shutil

    from calibrant.sample.sources.file_kind import sniff

    if sys.stdin is None or sys.stdin.isatty():
        raise RefusedError(
            "standard input",
            "be a pipe or a file",
            got="a terminal",
            advice="name a file instead of -",
        )
    raw = folder / "input"
    with raw.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
    with raw.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    if packed:
        raw = raw.rename(folder / "standard-input.gz")
    if raw.stat().st_size == 0:
        raise RefusedError("standard input", "contain rows of data", got="an empty input")
    kind = file_format or sniff(raw)
    if kind is None:
        raise RefusedError(
            "standard input",
            "be CSV, Parquet, JSON lines or Arrow IPC",
            got="another format",
        )
    return raw.rename(folder / f"standard-input{_SUFFIXES[kind]}{'.gz' if packed else ''}")


def with_defaults(source: Files, given: dict[str, str | None]) -> dict[str, str | None]:
    """Columns by role; `score` and `label` default to the columns with these names.

    If there is no such column, or several that differ in case, an error lists the columns.
    """
    from calibrant.sample.arrow_columns import kind_in_words
    from calibrant.sample.sources.files import schema_of

    asked = [part for part in ("score", "label") if part in given]
    if all(given[part] is not None for part in asked):
        return given
    schema = schema_of(source.paths, source.file_format)
    given = {**given}
    for part in asked:
        given[part] = given[part] or _of_that_name(schema.names, part)
    missing = [part for part in asked if given[part] is None]
    if not missing:
        return given
    found = [f"{column.name!r} ({kind_in_words(column.type)})" for column in schema]
    more = f" and {len(found) - _MOST_COLUMNS} more" if len(found) > _MOST_COLUMNS else ""
    guesses = {part: given[part] or _guess(schema.names, part) for part in asked}
    hint = " ".join(f"--{part} {name}" for part, name in guesses.items() if name is not None)
    advice = f"perhaps {hint}?" if guesses[missing[0]] is not None else None
    rule = f"name a column of the data, which has {', '.join(found[:_MOST_COLUMNS])}{more}"
    raise RefusedError(" and ".join(f"--{part}" for part in missing), rule, advice=advice)


def _of_that_name(names: Sequence[str], part: str) -> str | None:
    """The only column named after its role, ignoring case."""
    found = [name for name in names if name.lower() == part]
    return found[0] if len(found) == 1 else None


def _guess(names: Sequence[str], part: str) -> str | None:
    """The column with the most usual of the names that a role has."""
    lower = {name.lower(): name for name in names}
    return next((lower[name] for name in _USUAL_NAMES[part] if name in lower), None)


def typed(text: str, kind: type, option: str, rule: str) -> bool | int | float | str:
    """A label or a segment that was typed, as a value of its column's type."""
    try:
        if kind is bool:
            return {"true": True, "1": True, "false": False, "0": False}[text.strip().lower()]
        value: int | float | str = kind(text)
    except (KeyError, ValueError):
        raise RefusedError(option, rule, got=repr(text)) from None
    return value


def _of_column(text: str, kind: Any, option: str, what: str = "labels") -> bool | int | float | str:
    """A label or a segment that was typed, as a value of an Arrow type."""
    from calibrant.sample.arrow_columns import kind_in_words

    tests = {bool: pa.types.is_boolean, int: pa.types.is_integer, float: pa.types.is_floating}
    of_python = next((one for one, test in tests.items() if test(kind)), str)
    return typed(text, of_python, option, f"be one of the {what}, which are {kind_in_words(kind)}")


def typed_segments(data: "ArrowData", names: Sequence[str]) -> tuple[Any, ...]:
    """Typed segments, as values of their column."""
    kind = data.schema.field(data.columns.segment).type
    return tuple(_of_column(name, kind, "--keep-segment", "segments") for name in names)


def _class_parameters(
    data: "ArrowData", pos_label: str | None, classes: str | None
) -> dict[str, Any]:
    """Typed labels, as the parameters `pos_label` and `classes`."""
    kind = data.schema.field(data.columns.label).type
    parts = None if classes is None else [part.strip() for part in classes.split(",")]
    if parts is not None and len(parts) != 2:
        raise RefusedError(
            "--classes", "be two labels with a comma between them", got=repr(classes)
        )
    return {
        "pos_label": None if pos_label is None else _of_column(pos_label, kind, "--pos-label"),
        "classes": (
            None if parts is None else tuple(_of_column(part, kind, "--classes") for part in parts)
        ),
    }
