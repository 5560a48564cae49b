"""The last of the four ideas: what follows from the intervals, in numbers and in plain English."""

from calibrant.guarantee.base import Guarantee, PartialGuarantee, check_tally
from calibrant.guarantee.none import NoGuarantee
from calibrant.guarantee.statement import Caveat, Claim, Edges, Event, ImportanceWeights, Population, Statement
from calibrant.guarantee.values import VALUES

__all__ = [
    "VALUES",
    "Caveat",
    "Claim",
    "Edges",
    "Event",
    "Guarantee",
    "ImportanceWeights",
    "NoGuarantee",
    "PartialGuarantee",
    "Population",
    "Statement",
    "check_tally",
]
