"""Read JSON that someone else wrote, within limits on size, depth and type.

Every place that reads JSON uses this module. Text is parsed by the standard library, which raises
an error for a text that is nested too deeply. Arrow's parser of JSON lines has no such limit and
overflows the stack, so `check_nesting` looks at the bytes before Arrow does.
"""

import json
from collections.abc import Iterator
from typing import Any, BinaryIO, NoReturn

import numpy as np

from calibrant.errors import InvalidValueError

DEEPEST = 100
"""Levels of lists and objects in each other. Logs of real tools have up to about 30."""
MOST_BYTES = 1 << 30
LONGEST_LINE = 1 << 23
"""Bytes that one line of JSON lines may have: Arrow reads blocks of this size."""
_MOST_DIGITS = 100
_SIGNS = b'"[]{}\n\r'
_OTHERS = bytes(set(range(256)) - set(_SIGNS))


class NotJsonError(InvalidValueError):
    """The text is not JSON at all, or was cut short."""


def read_json(
    data: bytes | str,
    what: str,
    *,
    deepest: int = DEEPEST,
    most_bytes: int = MOST_BYTES,
    strict: bool = False,
) -> Any:
    """The value of a JSON text in UTF-8; `what` names it in errors.

    With `strict`, an object names each entry once, and numbers are finite, which JSON demands but
    many programs do not keep.

    >>> read_json(b'{"a": [1, 2.5, null]}', "the file")
    {'a': [1, 2.5, None]}
    >>> read_json("[" * 200_000, "the file")
    Traceback (most recent call last):
    calibrant.errors.InvalidValueError: the file must be nested at most 100 deep; got more
    """
    if len(data) > most_bytes:
        raise InvalidValueError(what, f"have at most {most_bytes:,} bytes", got="more")

    def entries(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise InvalidValueError(f"objects of {what}", "name each entry once", got="one twice")
        return found

    def whole(text: str) -> int:
        if len(text) > _MOST_DIGITS:
            rule = f"have at most {_MOST_DIGITS} digits"
            raise InvalidValueError(f"integers of {what}", rule, got="more")
        return int(text)

    def no_constant(name: str) -> NoReturn:
        raise InvalidValueError(f"numbers of {what}", "be finite", got=name)

    checks: dict[str, Any] = (
        {"object_pairs_hook": entries, "parse_constant": no_constant} if strict else {}
    )
    try:
        text = data if isinstance(data, str) else data.decode("utf-8" if strict else "utf-8-sig")
        found = json.loads(text, parse_int=whole, **checks)
    except UnicodeDecodeError as error:
        got = f"bytes that are not UTF-8, at position {error.start:,}"
        raise InvalidValueError(what, "be text in UTF-8", got=got) from None
    except json.JSONDecodeError as error:
        got = f"{error.msg} in line {error.lineno}, column {error.colno}"
        raise NotJsonError(what, "be JSON", got=got) from None
    except RecursionError:
        raise _too_deep(what, deepest) from None
    _check_depth(found, what, deepest)
    return found


def _too_deep(what: str, deepest: int) -> InvalidValueError:
    return InvalidValueError(what, f"be nested at most {deepest} deep", got="more")


def _check_depth(found: Any, what: str, deepest: int) -> None:
    layer = [found] if isinstance(found, dict | list) else []
    for _ in range(deepest):
        layer = [
            entry
            for container in layer
            for entry in (container.values() if isinstance(container, dict) else container)
            if isinstance(entry, dict | list)
        ]
        if not layer:
            return
    raise _too_deep(what, deepest)


def check_nesting(stream: BinaryIO, what: str) -> None:
    """Raise an error for JSON lines that are nested too deeply, or too long, for Arrow's parser.

    It reads the stream to its end, in blocks, without parsing it. Arrow starts to parse at some
    line breaks that only it knows, so the depth is counted from the line break with the least: it
    is never less than what a parser sees.
    """
    depth = 0
    for block in _blocks_of_lines(stream, what):
        signs = np.frombuffer(_signs_outside_text(block), dtype=np.uint8)
        steps = np.select([(signs == 123) | (signs == 91), (signs == 125) | (signs == 93)], [1, -1])
        depths = np.cumsum(steps, dtype=np.int64) + depth
        above_least = depths - np.minimum(np.minimum.accumulate(depths), 0)
        if above_least.size:
            if above_least.max() > DEEPEST:
                raise _too_deep(what, DEEPEST)
            depth = int(above_least[-1])


def _blocks_of_lines(stream: BinaryIO, what: str) -> Iterator[bytes]:
    """Complete lines, about 8 MB at a time."""
    rest = b""
    while block := stream.read(LONGEST_LINE):
        lines, end, begun = block.rpartition(b"\n")
        if end:
            yield rest + lines + end
            rest = begun
        else:
            rest += block
        if len(rest) > LONGEST_LINE:
            rule = f"have lines of at most {LONGEST_LINE:,} bytes"
            raise InvalidValueError(what, rule, got="a longer line")
    yield rest


def _signs_outside_text(block: bytes) -> bytes:
    """The brackets and line breaks of a block that stand outside quotes. A text ends with its line."""
    if b"\\" in block:
        block = block.replace(b"\\\\", b"").replace(b'\\"', b"")
    signs = np.frombuffer(block.translate(None, _OTHERS), dtype=np.uint8)
    is_quote = signs == 34
    is_break = (signs == 10) | (signs == 13)  # at which of them Arrow cuts is up to Arrow
    quotes = np.cumsum(is_quote, dtype=np.int64)
    at_breaks = np.where(is_break, quotes, 0)
    before = np.maximum.accumulate(np.concatenate([[0], at_breaks[:-1]])) if signs.size else quotes
    outside = (quotes - before) % 2 == 0
    return signs[(outside & ~is_quote) | is_break].tobytes()
