"""Calibrators read back from their states, and what damaged states do."""

from typing import Any

import numpy as np

from calibrant import (
    BinningCalibrator,
    Calibrator,
    OnlineCalibrator,
    Partition,
    ShiftCalibrator,
    Tally,
    sequences,
)
from calibrant.guarantee.guarantee import Guarantee
from calibrant.intervals import METHODS
from calibrant.shift import LabelShiftCalibrator
from worlds.questions.base import (
    ATOMS,
    QUESTIONS,
    SKEWED,
    SMOOTH,
    TIED,
    of_calibrator,
    of_state,
    question,
    refused,
    tried,
)

STATES: dict[str, Any] = {
    "bins": lambda: BinningCalibrator(3).fit(SMOOTH.scores, SMOOTH.y),
    "tied bins": lambda: BinningCalibrator(4).fit(TIED.scores, TIED.y),
    "bins of groups": lambda: BinningCalibrator(2).fit(
        SMOOTH.scores, SMOOTH.y, groups=SMOOTH.groups // 20
    ),
    "bins by segment": lambda: BinningCalibrator(2).fit(
        SMOOTH.scores, SMOOTH.y, segments=SMOOTH.segments
    ),
    "bins with weights": lambda: BinningCalibrator(2).fit(
        SMOOTH.scores, SMOOTH.y, importance_weight=SMOOTH.weights, weight_bound=3.0
    ),
    "curve": lambda: Calibrator(n_bins=3).fit(SMOOTH.scores, SMOOTH.y),
    "isotonic curve": lambda: Calibrator("isotonic", n_bins=2).fit(TIED.scores, TIED.y),
    "falling curve": lambda: Calibrator(n_bins=2).fit(1.0 - SMOOTH.scores, SMOOTH.y),
    "curve of groups": lambda: Calibrator(n_bins=2).fit(
        SMOOTH.scores, SMOOTH.y, groups=SMOOTH.groups // 20
    ),
    "curve by segment": lambda: Calibrator(n_bins=2).fit(
        SMOOTH.scores, SMOOTH.y, segments=SMOOTH.segments
    ),
    "curve without pilot": lambda: Calibrator(n_bins=2, pilot=None).fit(SMOOTH.scores, SMOOTH.y),
    "shift": lambda: ShiftCalibrator(n_bins=2).fit(
        SMOOTH.scores, SMOOTH.y, importance_weight=SMOOTH.weights, weight_bound=3.0
    ),
    "label shift": lambda: LabelShiftCalibrator(n_bins=2).fit(
        SMOOTH.scores, SMOOTH.y, target_scores=SMOOTH.new**0.5
    ),
    "label shift with priors": lambda: LabelShiftCalibrator(n_bins=2).fit(
        SMOOTH.scores, SMOOTH.y, target_prior=(0.3, 0.4)
    ),
    **{
        f"stream {name}": lambda name=name: OnlineCalibrator(
            Partition.fixed_width(2), sequence=name
        ).fit(SMOOTH.scores[:90], SMOOTH.y[:90])
        for name in sequences.SEQUENCES
    },
}
for _name, _make in STATES.items():

    def of_file(make: Any = _make) -> Any:
        calibrator = make()
        kind = type(calibrator)
        named = (
            {"segments": np.repeat(["north", "south"], 5)}
            if calibrator_has_segments(calibrator)
            else {}
        )
        again = kind.from_dict(calibrator.to_dict())
        damage = of_state(kind.from_dict, calibrator, kind.to_dict, most=30)
        return [of_calibrator(again, **named), again.guarantee_, damage]

    QUESTIONS[f"state {_name}"] = of_file


def calibrator_has_segments(calibrator: Any) -> bool:
    """Whether predictions need a segment."""
    return bool(getattr(getattr(calibrator, "partition_", None), "has_segments", False))


@question
def calibrators_from_tallies() -> Any:
    found = []
    bins = Partition.from_edges([0.3, 0.6])
    for world in (SMOOTH, ATOMS):
        tally = Tally.from_data(bins, world.scores, world.y)
        found.append(of_calibrator(BinningCalibrator.from_tally(bins, tally)))
        found.append(
            of_calibrator(BinningCalibrator.from_tally(bins, tally + tally, confidence_level=0.5))
        )
        for method in METHODS:
            for value in ("mean", "midpoint"):
                found += [tried(Guarantee.from_tally, bins, tally, interval=method, value=value)]
    return found


@question
def guarantees_for_part_of_the_rows() -> Any:
    found = []
    for fitted in (
        BinningCalibrator(8).fit(SKEWED.scores, SKEWED.y),
        Calibrator(n_bins=8).fit(SKEWED.scores, SKEWED.y),
        BinningCalibrator(3, pilot=None).fit(TIED.scores, TIED.y),
    ):
        guarantee = fitted.guarantee_
        for mass in (0.05, 0.3, 0.5, 0.9, 1.0):
            found += [guarantee.epsilon_for(mass), guarantee.restricted_to(mass)]
        found += [
            guarantee.average_epsilon,
            guarantee.relative,
            guarantee.interval,
            guarantee.stated,
        ]
        found += [guarantee.is_rare, guarantee.is_weak, guarantee.is_vacuous]
        found += [
            refused(lambda guarantee=guarantee, mass=mass: guarantee.epsilon_for(mass))
            for mass in (0.0, 1.1)
        ]
    return found
