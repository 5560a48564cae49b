"""Which kind of rows something is: asked here alone, so that one place changes with the kinds."""

from typing import TYPE_CHECKING

from calibrant.sample.sample import Sample
from calibrant.sample.sources.memory import MemoryRows

if TYPE_CHECKING:
    from typing_extensions import TypeIs


def is_scored(data: object) -> "TypeIs[Sample]":
    """Whether these are scored rows, from `calibrant.scored`, and not an array."""
    return isinstance(data, Sample)


def in_memory(data: object) -> "TypeIs[MemoryRows]":
    """Whether these are scored rows in memory."""
    return isinstance(data, MemoryRows)
