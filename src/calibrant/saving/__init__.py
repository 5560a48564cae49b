"""Model files: a fitted calibrator as one readable JSON object with a checksum; nothing is ever unpickled."""

import io
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._file import write_file
from calibrant.errors import CalibrantError, InvalidTypeError, InvalidValueError
from calibrant.saving._text import DEEPEST, MOST_BYTES, checksum_of, parse, pretty

if TYPE_CHECKING:
    from calibrant.calibrators.base import ScoreCalibrator

__all__ = ["Model", "load_model", "save_model"]

FORMAT = "calibrant.model/1"
MOST_REGIONS = 10_000  # what they promise takes 0.2 s to work out, and 1 s in the worst case
_EPSILON_ACCURACY = 1e-9  # what limits are promised to: another release, or another machine, may round otherwise
_LONGEST_MESSAGE = 400
_KEYS = ("format", "checksum", "created_by", "columns", "provenance", "promise", "calibrator")


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A fitted calibrator, and what a reader should know of where it came from: the content of a model file.

    Attributes
    ----------
    calibrator : ScoreCalibrator
        The fitted calibrator.
    columns : mapping of str to str
        What the columns were called, as in ``{"score": "p", "label": "y"}``; may be empty.
    provenance : mapping of str to plain JSON values
        How many rows, a fingerprint of the data, how the edges were drawn, and whatever else is worth keeping.

    Examples
    --------
    >>> import io
    >>> from calibrant import BinningCalibrator
    >>> from calibrant.saving import load_model, save_model
    >>> calibrator = BinningCalibrator(2, strategy="uniform").fit([0.1, 0.2, 0.7, 0.9], [0, 0, 1, 1])
    >>> file = io.BytesIO()
    >>> save_model(calibrator, file, columns={"score": "p", "label": "paid"}, provenance={"rows": 4})
    >>> model = load_model(io.BytesIO(file.getvalue()))
    >>> model.calibrator.predict([0.3, 0.8]), model.columns["score"]
    (array([0., 1.]), 'p')
    """

    calibrator: "ScoreCalibrator"
    columns: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    _checksum: str | None = field(default=None, repr=False)

    @property
    def fingerprint(self) -> str:
        """A short name of the content: the first 16 digits of the file's checksum."""
        checksum = self._checksum or _sealed(self)["checksum"]
        return checksum.removeprefix("sha256:")[:16]


def save_model(
    calibrator_or_model: Any,
    path_or_file: Any,
    *,
    columns: Mapping[str, str] | None = None,
    provenance: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> None:
    """Write a fitted calibrator to a model file.

    The file is whole or not there: it is written beside its place, flushed to the disk, and then moved. Before anything
    is written the text is read back, so that no file is left which `load_model` would refuse.

    Parameters
    ----------
    calibrator_or_model : ScoreCalibrator or Model
        What to write: any fitted calibrator of scores, or what `load_model` returned.
    path_or_file : path, or file object open for writing
        Where to; bytes are written to a binary file, text to a text file.
    columns : mapping of str to str, optional
        What the columns were called. None keeps those of a model.
    provenance : mapping of str to plain JSON values, optional
        Where the calibrator came from. None keeps that of a model.
    overwrite : bool, default=False
        Replace a file that is there already; otherwise it is left alone, and FileExistsError is raised.

    Examples
    --------
    >>> import io
    >>> from calibrant import PlattCalibrator
    >>> from calibrant.saving import save_model
    >>> file = io.StringIO()
    >>> save_model(PlattCalibrator().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]), file)
    >>> file.getvalue().splitlines()[1]
    '  "format": "calibrant.model/1",'
    """
    model = _as_model(calibrator_or_model, columns, provenance)
    text = pretty(_sealed(model)) + "\n"
    data = text.encode()
    try:
        _read(data)
    except CalibrantError as error:
        raise InvalidValueError(f"this calibrator can not be saved, for its file could not be read: {error}") from error
    if isinstance(path_or_file, str | os.PathLike):
        write_file(data, path_or_file, overwrite=overwrite)
    elif hasattr(path_or_file, "write"):
        path_or_file.write(text if isinstance(path_or_file, io.TextIOBase) else data)
    else:
        raise InvalidTypeError(f"path_or_file must be a path or a file object; got {type(path_or_file).__name__}")


def load_model(path_or_file: Any) -> Model:
    """Read a model file, or refuse it with an error that says why.

    The file is data only: nothing in it can name code to run. What was changed since it was written is found by the
    checksum; what was never a model is found by the checks of the calibrator itself.

    Parameters
    ----------
    path_or_file : path, or file object open for reading
        Where from; ``sys.stdin.buffer`` is a file object too.

    Returns
    -------
    Model

    Raises
    ------
    OSError
        Where there is no file, or it may not be read.
    CalibrantError
        An InvalidValueError or InvalidTypeError, where its content is not a model of this or an older release.

    Examples
    --------
    >>> import io
    >>> from calibrant.saving import load_model
    >>> load_model(io.BytesIO(b""))
    Traceback (most recent call last):
    calibrant.errors.InvalidValueError: the model file is empty
    """
    if isinstance(path_or_file, str | os.PathLike):
        with open(path_or_file, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    elif hasattr(path_or_file, "read"):
        data = path_or_file.read(MOST_BYTES + 1)
    else:
        raise InvalidTypeError(f"path_or_file must be a path or a file object; got {type(path_or_file).__name__}")
    if isinstance(data, str):
        data = data.encode(errors="surrogatepass")
    return _read(data)


# From a model to a file


def _as_model(given: Any, columns: Mapping[str, str] | None, provenance: Mapping[str, Any] | None) -> Model:
    from calibrant.calibrators.base import ScoreCalibrator

    model = given if isinstance(given, Model) else Model(given)
    if not isinstance(model.calibrator, ScoreCalibrator):
        raise InvalidTypeError(
            "calibrator_or_model must be a fitted calibrator of scores, or a Model; got "
            f"{type(model.calibrator).__name__}: of other estimators there are no model files, of some a to_dict"
        )
    return Model(
        model.calibrator,
        _check_columns(model.columns if columns is None else columns),
        _plain(model.provenance if provenance is None else provenance, "provenance", mapping=True),
    )


def _check_columns(columns: Any) -> dict[str, str]:
    if not isinstance(columns, Mapping):
        raise InvalidTypeError(f"columns must be a mapping of text to text; got {type(columns).__name__}")
    if not all(isinstance(text, str) for pair in columns.items() for text in pair):
        raise InvalidTypeError("columns must be a mapping of text to text; got an entry of another kind")
    return {str(role): str(name) for role, name in columns.items()}


def _plain(value: Any, place: str, depth: int = 0, *, mapping: bool = False) -> Any:
    """A copy of plain JSON values; tuples become lists, and numpy's numbers Python's."""
    if isinstance(value, np.generic):
        value = value.item()
    if depth > DEEPEST:
        raise InvalidValueError(f"{place[:80]}... must be nested at most {DEEPEST} deep; got more")
    if isinstance(value, Mapping):
        strange = next((key for key in value if not isinstance(key, str)), None)
        if strange is not None:
            raise InvalidTypeError(f"keys of {place} must be text; got {strange!r}")
        return {key: _plain(entry, f"{place}[{key!r}]", depth + 1) for key, entry in value.items()}
    if mapping:
        raise InvalidTypeError(f"{place} must be a mapping; got {type(value).__name__}")
    if isinstance(value, list | tuple):
        return [_plain(entry, f"{place}[{index}]", depth + 1) for index, entry in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidValueError(f"{place} must be a finite number, as JSON knows no other; got {value!r}")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InvalidTypeError(f"{place} must be plain JSON values; got {type(value).__name__}")


def _sealed(model: Model) -> dict[str, Any]:
    """The content of the file, with its checksum."""
    from calibrant._version import __version__

    state = model.calibrator.to_dict()
    content = {
        "format": FORMAT,
        "checksum": "",
        "created_by": f"calibrant {__version__}",
        "columns": dict(model.columns),
        "provenance": dict(model.provenance),
        "promise": _promise(model.calibrator),
        "calibrator": state,
    }
    return {**content, "checksum": checksum_of(content)}


def _promise(calibrator: "ScoreCalibrator") -> dict[str, Any]:
    """What a reader of the file should know without calibrant at hand."""
    guarantee = calibrator.guarantee_
    return {
        "epsilon": guarantee.epsilon,
        "confidence_level": getattr(guarantee, "confidence_level", None),
        "sentence": guarantee.sentence(),
    }


# From a file to a model


def _read(data: bytes) -> Model:
    """Check the outer layers first: what is damaged is refused before anything is computed from it."""
    content = parse(data)
    _check_format(content)
    absent = [key for key in _KEYS if key not in content]
    unknown = [key for key in content if key not in _KEYS]
    if absent or unknown:
        raise InvalidValueError(
            f"the model file must have exactly the entries {', '.join(_KEYS)}; "
            + (f"got none named {absent[0]!r}" if absent else f"got another, {unknown[0][:40]!r}")
        )
    checksum = checksum_of(content)
    if content["checksum"] != checksum:
        raise InvalidValueError(
            "the model file was changed or damaged since it was written: its checksum is not that of its content. "
            "Get it again from where it was made"
        )
    if not isinstance(content["created_by"], str):
        raise InvalidTypeError("created_by of the model file must be text")
    columns = _check_columns(content["columns"])
    if not isinstance(content["provenance"], dict):
        raise InvalidTypeError("provenance of the model file must be an object")
    _check_promise(content["promise"])
    _check_regions(content["calibrator"])
    calibrator = _read_calibrator(content["calibrator"], content["promise"])
    return Model(calibrator, columns, content["provenance"], checksum)


def _check_format(content: Mapping[str, Any]) -> None:
    found = content.get("format")
    if found == FORMAT:
        return
    number = re.fullmatch(r"calibrant\.model/([1-9][0-9]{0,8})", found) if isinstance(found, str) else None
    if number is None:
        raise InvalidValueError(
            f"this is not a calibrant model file: its format must be {FORMAT!r}; got {_cut(repr(found), 60)}"
        )
    raise InvalidValueError(
        f"the model file was written by a newer calibrant (its format is {found!r}, this release reads up to "
        f"{FORMAT!r}): upgrade calibrant to read it"
    )


def _check_promise(promise: Any) -> None:
    if not isinstance(promise, dict) or set(promise) != {"epsilon", "confidence_level", "sentence"}:
        raise InvalidValueError("promise of the model file must have an epsilon, a confidence_level and a sentence")
    for name in ("epsilon", "confidence_level"):
        if promise[name] is not None and type(promise[name]) is not float:
            raise InvalidTypeError(f"{name} of the promise must be a number with a decimal point, or null")
    if not isinstance(promise["sentence"], str):
        raise InvalidTypeError("sentence of the promise must be text")


def _check_regions(calibrator: Any) -> None:
    """Refuse more regions than limits can be worked out for while someone waits."""
    found, left = {"counts": 0, "parts": 0}, [calibrator]  # one count for each region, one part for each segment
    while left:
        entry = left.pop()
        if isinstance(entry, dict):
            for name in found:
                found[name] += len(entry[name]) if isinstance(entry.get(name), list) else 0
            left.extend(entry.values())
        elif isinstance(entry, list) and entry and not isinstance(entry[0], float | int):
            left.extend(entry)
    if max(found.values()) > MOST_REGIONS:
        raise InvalidValueError(f"the model file must hold at most {MOST_REGIONS:,} regions; got more")


def _read_calibrator(state: Any, promise: Mapping[str, Any]) -> "ScoreCalibrator":
    # brings in the whole package, and with it every type there is; only now, for what is refused before needs none
    from calibrant.calibrators.base import ScoreCalibrator

    try:
        calibrator = ScoreCalibrator.from_dict(state)
        recomputed = _promise(calibrator)
    except CalibrantError as error:
        kind = InvalidTypeError if isinstance(error, InvalidTypeError) else InvalidValueError
        raise kind(f"calibrator of the model file is not valid: {_cut(str(error), _LONGEST_MESSAGE)}") from None
    except Exception as error:  # whatever the checks above did not foresee is still no crash
        what = _cut(f"{type(error).__name__}: {error}", _LONGEST_MESSAGE)
        raise InvalidValueError(f"calibrator of the model file is not valid: {what}") from error
    for name in ("epsilon", "confidence_level"):
        said, found = promise[name], recomputed[name]
        same = said == found if said is None or found is None else abs(said - found) <= _EPSILON_ACCURACY
        if not same:
            raise InvalidValueError(
                f"{name} of the promise must follow from the calibrator's own counts, {found!r}; got {said!r}"
            )
    return calibrator


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."
