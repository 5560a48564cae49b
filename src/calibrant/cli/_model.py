"""Model files, as the commands use them."""

import sys
from typing import TYPE_CHECKING, Any

from calibrant.cli._errors import RefusedError

if TYPE_CHECKING:
    from calibrant.saving import Model


def read_model(path: str) -> "Model":
    """Read a model file; - is standard input. What is wrong with it is told with its name."""
    import os

    from calibrant.errors import CalibrantError
    from calibrant.saving import load_model

    if path == "-":
        return load_model(sys.stdin.buffer)
    try:
        return load_model(path)
    except CalibrantError as error:
        raise RefusedError(f"{os.path.basename(path)!r}: {error}") from None


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
