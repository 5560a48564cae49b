"""Confidence sequences: limits that hold at every moment."""

from calibrant.limits.sequences.beta_binomial import BetaBinomial
from calibrant.limits.sequences.betting import Betting
from calibrant.limits.sequences.centred import CentredBetaBinomial
from calibrant.limits.sequences.paper import Paper
from calibrant.limits.sequences.sequence import Sequence
from calibrant.limits.sequences.sequence_methods import SEQUENCES, get_sequence
from calibrant.limits.sequences.stitched import Stitched

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
