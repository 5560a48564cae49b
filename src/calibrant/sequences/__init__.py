"""Confidence sequences: limits that hold at every moment, one method per file."""

from calibrant._params import Choice
from calibrant.sequences.base import Sequence
from calibrant.sequences.beta_binomial import BetaBinomial
from calibrant.sequences.betting import Betting
from calibrant.sequences.centred import CentredBetaBinomial
from calibrant.sequences.paper import Paper
from calibrant.sequences.stitched import Stitched

__all__ = [
    "SEQUENCES",
    "BetaBinomial",
    "Betting",
    "CentredBetaBinomial",
    "Paper",
    "Sequence",
    "Stitched",
    "get_sequence",
]

SEQUENCES: dict[str, type[Sequence]] = {
    kind.name: kind for kind in (CentredBetaBinomial, BetaBinomial, Stitched, Paper, Betting)
}
"""Every sequence by the name that the parameter ``sequence`` takes."""


def get_sequence(name: str) -> type[Sequence]:
    """Return the sequence called `name`."""
    return SEQUENCES[Choice(SEQUENCES).check("sequence", name)]
