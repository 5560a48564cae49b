"""Model files: a fitted calibrator, a threshold or a band as one readable JSON object.

Nothing is ever unpickled.
"""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import numpy as np

from calibrant._file import write_file
from calibrant.answers._strict import check_complete, check_guarantee, check_numbers
from calibrant.answers.model_text import (
    DEEPEST,
    MOST_BYTES,
    NotAModelError,
    checksum_of,
    is_not_a_model,
    parse,
    pretty,
)
from calibrant.errors import CalibrantError, InvalidTypeError, InvalidValueError
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.no_guarantee import NoGuarantee
from calibrant.params.rules import TEXT, Instance
from calibrant.text.sentences import shown

if TYPE_CHECKING:
    from calibrant.assess.monotone.monotone_band import MonotoneBand
    from calibrant.assess.threshold.proved_threshold import Threshold
    from calibrant.calibrators.score_calibrator import ScoreCalibrator
    from calibrant.guarantee.guarantee import Guarantee
    from calibrant.guarantee.no_guarantee import NoGuarantee


FORMAT = "calibrant.model/1"
MOST_REGIONS = 10_000  # their guarantee takes 0.2 s to compute, and 1 s in the worst case
PathOrFile: TypeAlias = str | os.PathLike[str] | IO[Any]
_OTHERS = {
    "calibrant.threshold/1": ("calibrant.assess.threshold.proved_threshold", "Threshold"),
    "calibrant.monotone/1": ("calibrant.assess.monotone.monotone_band", "MonotoneBand"),
    "calibrant.multiclass/1": ("calibrant.multiclass.class_columns", "ColumnsCalibrator"),
    "calibrant.class_wise_hold_out/1": (
        "calibrant.calibrators.class_wise_hold_out",
        "ClassWiseHoldOut",
    ),
}
"""Where the other classes with model files are, by the schema of their state."""
_KEYS = ("format", "checksum", "created_by", "columns", "provenance", "guarantee", "calibrator")


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """The content of a model file: a fitted calibrator, a `Threshold` or a `MonotoneBand`, and
    where it came from.

    It predicts just as its calibrator does, with `predict` and `predict_proba`, and with
    `predict_interval`, `predict_set` and `predict_multiprobability` if the calibrator has them.

    Attributes
    ----------
    calibrator : ScoreCalibrator, Threshold or MonotoneBand
        The saved object.
    columns : mapping of str to str
        The names of the columns, as in ``{"score": "p", "label": "y"}``; may be empty.
    provenance : mapping of str to plain JSON values
        The number of rows, a fingerprint of the data, how the edges were drawn, and anything else
        worth storing.
    written : mapping of str to str
        What the file says about itself: its `checksum`, the release it was `created_by`, and the
        `sentence` and `details` for readers without calibrant. The guarantee itself is in
        `guarantee_`. Empty without a file.

    Examples
    --------
    >>> import io
    >>> from calibrant import BinningCalibrator
    >>> from calibrant import load_model, save_model
    >>> calibrator = BinningCalibrator(2, partition="uniform").fit([0.1, 0.2, 0.7, 0.9], [0, 0, 1, 1])
    >>> file = io.BytesIO()
    >>> save_model(calibrator, file, columns={"score": "p", "label": "paid"}, provenance={"rows": 4})
    >>> model = load_model(io.BytesIO(file.getvalue()))
    >>> model.predict([0.3, 0.8]), model.columns["score"]
    (array([0.16666667, 0.83333333]), 'p')
    """

    calibrator: Any
    columns: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def guarantee_(self) -> Guarantee | NoGuarantee:
        """The guarantee of the calibrator."""
        found: Guarantee | NoGuarantee = self.calibrator.guarantee_
        return found

    @property
    def fingerprint(self) -> str:
        """A short fingerprint of the content: the first 16 digits of the file's checksum."""
        checksum = self.written.get("checksum") or content_of(self)["checksum"]
        return checksum.removeprefix("sha256:")[:16]

    def __getattr__(self, name: str) -> Any:
        """Delegate prediction methods to the calibrator."""
        if name.startswith("predict"):
            return getattr(self.calibrator, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return [
            *object.__dir__(self),
            *(name for name in dir(self.calibrator) if name.startswith("predict")),
        ]


def save_model(
    calibrator_or_model: ScoreCalibrator | Threshold | MonotoneBand | Model,
    path_or_file: PathOrFile,
    *,
    columns: Mapping[str, str] | None = None,
    provenance: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> None:
    """Write a fitted calibrator, a threshold or a band to a model file.

    The file is either complete or not there: it is written under a temporary name, flushed to disk,
    and then moved into place. The text is read back before anything is written, so every file can
    be read.

    Parameters
    ----------
    calibrator_or_model : ScoreCalibrator, Threshold, MonotoneBand or Model
        What to write: any fitted calibrator of scores, the result of `threshold`, or the result of
        `load_model`.
    path_or_file : path, or file object open for writing
        Where to write; a binary file gets bytes, a text file gets text.
    columns : mapping of str to str, optional
        The names of the columns. None keeps those of a model.
    provenance : mapping of str to plain JSON values, optional
        Where the calibrator came from. None keeps that of a model.
    overwrite : bool, default=False
        Whether to replace an existing file; otherwise FileExistsError is raised.

    Examples
    --------
    >>> import io
    >>> from calibrant import PlattCalibrator
    >>> from calibrant import save_model
    >>> file = io.StringIO()
    >>> save_model(PlattCalibrator().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]), file)
    >>> file.getvalue().splitlines()[1]
    '  "format": "calibrant.model/1",'
    """
    model = as_model(calibrator_or_model, columns, provenance)
    text = pretty(content_of(model)) + "\n"
    data = text.encode()
    try:
        _read(data)
    except CalibrantError as error:
        raise InvalidValueError(
            "the calibrator", "have a file that can be read back", advice=str(error)
        ) from error
    if isinstance(path_or_file, str | os.PathLike):
        write_file(data, path_or_file, overwrite=overwrite)
    elif hasattr(path_or_file, "write"):
        path_or_file.write(text if isinstance(path_or_file, io.TextIOBase) else data)
    else:
        raise _no_file(path_or_file)


def load_model(path_or_file: PathOrFile) -> Model:
    """Read a model file, or raise an error that says why it cannot be read.

    The file holds only data: nothing in it can name code to run. The checksum detects changes since
    the file was written; the calibrator's own checks detect content that was never a model.

    Parameters
    ----------
    path_or_file : path, or file object open for reading
        Where to read from; ``sys.stdin.buffer`` is a file object too.

    Returns
    -------
    Model

    Raises
    ------
    OSError
        If the file does not exist or cannot be read.
    CalibrantError
        An InvalidValueError or InvalidTypeError, if its content is not a model.

    Examples
    --------
    >>> import io
    >>> from calibrant import load_model
    >>> load_model(io.BytesIO(b""))
    Traceback (most recent call last):
    calibrant.answers.model_text.NotAModelError: the model file must be a JSON object; got an empty file
    """  # noqa: E501
    if isinstance(path_or_file, str | os.PathLike):
        with open(path_or_file, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    elif hasattr(path_or_file, "read"):
        data = path_or_file.read(MOST_BYTES + 1)
    else:
        raise _no_file(path_or_file)
    return _read(data.encode(errors="surrogatepass") if isinstance(data, str) else data)


def _no_file(given: object) -> InvalidTypeError:
    return InvalidTypeError("path_or_file", "be a path or a file object", got=type(given).__name__)


# From a model to a file


def as_model(
    given: Any, columns: Mapping[str, str] | None, provenance: Mapping[str, Any] | None
) -> Model:
    """The content of a model file for an object that can have one; raise an error for another."""
    from calibrant.calibrators.score_calibrator import ScoreCalibrator

    model = given if isinstance(given, Model) else Model(given)
    if not isinstance(model.calibrator, (ScoreCalibrator, *map(_other_class, _OTHERS))):
        rule = "be a fitted calibrator, a Threshold, a MonotoneBand or a Model"
        advice = "use its to_dict" if hasattr(model.calibrator, "to_dict") else None
        if hasattr(model.calibrator, "calibrator_"):
            advice = "save its calibrator_, or pickle the classifier"
        raise InvalidTypeError(
            "calibrator_or_model", rule, got=type(model.calibrator).__name__, advice=advice
        )
    return Model(
        model.calibrator,
        _check_columns(model.columns if columns is None else columns),
        _plain(model.provenance if provenance is None else provenance, "provenance", mapping=True),
    )


def _other_class(schema: str) -> Any:
    """The class whose state has this schema, if it is not a calibrator of scores."""
    module, name = _OTHERS[schema]
    return getattr(import_module(module), name)


def _check_columns(columns: Any) -> dict[str, str]:
    if not isinstance(columns, Mapping) or not all(
        isinstance(text, str) for pair in columns.items() for text in pair
    ):
        raise InvalidTypeError("columns", "be a mapping of text to text", got=shown(columns))
    return {str(role): str(name) for role, name in columns.items()}


def _plain(value: Any, place: str, depth: int = 0, *, mapping: bool = False) -> Any:
    """A copy as plain JSON values; tuples become lists, and numpy numbers become Python numbers."""
    if isinstance(value, np.generic):
        value = value.item()
    if depth > DEEPEST:
        raise InvalidValueError(f"{place[:80]}...", f"be nested at most {DEEPEST} deep", got="more")
    if isinstance(value, Mapping):
        strange = next((key for key in value if not isinstance(key, str)), None)
        if strange is not None:
            raise InvalidTypeError(f"keys of {place}", "be text", got=shown(strange))
        return {key: _plain(entry, f"{place}[{key!r}]", depth + 1) for key, entry in value.items()}
    if mapping:
        raise InvalidTypeError(place, "be a mapping", got=type(value).__name__)
    if isinstance(value, list | tuple):
        return [_plain(entry, f"{place}[{index}]", depth + 1) for index, entry in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidValueError(place, "be a finite number, which JSON can hold", got=repr(value))
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InvalidTypeError(place, "be plain JSON values", got=type(value).__name__)


def content_of(model: Model) -> dict[str, Any]:
    """The content of the file, with its checksum."""
    from calibrant._version import __version__

    # `to_dict` of a result also contains its texts
    state = getattr(model.calibrator, "saved_state", model.calibrator.to_dict)()
    content = {
        "format": FORMAT,
        "checksum": "",
        "created_by": f"calibrant {__version__}",
        "columns": dict(model.columns),
        "provenance": dict(model.provenance),
        "guarantee": _guarantee(model.calibrator),
        "calibrator": state,
    }
    return {**content, "checksum": checksum_of(content)}


def _guarantee(calibrator: Any) -> dict[str, Any]:
    """What a reader of the file should know without using calibrant."""
    stated = getattr(calibrator, "guarantee_", calibrator)
    if getattr(stated, "read", ()):
        stated = replace(stated, read=())  # the file should say what its rows show
    level = getattr(stated, "confidence_level", None)
    return {
        "epsilon": getattr(stated, "epsilon", None),
        "confidence_level": None if level is None else float(level),
        "sentence": stated.sentence,
        **({"details": stated.details} if hasattr(calibrator, "guarantee_") else {}),
    }


# From a file to a model


def _read(data: bytes) -> Model:
    """Read a model, outer layers first: nothing is computed from a damaged file."""
    content = parse(data)
    _check_format(content)
    if set(content) != set(_KEYS):
        got = next((f"none named {key!r}" for key in _KEYS if key not in content), None)
        unknown = next((key for key in content if key not in _KEYS), "")
        rule = f"have exactly the entries {', '.join(_KEYS)}"
        raise InvalidValueError("the model file", rule, got=got or f"another, {shown(unknown)}")
    checksum = checksum_of(content)
    if content["checksum"] != checksum:
        advice = (
            "get the file again from its source; it was changed or damaged after it was written"
        )
        raise InvalidValueError(
            "the model file", "match its own checksum", got="another", advice=advice
        )
    TEXT.check("created_by of the model file", content["created_by"])
    columns = _check_columns(content["columns"])
    Instance(dict, "an object").check("provenance of the model file", content["provenance"])
    check_guarantee(content["guarantee"])
    _check_regions(content["calibrator"])
    calibrator = _read_calibrator(content["calibrator"], content["guarantee"])
    guarantee = content["guarantee"]
    written = {
        "checksum": checksum,
        "created_by": content["created_by"],
        "sentence": guarantee["sentence"],
    }
    if isinstance(content["calibrator"], dict) and isinstance(
        content["calibrator"].get("sentence"), str
    ):
        written["inner_sentence"] = content["calibrator"]["sentence"]
    if "details" in guarantee:
        written["details"] = guarantee["details"]
    return Model(calibrator, columns, content["provenance"], written)


def _check_format(content: Mapping[str, Any]) -> None:
    found = content.get("format")
    if found == FORMAT:
        return
    number = (
        re.fullmatch(r"calibrant\.model/([1-9][0-9]{0,8})", found)
        if isinstance(found, str)
        else None
    )
    if number is None:
        raise is_not_a_model(f"its format is {shown(found)}, not {FORMAT!r}")
    advice = "use the release of calibrant that wrote it"
    raise NotAModelError("the model file", f"be of format {FORMAT!r}", repr(found), advice)


def _check_regions(calibrator: Any) -> None:
    """Raise an error for more regions than limits can be computed for in about a second."""
    # one count per region, one part per segment
    found = {"counts": 0, "parts": 0}
    left = [calibrator]
    while left:
        entry = left.pop()
        if isinstance(entry, dict):
            for name in found:
                found[name] += len(entry[name]) if isinstance(entry.get(name), list) else 0
            left.extend(entry.values())
        elif isinstance(entry, list) and entry and not isinstance(entry[0], float | int):
            left.extend(entry)
    if max(found.values()) > MOST_REGIONS:
        raise InvalidValueError(
            "the model file", f"have at most {MOST_REGIONS:,} regions", got="more"
        )


def _read_calibrator(state: Any, guarantee: Mapping[str, Any]) -> Any:
    # not needed by the earlier checks
    from calibrant.calibrators.score_calibrator import ScoreCalibrator

    try:
        schema = str(state.get("schema")) if isinstance(state, dict) else ""
        saved_class = _other_class(schema) if schema in _OTHERS else ScoreCalibrator
        calibrator = saved_class.from_dict(state)
        check_complete(state, calibrator.to_dict())
        derived = _guarantee(calibrator)
    except Exception as error:  # report errors that the checks did not foresee, too
        kind = InvalidTypeError if isinstance(error, InvalidTypeError) else InvalidValueError
        said = (
            str(error) if isinstance(error, CalibrantError) else f"{type(error).__name__}: {error}"
        )
        raise kind("calibrator of the model file", "be valid", advice=said[:400]) from error
    check_numbers(guarantee, derived)
    return calibrator
