"""The impossibility result made visible: a distribution on which an injective calibrator's claims fail unseen."""

from calibrant.adversary.confronting import SAMPLE_SIZES, Confrontation, confront
from calibrant.adversary.ghost import GhostWorld
from calibrant.adversary.widths import WidthDemonstration, width_demonstration

__all__ = [
    "SAMPLE_SIZES",
    "Confrontation",
    "GhostWorld",
    "WidthDemonstration",
    "confront",
    "width_demonstration",
]
