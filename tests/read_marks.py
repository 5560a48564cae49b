"""Guarantees that were read back, compared with those that were saved."""

from dataclasses import replace
from typing import Any


def unmarked(guarantee: Any) -> str:
    """What a guarantee says, without the mark of what was read from a file."""
    return str(replace(guarantee, read=()) if getattr(guarantee, "read", ()) else guarantee)
