"""Confidence sequences: limits that hold at every moment."""

from calibrant.limits.sequences.centred import CentredBetaBinomial
from calibrant.limits.sequences.paper import Paper
from calibrant.limits.sequences.sequence import Sequence
from calibrant.limits.sequences.sequence_methods import SEQUENCES, get_sequence

__all__ = [
    "SEQUENCES",
    "CentredBetaBinomial",
    "Paper",
    "Sequence",
    "get_sequence",
]
