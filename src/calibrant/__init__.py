"""Scores of any binary classifier, turned into probabilities that come with a proof."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from calibrant.calibrators.binning import BinningCalibrator
    from calibrant.classifier import CalibratedClassifier
    from calibrant.guarantee import Guarantee
    from calibrant.intervals import Interval
    from calibrant.partition import Partition
    from calibrant.planning import Plan, plan
    from calibrant.tally import Tally
    from calibrant.views.plot import ReliabilityDisplay

# Where each public name lives. It is imported when first asked for, so that `import calibrant` costs next to nothing.
_HOMES = {
    "BinningCalibrator": "calibrant.calibrators.binning",
    "CalibratedClassifier": "calibrant.classifier",
    "Guarantee": "calibrant.guarantee",
    "Interval": "calibrant.intervals",
    "Partition": "calibrant.partition",
    "Plan": "calibrant.planning",
    "ReliabilityDisplay": "calibrant.views.plot",
    "Tally": "calibrant.tally",
    "plan": "calibrant.planning",
}

__all__ = [
    "BinningCalibrator",
    "CalibratedClassifier",
    "Guarantee",
    "Interval",
    "Partition",
    "Plan",
    "ReliabilityDisplay",
    "Tally",
    "plan",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'calibrant' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
