"""Curves made by hand: pieces that jump and fall; look-ups of cuts."""

from typing import Any

import numpy as np

import calibrant
from calibrant import Partition, Tally
from calibrant.assess.threshold.proved_threshold import decision_columns
from calibrant.calibrators.curve.fine_cells import Averages, Grid
from calibrant.calibrators.curve.pieces import Pieces, interpolate, simplified
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.segmented_partition import SegmentedPartition
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
CELLS = Partition.from_edges(np.linspace(0.05, 0.95, 19))
ROWS = np.where(np.arange(20) % 3 == 0, 0, np.arange(20))


def _jumping(values: Any, jump: float) -> Pieces:
    """A curve through knots whose pieces begin higher than the one before has ended."""
    smooth = Pieces.through(REGIONS, [KNOTS], [values])
    left = np.clip(smooth.left + jump * np.arange(smooth.left.size) / 10.0, 0.0, 1.0)
    return Pieces(smooth.cells, left, smooth.right)


def _of_pieces(curve: Pieces) -> list[Any]:
    grid = Grid(CELLS, Tally(ROWS, ROWS // 2))
    averages = Averages.over(curve, grid, REGIONS)
    return [
        curve.left,
        curve.right,
        curve.table[1:-1],
        curve.falling_segments,
        curve.falls,
        curve.regions(REGIONS),
        curve.variation(REGIONS),
        curve.range(REGIONS),
        averages.ends(curve),
        averages.steps(*averages.ends(curve)),
        averages.of(curve),
        averages.mean()(curve.left, curve.right),
        averages.sums(ROWS),
    ]


for _name, _values in SHAPES.items():
    for _jump in (0.0, 0.4):

        def pieces(values: Any = _values, jump: float = _jump) -> Any:
            return _of_pieces(_jumping(values, jump))

        QUESTIONS[f"pieces {_name} {_jump:g}"] = pieces


def _of_grid(grid: Grid, regions: Any) -> list[Any]:
    finite = np.isfinite(grid.begin) & np.isfinite(grid.end)
    return [
        grid.begin[finite],
        grid.end[finite],
        grid.segment,
        grid.middle,
        grid.regions(regions),
        [grid.knots(number) for number in range(len(grid.cells.parts))],
        [grid.distinct(grid.segment == number) for number in range(len(grid.cells.parts))],
    ]


@question
def grids_of_cells() -> Any:
    """Cells of one value, gaps, cells without rows, and a segment without any."""
    values = np.array([0.2, 0.5, 0.8])
    cuts = np.sort(np.concatenate([values, np.nextafter(values, 1.0), [0.35, 0.65]]))
    cells = ScorePartition(cuts)
    found: list[Any] = []
    for rows in ([0, 3, 0, 2, 1, 0, 0, 4, 0], [5, 0, 1, 0, 0, 2, 2, 0, 3], [0] * 9):
        counts = np.array(rows)
        found += [_of_grid(Grid(cells, Tally(counts, counts // 2)), REGIONS)]
    parts = SegmentedPartition({"north": cells, "south": cells, "east": cells})
    both = np.array([0, 3, 0, 2, 1, 0, 0, 4, 0] + [0] * 9 + [1] * 9)
    regions = SegmentedPartition({"north": REGIONS, "south": REGIONS, "east": REGIONS})
    return [*found, _of_grid(Grid(parts, Tally(both, both // 2)), regions)]


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
