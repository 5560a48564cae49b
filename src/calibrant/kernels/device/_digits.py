"""Exact order statistics in bounded memory, whatever the scores: the digits of the wanted ones, highest first.

A score's bits, read as a whole number in the order of the scores, are digits to base 65536. One pass counts the first
digits, which tells the first digit of each wanted score; the next counts the second digits of the scores that begin
like a wanted one, and so on. Ties need no care.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.kernels.device._plain import pieces

CHUNK_ROWS = 1 << 23
"""Rows at a time: about 50 bytes of temporary memory each."""

_DIGIT = 16
_BASE = 1 << _DIGIT


def by_digits(ops: Any, scores: Any, wanted: IntArray) -> FloatArray:
    """The scores of the given ranks. Each takes a table of 65536 counts, half a megabyte."""
    width = 64 if ops.kind(scores) == "float64" else 32
    local = wanted.copy()
    prefix = np.zeros(wanted.shape, np.int64)  # what is known of each wanted score's bits
    slot = np.zeros(wanted.shape, np.int64)  # which of the known beginnings it has
    tables: list[Any] = []
    for shift in range(width - _DIGIT, -1, -_DIGIT):
        # After the first pass there is one slot more, for scores that begin like none of the wanted.
        slots = int(slot.max()) + 1 + bool(tables)
        counts = ops.to_host(_count_digits(ops, scores, tables, width, shift, slots)).reshape(slots, _BASE)
        reached = np.cumsum(counts, axis=1)[slot]
        digit = (reached < local[:, None]).sum(axis=1)
        local -= np.where(digit > 0, np.take_along_axis(reached, np.maximum(digit - 1, 0)[:, None], 1)[:, 0], 0)
        prefix = prefix * _BASE + (digit - (_BASE // 2 if not tables else 0))
        begun, new_slot = np.unique(slot * _BASE + digit, return_inverse=True)
        table = np.full(slots * _BASE, begun.shape[0], np.int64)
        table[begun] = np.arange(begun.shape[0])
        tables.append(ops.to_device(table, scores))
        slot = new_slot.astype(np.int64)
    return _from_bits(prefix, width)


def _count_digits(ops: Any, scores: Any, tables: list[Any], width: int, shift: int, slots: int) -> Any:
    """For each slot, how often each digit follows."""
    total = ops.zeros((slots * _BASE,), "int64", scores)
    for part in pieces(scores.shape[0], CHUNK_ROWS):
        bits = ops.ordered_bits(scores[part])
        # The highest digit has a sign, so it is moved to begin at zero.
        key = ops.cast(bits >> (width - _DIGIT), "int64") + _BASE // 2
        above = width - _DIGIT
        for table in tables:
            above -= _DIGIT
            key = (ops.take(table, key) << _DIGIT) | ops.cast((bits >> above) & (_BASE - 1), "int64")
        total += ops.histogram(key, slots * _BASE)
    return total


def _from_bits(ordered: IntArray, width: int) -> FloatArray:
    # The same step that put the bits in order puts them back.
    bits = ordered ^ ((ordered >> 63) & ((1 << (width - 1)) - 1))
    if width == 64:
        return bits.view(np.float64)
    return bits.astype(np.int32).view(np.float32).astype(np.float64)
