"""One curve, fitted to all rows, with limits by Koksma's inequality, without bets.

For plain rows without pilot rows, or with another interval. Every curve is allowed, even one fitted
to the counted rows:

1. count the rows in fine cells of the score (`Grid`), and find the limits of the rates;
2. fit the curve to all rows (`fit_curves`), as a table of straight pieces (`Pieces`);
3. shift it into the limits on the rates where the data refute it (`shifted_into_limits`);
4. bound how far its averages can be off (`CurveProof.margin`).
"""

from collections.abc import Hashable

import numpy as np
from scipy.special import expit, logit

from calibrant._typing import FloatArray
from calibrant.calibrators.curve.curve_kinds import fit_curves, within_0_and_1
from calibrant.calibrators.curve.fine_cells import Averages, Grid
from calibrant.calibrators.curve.fitted_curve import CurveProof, FittedCurve, Parts
from calibrant.calibrators.curve.pieces import Pieces, simplified
from calibrant.calibrators.regions.binned_rows import Binned
from calibrant.calibrators.score_calibrator import ScoreCalibrator
from calibrant.cells.bins import Bins
from calibrant.cells.tally import Tally
from calibrant.limits.interval import Interval

_FEW_ROWS = 500  # a segment with fewer rows gets the curve of all rows
_BISECTIONS = 40
_LARGEST_SHIFT = 64.0  # on the logit scale


def fit_to_all_rows(
    binned: Binned, proof: CurveProof, kind: str | ScoreCalibrator
) -> tuple[FittedCurve, Interval]:
    """Fit a curve of a kind, and return it with limits on the rates."""
    regions = binned.partition.as_bins()
    tally = binned.tally
    grid = Grid.count(binned.rows, regions, _sizes(regions, tally))
    with np.errstate(all="ignore"):
        # every curve is allowed: it may use all rows
        same = binned.rows is binned.whole
        whole = grid if same else Grid.over(binned.whole, grid.cells)
        limits = proof.rates()
        name, curve = _fitted(kind, whole, grid, regions)
        moved = shifted_into_limits(curve, Averages.over(curve, grid, regions), regions, limits)
        averages = Averages.over(moved, grid, regions).of(moved)
        margin = proof.margin(moved, grid, averages, limits)
        one = np.ones(margin.size)
    shifted = (moved.left != curve.left) | (moved.right != curve.right)
    n_shifted = np.unique(curve.regions(regions)[shifted]).size
    return FittedCurve(name, moved, *averages, n_shifted, Parts(margin, -one, one)), limits


def _fitted(
    kind: str | ScoreCalibrator, whole: Grid, grid: Grid, regions: Bins
) -> tuple[str, Pieces]:
    """The curve of each segment; one with few rows gets the curve of all rows.

    `whole` includes rows that only cut.
    """
    everything = np.ones(grid.rows.size, dtype=bool)
    chosen = [everything]
    used = []  # the fitted curve of each segment
    for number in range(len(regions.parts)):
        here = grid.segment == number
        own = len(regions.parts) > 1 and whole.rows[here].sum() >= _FEW_ROWS
        used.append(len(chosen) if own else 0)
        if own:
            chosen.append(here)
    data = [whole.distinct(cells) for cells in chosen]
    fitted = fit_curves(kind, data, are_probabilities=within_0_and_1(data[0].scores))
    kept = []
    for number, curve in enumerate(used):
        x = grid.knots(number)
        # nothing is known about a segment without rows
        seen = grid.rows[grid.segment == number].any()
        y = fitted[curve][1](x) if seen else np.full(1, 0.5)
        kept.append(simplified(x, _monotone(y) if isinstance(kind, str) else y))
    name, _ = fitted[0]
    return name, Pieces.through(regions, [x for x, _ in kept], [y for _, y in kept])


def _monotone(values: FloatArray) -> FloatArray:
    """Values of a monotone curve, without steps in the other direction caused by rounding."""
    way = np.minimum if values[0] > values[-1] else np.maximum
    return np.asarray(way.accumulate(values))


def _sizes(regions: Bins, tally: Tally) -> dict[Hashable, int]:
    """Number of rows in each segment."""
    within = np.bincount(
        regions.layout.cells.segment, tally.counts, minlength=len(regions.parts)
    ).astype(np.int64)
    named = zip(regions.bins_by_segment.items(), within.tolist(), strict=True)
    return {name: rows if part.n_rows is None else part.n_rows for (name, part), rows in named}


def shifted_into_limits(
    curve: Pieces, averages: Averages, regions: Bins, limits: Interval
) -> Pieces:
    """Shift the curve on the logit scale, in each region where its average leaves the limits, until
    it does not.
    """
    found, _ = averages.of(curve)
    target = np.clip(found, limits.lower, limits.upper)
    if (target == found).all():
        return curve
    piece = curve.regions(regions)
    straight = curve.is_straight
    ends = [(values, logit(values)) for values in (curve.left, curve.right)]
    mean = averages.mean()

    def shifted(shift: FloatArray) -> tuple[FloatArray, FloatArray]:
        by = shift[piece]
        left, right = (np.where(by != 0.0, expit(at + by), before) for before, at in ends)
        return left, np.where(straight, right, left)

    rising = found < target
    moves = found != target
    low = np.where(moves & ~rising, -_LARGEST_SHIFT, 0.0)
    high = np.where(moves & rising, _LARGEST_SHIFT, 0.0)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        above = mean(*shifted(middle)) >= target
        low = np.where(above, low, middle)
        high = np.where(above, middle, high)
    return Pieces(curve.cells, *shifted(np.where(rising, high, low)))
