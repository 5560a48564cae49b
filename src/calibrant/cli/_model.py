"""Model files, as the commands use them."""

import io
import os
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from calibrant.cli._errors import RefusedError

if TYPE_CHECKING:
    from calibrant.saving import Model


_MARK = re.compile(rb'"format"\s*:\s*"calibrant\.model/1"')
_MARKED = 1000  # bytes, within which a model file says that it is one
_MOST_BYTES = 16_000_000  # more than a model file may have: what is longer is refused for its length


class DamagedError(RefusedError):
    """What is refused was a model file once."""


def read_model(path: str) -> "Model":
    """Read a model file; - is standard input. What is wrong with it is told with its name."""
    from calibrant.errors import CalibrantError
    from calibrant.saving import load_model

    if path == "-":
        content = sys.stdin.buffer.read(_MOST_BYTES)
    else:
        with open(path, "rb") as file:
            content = file.read(_MOST_BYTES)
    try:
        return load_model(io.BytesIO(content))
    except CalibrantError as error:
        kind = DamagedError if _MARK.search(content[:_MARKED]) else RefusedError
        raise kind(str(error) if path == "-" else f"{os.path.basename(path)!r}: {error}") from None


def check_columns(model: "Model", columns: Mapping[str, str | None]) -> None:
    """Refuse a model of other columns than those that are read, as far as it remembers them."""
    for part in ("score", "label", "segment"):
        known, given = model.columns.get(part), columns.get(part)
        if known is not None and known != given:
            got = "none" if given is None else repr(given)
            raise RefusedError(f"--model must be of the same columns: it was fitted with --{part} {known!r}; got {got}")


def check_classes(model: "Model", classes: Any) -> None:
    """Refuse a model of other labels than those of the data, or of the other of them."""
    calibrator = model.calibrator
    known, given = calibrator.classes_.tolist(), classes.labels.tolist()
    if list(map(_name, known)) != list(map(_name, given)):
        raise RefusedError(f"--model must be of the same labels: it was fitted on {known}; got {given}")
    positive = known[calibrator._positive_index]
    if _name(positive) != _name(classes.positive):
        raise RefusedError(
            f"--model must be of the same event: it gives the probability of {positive!r}; got "
            f"{classes.positive!r}, which --pos-label chooses"
        )


def _name(label: Any) -> str:
    """A label as text: a whole number is the same in every kind of file."""
    whole = isinstance(label, bool) or (isinstance(label, float) and label.is_integer())
    return str(int(label) if whole else label)


def role_of(model: "Model", part: str, given: str | None) -> str | None:
    """The column that plays a part: as given, or as the model remembers."""
    from calibrant.partition import SegmentedPartition

    name = given or model.columns.get(part)
    segmented = isinstance(getattr(model.calibrator, "partition_", None), SegmentedPartition)
    if part == "segment":
        if segmented and name is None:
            raise RefusedError("--segment must name the column of groups, for the model was fitted with groups")
        if not segmented and given is not None:
            raise RefusedError(f"--segment must be left out, for the model was fitted without groups; got {given!r}")
        return name if segmented else None
    if name is None and part in ("score", "label"):
        raise RefusedError(f"--{part} must name a column, for the model file does not say which it was")
    return name


def text_types(model: "Model", **columns: str | None) -> dict[str, Any]:
    """Arrow types of label and segment columns where they are read from text: those that the model knows."""
    import pyarrow as pa

    kinds = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
    examples: dict[str, Any] = {"label": model.calibrator.classes_.tolist()}
    segments = getattr(getattr(model.calibrator, "partition_", None), "segments", None)
    if segments is not None:
        examples["segment"] = list(segments)
    types = {}
    for part, name in columns.items():
        found = {type(entry) for entry in examples.get(part, ())}
        if name is not None and len(found) == 1:
            types[name] = kinds.get(found.pop(), pa.string())
    return types
