"""The factor by which odds change under label shift, from labelled and unlabelled scores, by bets.

With k = (target odds of the positive class) / (its source odds), let (S, Y) be a labelled row, T an
unlabelled score of the target and g any function with values in [0, 1]. If scores given the label have
one distribution in both populations, the means of g(S) weighted by k Y + 1 - Y and of g(T) agree:

    E[(k Y + 1 - Y) (g(S) - g(T))] = 0

This holds for one number, k: the shares of positives in the two populations, which share the errors of
the labels, do not occur on their own. A unit has a few rows of each kind, none of which is in another
unit. Its mean of (k Y + 1 - Y) (g(S) - mean of g over its target rows), with g and the stake from
earlier units alone, has mean zero given the past. So the capital of bets on it is a nonnegative
martingale, and by Ville's inequality it ever reaches 1/tail with probability at most `tail`.

*The lattice.* Let c = k / (1 + k). For a fixed stake the logarithm of the capital is concave in c. So
if the ends of a cell of c play one stake, and both reach the goal at the end of one block, every c
in the cell has reached it. The lattice is fixed by the number of units.

*The function.* The estimate of k varies least if g is the posterior probability of the positive class
in the target (the score function of the mixture is linear in it). It is learned in cells of the
score, which the pilot units fix; these are not bet on.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import ndtri

from calibrant._typing import BoolArray, CodeArray, FloatArray, IntArray
from calibrant.shift.prior import odds_ratio, share_of

_ROWS_PER_UNIT = 16  # at most: averages waste less of the pairing, and few units make few bets
_UNITS_PER_ROOT = 30
_PILOT_SHARE = 0.05
_FEWEST_PILOT_ROWS = 50
_SCORE_CELLS = 20
_LABELS_ADDED = 2.0  # of each class, spread over the cells like all pilot rows
_STEPS = 30  # of expectation and maximisation
_GROWTH = 16  # a block is this part of the units before it, and of those that are left
_FINENESS = 40.0  # lattice cells per root of the number of units
_AT_ONCE = 64
_MOST_STAKED = 0.9
_NEAR_THE_GOAL = 0.04  # aims a little beyond the goal, near which the best stake fades
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """The units of one block: means of Y (g(S) - g(T)) and of (1 - Y) (g(S) - g(T)), and the range of
    g.
    """

    positive: FloatArray
    negative: FloatArray
    reach: float


def odds_factor_limits(
    scores: FloatArray,
    codes: CodeArray,
    target_scores: FloatArray,
    tail: float,
    start: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Limits on k, each of which fails with probability at most `tail`.

    `start` holds limits at which the search begins, whose error probability is accounted for
    elsewhere. `rng` draws the order of the rows.
    """
    blocks = _blocks(scores, codes, target_scores, rng)
    n_units = sum(block.positive.size for block in blocks)
    if len(blocks) < 2:
        return start
    n_cells = math.ceil(_FINENESS * math.sqrt(n_units))
    points = np.sin(np.linspace(0.0, math.pi / 2.0, n_cells + 1)) ** 2
    points[-1] = 1.0
    low, high = map(share_of, start)
    # the cell that holds the start is tried, too: the truth may be in the rest of it
    first = min(int(np.searchsorted(points, low, side="right")) - 1, n_cells - 1)
    passed = _ruled_out_in_a_row(blocks, points, np.arange(first, n_cells), tail, sign=-1.0)
    if passed:
        low = float(points[first + passed])
    last = max(int(np.searchsorted(points, high)), 1)
    passed = _ruled_out_in_a_row(blocks, points, np.arange(last - 1, -1, -1), tail, sign=1.0)
    if passed:
        high = float(points[last - passed])
    return odds_ratio(low, 0.5), odds_ratio(high, 0.5)


def _ruled_out_in_a_row(
    blocks: list[_Block], points: FloatArray, cells: IntArray, tail: float, sign: float
) -> int:
    """How many of these cells are ruled out before the first that is not."""
    passed = 0
    for start in range(0, cells.size, _AT_ONCE):
        some = cells[start : start + _AT_ONCE]
        out = _ruled_out(blocks, points[some], points[some + 1], tail, sign)
        passed += some.size if out.all() else int(np.argmin(out))
        if not out.all():
            break
    return passed


def _ruled_out(
    blocks: list[_Block], left: FloatArray, right: FloatArray, tail: float, sign: float
) -> BoolArray:
    """Whether every c between `left` and `right` is ruled out.

    `sign` is -1 for bets that the mean is negative, as it is at values of c that are too small.
    """
    pilot, *others = blocks
    goal = math.log(1.0 / tail) * (1.0 + _ROUNDING)
    shares = np.stack([left, right])
    logs = np.zeros(shares.shape)
    out = np.zeros(left.size, dtype=bool)
    largest = np.maximum(shares, 1.0 - shares).max(axis=0)
    units_left = sum(block.positive.size for block in others)
    seen = pilot.positive.size
    squares = _squares(pilot)
    for block in others:
        spread = np.array([left * left, 2.0 * left * (1.0 - left), (1.0 - left) ** 2]).T @ squares
        distance = np.maximum(goal - logs.min(axis=0) + _NEAR_THE_GOAL, 1e-3)
        quantile = ndtri(np.exp(-distance))
        density = np.exp(-0.5 * quantile * quantile + distance) / math.sqrt(2.0 * math.pi)
        stake = density / np.sqrt((spread / seen + 1e-9) * units_left)
        stake = np.where(out, 0.0, np.minimum(stake, _MOST_STAKED / (largest * block.reach)))
        for end, share in enumerate(shares):
            means = np.outer(block.positive, share) + np.outer(block.negative, 1.0 - share)
            logs[end] += np.log1p(sign * stake * means).sum(axis=0)
        out |= logs.min(axis=0) >= goal
        squares += _squares(block)
        seen += block.positive.size
        units_left -= block.positive.size
    return out


def _squares(block: _Block) -> FloatArray:
    """Sums of squares and products of both means, from which the variance at any c follows."""
    positive = block.positive
    negative = block.negative
    return np.array([positive @ positive, positive @ negative, negative @ negative])


def _blocks(
    scores: FloatArray, codes: CodeArray, target_scores: FloatArray, rng: np.random.Generator
) -> list[_Block]:
    """The units in blocks; the first block holds the pilot units."""
    order = rng.permutation(scores.size)
    moved = target_scores[rng.permutation(target_scores.size)]
    scores, codes = scores[order], codes[order]
    smaller = min(scores.size, moved.size)
    per_unit = min(max(1.0, math.sqrt(smaller) / _UNITS_PER_ROOT), _ROWS_PER_UNIT)
    n_units = int(smaller / per_unit)
    ends = _ends(n_units, math.ceil(max(_PILOT_SHARE * n_units, _FEWEST_PILOT_ROWS / per_unit)))
    unit_of_row, unit_of_moved = (
        (np.arange(part.size) * n_units) // part.size for part in (scores, moved)
    )
    rows = np.searchsorted(unit_of_row, ends)
    moved_rows = np.searchsorted(unit_of_moved, ends)
    pilot = np.concatenate([scores[: rows[1]], moved[: moved_rows[1]]])
    ranks = np.linspace(0.0, 1.0, _SCORE_CELLS + 1)[1:-1]
    edges = np.unique(np.quantile(pilot, ranks, method="higher"))
    cells, moved_cells = (np.searchsorted(edges, part, side="right") for part in (scores, moved))
    found = []
    for place, (first, last) in enumerate(pairwise(ends)):
        before = rows[max(place, 1)]
        guess = _posterior(
            cells[:before], codes[:before], moved_cells[: moved_rows[max(place, 1)]], edges.size + 1
        )
        mine = slice(rows[place], rows[place + 1])
        others = slice(moved_rows[place], moved_rows[place + 1])
        units = last - first
        unit = unit_of_row[mine] - first
        of_moved = unit_of_moved[others] - first
        mean = np.bincount(of_moved, guess[moved_cells[others]], units) / np.bincount(of_moved)
        surplus = guess[cells[mine]] - mean[unit]
        counts = np.bincount(unit)
        positive = np.bincount(unit, surplus * codes[mine], units) / counts
        negative = np.bincount(unit, surplus, units) / counts - positive
        found.append(_Block(positive, negative, max(float(np.ptp(guess)), 1e-9)))
    return found


def _ends(n_units: int, n_pilot: int) -> list[int]:
    """Where blocks begin and end: first the pilot, then short blocks at the start and at the end."""
    ends = [0, min(n_pilot, n_units)]
    while (left := n_units - ends[-1]) > 0:
        ends.append(ends[-1] + max(1, min(ends[-1], left) // _GROWTH))
    return ends


def _posterior(
    cells: IntArray, codes: CodeArray, moved_cells: IntArray, n_cells: int
) -> FloatArray:
    """The share of positives in each cell of the target, for the share of positives overall that
    makes its scores most likely.
    """
    ones = np.bincount(cells, codes, n_cells)
    every = np.bincount(cells, minlength=n_cells).astype(np.float64)
    spread = (every + 1.0) / (every.sum() + n_cells)
    of_one, of_zero = (
        (counts + _LABELS_ADDED * spread) / (counts.sum() + _LABELS_ADDED)
        for counts in (ones, every - ones)
    )
    moved = np.bincount(moved_cells, minlength=n_cells)
    share = 0.5
    for _ in range(_STEPS):
        posterior = share * of_one / (share * of_one + (1.0 - share) * of_zero)
        share = float(moved @ posterior + 0.5) / (moved_cells.size + 1.0)
    return np.asarray(share * of_one / (share * of_one + (1.0 - share) * of_zero))
