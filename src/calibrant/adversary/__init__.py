"""The impossibility result in numbers: an injective calibrator is wrong, and no sample shows it."""

from calibrant.adversary.confrontation import SAMPLE_SIZES, Confrontation, confront
from calibrant.adversary.ghost import GhostWorld
from calibrant.adversary.widths import WidthDemonstration, width_demonstration

__all__ = ["SAMPLE_SIZES", "Confrontation", "GhostWorld", "WidthDemonstration", "confront", "width_demonstration"]
