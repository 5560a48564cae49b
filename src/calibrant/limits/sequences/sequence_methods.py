"""Confidence sequences: limits that hold at every moment, one method per file."""

from __future__ import annotations

from calibrant.limits.sequences.centred import CentredBetaBinomial
from calibrant.limits.sequences.paper import Paper
from calibrant.limits.sequences.sequence import Sequence
from calibrant.params.rules import Choice

SEQUENCES: dict[str, type[Sequence]] = {kind.name: kind for kind in (CentredBetaBinomial, Paper)}
"""Every sequence, by the name that the parameter ``sequence`` takes."""


def get_sequence(name: str) -> type[Sequence]:
    """Return the sequence called `name`."""
    return SEQUENCES[Choice(SEQUENCES).check("sequence", name)]
