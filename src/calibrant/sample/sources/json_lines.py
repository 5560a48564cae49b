"""JSON lines, looked at before Arrow parses them: its parser overflows the stack on deep nesting."""

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from calibrant._json import DEEPEST, too_deep
from calibrant.errors import InvalidValueError

LONGEST_LINE = 1 << 23
"""Bytes that one line may have: Arrow reads blocks of this size."""
_SIGNS = b'"[]{}\n\r'
_OTHERS = bytes(set(range(256)) - set(_SIGNS))


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
                raise too_deep(what)
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
    return bytes(signs[(outside & ~is_quote) | is_break].tobytes())
