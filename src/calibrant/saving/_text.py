"""The text of a model file: strict JSON in, within limits; readable JSON out; and a checksum of the values."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NoReturn

from calibrant.errors import InvalidTypeError, InvalidValueError

MOST_BYTES = 8_000_000
MOST_VALUES = 500_000
MOST_OBJECTS = 200_000
DEEPEST = 40
MOST_DIGITS = 100
_OTHER_KINDS = {
    b"\x1f\x8b": "it is compressed: unpack it first",
    b"PK\x03\x04": "it is a zip archive",
    b"\x80": "it looks like a pickle, and nothing is ever unpickled",
}


def checksum_of(content: Mapping[str, Any]) -> str:
    """Of the values, not of the layout: an editor may indent the file anew."""
    rest = {key: value for key, value in content.items() if key != "checksum"}
    try:
        text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    except UnicodeEncodeError:
        raise InvalidValueError("text must be Unicode; got half of a surrogate pair") from None
    except ValueError:
        raise InvalidValueError("numbers must be finite; got one that no double can hold, or no number") from None
    except TypeError as error:
        raise InvalidTypeError(
            f"the calibrator can not be saved, for JSON can not hold what it learned: {error}"
        ) from None


def pretty(value: Any, indent: str = "") -> str:
    """JSON for people: an object's entries on lines of their own, a list of numbers on one."""
    deeper = indent + "  "
    if isinstance(value, dict) and value:
        entries = [f"{json.dumps(key, ensure_ascii=False)}: {pretty(entry, deeper)}" for key, entry in value.items()]
        return "{\n" + deeper + f",\n{deeper}".join(entries) + f"\n{indent}" + "}"
    if isinstance(value, list) and any(isinstance(entry, dict) for entry in value):
        return "[\n" + deeper + f",\n{deeper}".join(pretty(entry, deeper) for entry in value) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def parse(data: Any) -> dict[str, Any]:
    """Strict JSON in strict UTF-8, within limits that are checked before memory is taken."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InvalidTypeError(f"path_or_file must give bytes or text; got {type(data).__name__}")
    data = bytes(data)
    if not data:
        raise InvalidValueError("the model file is empty")
    if len(data) > MOST_BYTES:
        raise InvalidValueError(f"the model file must be at most {MOST_BYTES:,} bytes long; got more")
    for start, what in _OTHER_KINDS.items():
        if data.startswith(start):
            raise InvalidValueError(f"this is not a calibrant model file: {what}")
    if data.count(b",") > MOST_VALUES:
        raise InvalidValueError(f"the model file must hold at most {MOST_VALUES:,} values; got more")
    if data.count(b"[") + data.count(b"{") > MOST_OBJECTS:
        raise InvalidValueError(f"the model file must hold at most {MOST_OBJECTS:,} lists and objects; got more")
    try:
        content = json.loads(
            data.decode(),
            object_pairs_hook=_object,
            parse_int=_whole,
            parse_constant=_no_constant,
        )
    except UnicodeDecodeError as error:
        raise InvalidValueError(f"this is not a calibrant model file: byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise InvalidValueError(
            f"this is not a calibrant model file, or it was cut short: it is not JSON ({error.msg} in line "
            f"{error.lineno}, column {error.colno})"
        ) from None
    except RecursionError:
        raise _too_deep() from None
    if not isinstance(content, dict):
        raise InvalidValueError("this is not a calibrant model file: it holds no JSON object")
    _check_depth(content)
    return content


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InvalidValueError("objects of the model file must name each entry once; got one twice")
    return found


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise InvalidValueError(f"whole numbers of the model file must have at most {MOST_DIGITS} digits; got more")
    return int(text)


def _no_constant(name: str) -> NoReturn:
    raise InvalidValueError(f"numbers of the model file must be finite; got {name}")


def _too_deep() -> InvalidValueError:
    return InvalidValueError(f"the model file must be nested at most {DEEPEST} deep; got more")


def _check_depth(content: Any) -> None:
    layer = [content]
    for _ in range(DEEPEST):
        layer = [
            entry
            for container in layer
            for entry in (container.values() if isinstance(container, dict) else container)
            if isinstance(entry, dict | list)
        ]
        if not layer:
            return
    raise _too_deep()
