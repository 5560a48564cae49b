"""Read JSON that someone else wrote, within limits on size, depth and type.

Every place that parses JSON uses this module, except Arrow, which reads JSON lines as a table;
`sample/sources/json_lines.py` keeps those within the same limits.
"""

import json
from typing import Any, NoReturn

from calibrant.errors import InvalidValueError

DEEPEST = 100
"""Levels of lists and objects in each other."""
MOST_BYTES = 1 << 30
_MOST_DIGITS = 100


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
        raise too_deep(what, deepest) from None
    _check_depth(found, what, deepest)
    return found


def too_deep(what: str, deepest: int = DEEPEST) -> InvalidValueError:
    """The error for a text that is nested too deeply."""
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
    raise too_deep(what, deepest)
