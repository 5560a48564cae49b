"""Curves made by hand: pieces that jump and fall; look-ups of cuts."""

from typing import Any

import numpy as np

import calibrant
from calibrant import Partition
from calibrant.assess.threshold.decisions import decision_columns
from calibrant.calibrators.curve.pieces import Pieces, interpolate, simplified
from worlds.questions.base import QUESTIONS, question
from worlds.questions.pairs import SEGMENTS, SMALL, TARGETS

KNOTS = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
SHAPES = {
    "rising": np.array([0.05, 0.1, 0.4, 0.8, 0.9]),
    "falling": np.array([0.9, 0.7, 0.65, 0.2, 0.1]),
    "both": np.array([0.2, 0.6, 0.1, 0.1, 0.8]),
    "flat": np.full(5, 0.3),
}
REGIONS = Partition.from_edges([0.3, 0.6])


def _jumping(values: Any, jump: float) -> Pieces:
    """A curve through knots whose pieces begin higher than the one before has ended."""
    smooth = Pieces.through(REGIONS, [KNOTS], [values])
    left = np.clip(smooth.left + jump * np.arange(smooth.left.size) / 10.0, 0.0, 1.0)
    return Pieces(smooth.cells, left, smooth.right)


def _of_pieces(curve: Pieces) -> list[Any]:
    return [
        curve.left,
        curve.right,
        curve.table[1:-1],
        curve.falling_segments,
        curve.falls,
        curve.regions(REGIONS),
        curve.range(REGIONS),
    ]


for _name, _values in SHAPES.items():
    for _jump in (0.0, 0.4):

        def pieces(values: Any = _values, jump: float = _jump) -> Any:
            return _of_pieces(_jumping(values, jump))

        QUESTIONS[f"pieces {_name} {_jump:g}"] = pieces


@question
def knots_of_curves() -> Any:
    scores = np.array([-1.0, 0.1, 0.2, 0.3, 0.30001, 0.65, 0.9, 2.0])
    fine = np.linspace(0.0, 1.0, 60)
    found: list[Any] = []
    for values in SHAPES.values():
        found += [interpolate(scores, KNOTS, values)]
        smooth = interpolate(fine, KNOTS, values)
        found += [simplified(fine, smooth), simplified(fine, smooth, 0.5), simplified(fine, fine)]
        found += [simplified(fine[:2], smooth[:2]), simplified(fine[:3], fine[:3] ** 3)]
    return found


@question
def look_ups_of_cuts() -> Any:
    found: list[Any] = []
    for target in TARGETS:
        for segments in SEGMENTS:
            one = calibrant.threshold(SMALL.y, SMALL.scores, **target, **segments)
            if one.is_proved:
                table = decision_columns(one, None, "")
                found += [list(table.table.values()), table.partition.n_regions]
    return found
