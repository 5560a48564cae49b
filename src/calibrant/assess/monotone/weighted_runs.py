"""Limits for the rates of runs of rows with importance weights, by bets on single rows."""

from collections.abc import Sequence

import numpy as np

from calibrant._typing import CodeArray, FloatArray, IntArray
from calibrant.limits.bet_limits import bet_limits
from calibrant.limits.bet_units import BetUnits, Draws
from calibrant.limits.interval import Interval

_BESIDE = 40  # rows on each side of a run that sharpen its bets
_AT_ONCE = 64  # runs that are bet on together, because they overlap


def weighted_limits(
    codes: CodeArray,
    weights: FloatArray,
    starts: IntArray,
    stops: IntArray,
    tail: float,
    generator: np.random.Generator,
) -> Interval:
    """A lower limit on the largest weighted rate in each run, and an upper limit on the smallest.

    Each misses with probability at most `tail`, given the scores.

    Parameters
    ----------
    codes : int array of shape (n,)
        Labels, 0 or 1, in the order of the scores.
    weights : float array of shape (n,)
        Weights over their bound, in [0, 1].
    starts, stops : int arrays
        Where each run begins, and where it ends. They depend on the scores alone.
    tail : float in (0, 1)
        Largest probability that each limit misses.
    generator : Generator
        What draws the order of bets; it depends on neither labels nor weights.

    Notes
    -----
    Let r(s) = E[w Y | s] / E[w | s] be the rate of the weighted population at the score s. Given
    all scores, the pairs (w, Y) of different rows are independent; a weight may depend on its own
    label. For m at least the largest r of a run, each of its rows has E[w (Y - m) | s] = E[w | s]
    (r(s) - m) <= 0. So the capital of bets that labels exceed m, with stakes that are known before
    each row, is a nonnegative supermartingale, and ever reaches 1 / tail with probability at most
    `tail` (Ville). By the argument of `calibrant.limits.bet_limits` the limit exceeds the largest r
    only if that number itself was ruled out. The upper limit follows by symmetry.

    Rows next to the run sharpen the bets. Given the scores they are independent of those in it, so
    the stakes do not depend on the rows they are placed on. Rows of weight 0 are left out: E[w (Y -
    m) | s] has the same sign among the others.

    Rows that are kept with probability w / bound would be n E[w] draws with exact limits (w over
    its bound). Bets are worth about n E[w]^2 / E[w^2] draws, which is never less.
    """
    outcomes = codes.astype(np.float64)
    runs: list[tuple[FloatArray, FloatArray]] = []
    pilot: list[tuple[FloatArray, FloatArray]] = []
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        beside = np.r_[max(0, start - _BESIDE) : start, stop : min(stop + _BESIDE, codes.size)]
        for found, rows in ((runs, np.arange(start, stop)), (pilot, beside)):
            rows = rows[weights[rows] > 0.0]
            found.append((outcomes[rows], weights[rows]))
    return run_limits(runs, pilot, tail, generator)


def run_limits(
    runs: Sequence[tuple[FloatArray, FloatArray]],
    pilot: Sequence[tuple[FloatArray, FloatArray]],
    tail: float,
    generator: np.random.Generator,
) -> Interval:
    """Limits for each run, given the rates and weights of its units and of other units."""
    limits = []
    for first in range(0, len(runs), _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        zero = np.zeros(len(runs[some]))
        seen = _draws(pilot[some])
        units = BetUnits.of(_draws(runs[some]), zero, zero + 1.0, generator, seen)
        limits.append(bet_limits(units, zero + tail))
    return Interval(
        np.concatenate([found.lower for found in limits]),
        np.concatenate([found.upper for found in limits]),
    )


def _draws(runs: Sequence[tuple[FloatArray, FloatArray]]) -> Draws:
    region = np.repeat(np.arange(len(runs)), [rates.size for rates, _ in runs])
    rates, weights = (np.concatenate(column) for column in zip(*runs, strict=True))
    return Draws(region, rates, weights)
