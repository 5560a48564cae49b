"""Confidence sequences: limits that hold at every moment, one method per file."""

from __future__ import annotations

from calibrant.limits.sequences.beta_binomial import BetaBinomial
from calibrant.limits.sequences.betting import Betting
from calibrant.limits.sequences.centred import CentredBetaBinomial
from calibrant.limits.sequences.paper import Paper
from calibrant.limits.sequences.sequence import Sequence
from calibrant.limits.sequences.stitched import Stitched
from calibrant.params.rules import Choice

SEQUENCES: dict[str, type[Sequence]] = {
    kind.name: kind for kind in (CentredBetaBinomial, BetaBinomial, Stitched, Paper, Betting)
}
"""Every sequence, by the name that the parameter ``sequence`` takes."""


def get_sequence(name: str) -> type[Sequence]:
    """Return the sequence called `name`."""
    return SEQUENCES[Choice(SEQUENCES).check("sequence", name)]
