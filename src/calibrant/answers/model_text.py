"""The text of a model file: strict JSON in, within limits; readable JSON out.

Also a checksum of the values.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from calibrant._json import NotJsonError, read_json
from calibrant.errors import InvalidTypeError, InvalidValueError

MOST_BYTES = 8_000_000
MOST_VALUES = 500_000
MOST_OBJECTS = 200_000
DEEPEST = 40
# a file that starts with this is a model file, though it may be damaged
_MARK = b'"calibrant.model/'
_START = 1000
_OTHER_KINDS = {
    b"\x1f\x8b": "it is compressed; unpack it first",
    b"PK\x03\x04": "it is a zip archive",
    b"\x80": "it looks like a pickle, and calibrant never unpickles anything",
}


def checksum_of(content: Mapping[str, Any]) -> str:
    """Checksum of the values, not of the layout: an editor may reindent the file."""
    rest = {key: value for key, value in content.items() if key != "checksum"}
    try:
        text = json.dumps(
            rest,
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
            allow_nan=False,
        )
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    except UnicodeEncodeError:
        raise InvalidValueError("text", "be Unicode", got="half of a surrogate pair") from None
    except ValueError:
        raise InvalidValueError(
            "numbers", "be finite", got="a number too large for a double, or NaN"
        ) from None
    except TypeError as error:
        raise InvalidTypeError(
            "the calibrator", "have only plain values to be saved as JSON", got=str(error)
        ) from None


def pretty(value: Any, indent: str = "") -> str:
    """JSON for people: each entry of an object on its own line, a list of numbers on one line."""
    deeper = indent + "  "
    if isinstance(value, dict) and value:
        entries = [
            f"{json.dumps(key, ensure_ascii=False)}: {pretty(entry, deeper)}"
            for key, entry in value.items()
        ]
        return "{\n" + deeper + f",\n{deeper}".join(entries) + f"\n{indent}" + "}"
    if isinstance(value, list) and any(isinstance(entry, dict) for entry in value):
        return (
            "[\n"
            + deeper
            + f",\n{deeper}".join(pretty(entry, deeper) for entry in value)
            + f"\n{indent}]"
        )
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


class NotAModelError(InvalidValueError):
    """The file is not a model file, or of another version of the format.

    Damaged model files raise other errors.
    """


def parse(data: Any) -> dict[str, Any]:
    """Parse strict JSON in strict UTF-8, within limits that are checked before memory is allocated."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InvalidTypeError("path_or_file", "give bytes or text", got=type(data).__name__)
    data = bytes(data)
    try:
        return _parsed(data)
    except InvalidValueError as error:
        if _MARK in data[:_START]:
            raise InvalidValueError(*error.args) from None
        raise NotAModelError(*error.args) from None


def _parsed(data: bytes) -> dict[str, Any]:
    if not data:
        raise InvalidValueError("the model file", "be a JSON object", got="an empty file")
    for start, what in _OTHER_KINDS.items():
        if data.startswith(start):
            raise is_not_a_model(what)
    for size, most, unit in (
        (len(data), MOST_BYTES, "bytes"),
        (data.count(b","), MOST_VALUES, "values"),
        (data.count(b"[") + data.count(b"{"), MOST_OBJECTS, "lists and objects"),
    ):
        if size > most:
            raise InvalidValueError("the model file", f"have at most {most:,} {unit}", got="more")
    try:
        content = read_json(data, "the model file", deepest=DEEPEST, strict=True)
    except NotJsonError as error:
        raise is_not_a_model(f"it is not JSON, or it was cut short ({error.got})") from None
    if not isinstance(content, dict):
        raise is_not_a_model("it is not a JSON object")
    return content


def is_not_a_model(reason: str) -> NotAModelError:
    """The error for a file of another kind."""
    return NotAModelError(None, f"this is not a calibrant model file: {reason}")
