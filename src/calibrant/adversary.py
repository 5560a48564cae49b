"""The impossibility result in numbers: an injective calibrator is wrong, and no sample shows it."""

from calibrant.assess.adversary.confrontation import SAMPLE_SIZES, Confrontation, confront
from calibrant.assess.adversary.ghost import (
    GhostWorld,
    WidthDemonstration,
    width_demonstration,
)

__all__ = [
    "SAMPLE_SIZES",
    "Confrontation",
    "GhostWorld",
    "WidthDemonstration",
    "confront",
    "width_demonstration",
]
