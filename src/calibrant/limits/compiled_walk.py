"""The betting walk, compiled: one sample and one candidate at a time. Importing this module imports
numba.

It does what `calibrant.limits.bet_walk` does with arrays, in the same order of operations. It stops
betting against a candidate once the goal is reached, and leaves a sample at the first candidate
that is not ruled out.
"""

import math

import numpy as np
from numba import njit
from scipy.special import ndtri_exp

from calibrant._typing import FloatArray, IndexArray

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_NEAREST = 1e-12  # lower bound on the distance to the goal when a stake is chosen
# Coefficients of the rational approximations to the normal quantile function (Wichura 1988,
# algorithm AS 241), highest power first.
_MIDDLE_TOP = (
    2.5090809287301226727e3,
    3.3430575583588128105e4,
    6.7265770927008700853e4,
    4.5921953931549871457e4,
    1.3731693765509461125e4,
    1.9715909503065514427e3,
    1.3314166789178437745e2,
    3.3871328727963666080e0,
)
_MIDDLE_BOTTOM = (
    5.2264952788528545610e3,
    2.8729085735721942674e4,
    3.9307895800092710610e4,
    2.1213794301586595867e4,
    5.3941960214247511077e3,
    6.8718700749205790830e2,
    4.2313330701600911252e1,
    1.0,
)
_TAIL_TOP = (
    7.74545014278341407640e-4,
    2.27238449892691845833e-2,
    2.41780725177450611770e-1,
    1.27045825245236838258e0,
    3.64784832476320460504e0,
    5.76949722146069140550e0,
    4.63033784615654529590e0,
    1.42343711074968357734e0,
)
_TAIL_BOTTOM = (
    1.05075007164441684324e-9,
    5.47593808499534494600e-4,
    1.51986665636164571966e-2,
    1.48103976427480074590e-1,
    6.89767334985100004550e-1,
    1.67638483018380384940e0,
    2.05319162663775882187e0,
    1.0,
)
_FAR_TOP = (
    2.01033439929228813265e-7,
    2.71155556874348757815e-5,
    1.24266094738807843860e-3,
    2.65321895265761230930e-2,
    2.96560571828504891230e-1,
    1.78482653991729133580e0,
    5.46378491116411436990e0,
    6.65790464350110377720e0,
)
_FAR_BOTTOM = (
    2.04426310338993978564e-15,
    1.42151175831644588870e-7,
    1.84631831751005468180e-5,
    7.86869131145613259100e-4,
    1.48753612908506148525e-2,
    1.36929880922735805310e-1,
    5.99832206555887937690e-1,
    1.0,
)
_MIDDLE = 0.425
_LOG_TAIL = math.log(0.5 - _MIDDLE)
_NEAR = 5.0
# A table replaces these approximations where the distance to the goal is between powers of 2. The
# first 16 bits of a double are its sign, its exponent, and 4 more: 16 cells for each power of 2.
_FIRST = 2.0**-16
_LAST = 2.0**9
_CELLS = 16
_BITS = 48  # those that tell the place in a cell
_FIRST_CELL = (1023 - 16) * _CELLS
_POWERS = 8


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _ratio(top: tuple[float, ...], bottom: tuple[float, ...], x: float) -> float:
    above = 0.0
    below = 0.0
    for power in range(8):
        above = above * x + top[power]
        below = below * x + bottom[power]
    return above / below


@njit(nogil=True, cache=True, error_model="numpy")
def quantile_of_log(log_share: float) -> float:
    """The normal quantile, up to its sign, for the logarithm of a probability."""
    log_tail = log_share
    if log_share > _LOG_TAIL:
        middle = math.exp(log_share) - 0.5
        if middle <= _MIDDLE:
            return middle * _ratio(_MIDDLE_TOP, _MIDDLE_BOTTOM, _MIDDLE * _MIDDLE - middle * middle)
        log_tail = math.log(-math.expm1(log_share))
    root = math.sqrt(-log_tail)
    if root <= _NEAR:
        return _ratio(_TAIL_TOP, _TAIL_BOTTOM, root - 1.6)
    return _ratio(_FAR_TOP, _FAR_BOTTOM, root - _NEAR)


@njit(nogil=True, cache=True, error_model="numpy")
def _boldness(short: float) -> float:
    """phi(Phi^-1(x)) / x at x = exp(-short)."""
    quantile = quantile_of_log(-short)
    return math.exp(short - 0.5 * quantile * quantile - _LOG_SQRT_2PI)


def _boldness_table() -> FloatArray:
    """Polynomials for `_boldness` in cells from -1 to 1, lowest power first.

    They are interpolated at Chebyshev's points, with a relative error below 1e-13.
    """
    nodes = np.cos(math.pi * (np.arange(_POWERS) + 0.5) / _POWERS)
    inverse = np.linalg.inv(np.vander(nodes, increasing=True))
    n_octaves = round(math.log2(_LAST / _FIRST))
    scale = np.repeat(_FIRST * 2.0 ** np.arange(n_octaves), _CELLS)
    cell = np.tile(np.arange(_CELLS), n_octaves)
    short = scale[:, None] * (1.0 + (cell[:, None] + (nodes + 1.0) / 2.0) / _CELLS)
    quantile = ndtri_exp(-short)
    return np.asarray(np.exp(short - 0.5 * quantile**2 - _LOG_SQRT_2PI) @ inverse.T)


_BOLDNESS = _boldness_table()


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _pair(cell: int, power: int, x: float) -> float:
    return float(_BOLDNESS[cell, power] + _BOLDNESS[cell, power + 1] * x)


@njit(nogil=True, cache=True, error_model="numpy")
def boldness(short: float) -> float:
    """phi(Phi^-1(x)) / x at x = exp(-short): the stake is this times the pace."""
    if short < _FIRST or short >= _LAST:
        return _boldness(short)
    bits = np.float64(short).view(np.int64)
    cell = int((bits >> _BITS) - _FIRST_CELL)
    x = (bits & ((1 << _BITS) - 1)) * 2.0 ** (1 - _BITS) - 1.0
    # pairs of powers, which a processor can work on side by side
    square = x * x
    low = _pair(cell, 0, x) + _pair(cell, 2, x) * square
    high = _pair(cell, 4, x) + _pair(cell, 6, x) * square
    return float(low + high * (square * square))


@njit(nogil=True, cache=True, error_model="numpy")
def _early_gain(
    moments: FloatArray, block: int, smallest: float, heaviest: float, mean: float, stake: float
) -> float:
    """The gain in log capital from an early block, rounded down; see `bet_walk`."""
    m = moments
    b = block
    square = mean * mean
    if moments.shape[1] == 5:  # all weights are 1
        about_1 = m[b, 1] - mean * m[b, 0]
        about_2 = m[b, 2] - 2.0 * mean * m[b, 1] + square * m[b, 0]
        about_3 = m[b, 3] - 3.0 * mean * m[b, 2] + 3.0 * square * m[b, 1]
        about_3 -= square * mean * m[b, 0]
        about_4 = m[b, 4] - 4.0 * mean * m[b, 3] + 6.0 * square * m[b, 2]
        about_4 += square * (square * m[b, 0] - 4.0 * mean * m[b, 1])
    else:  # sums of w^p (z - low)^k are in the order of `block_bets.MOMENTS`
        about_1 = m[b, 2] - mean * m[b, 1]
        about_2 = m[b, 5] - 2.0 * mean * m[b, 4] + square * m[b, 3]
        about_3 = m[b, 9] - 3.0 * mean * m[b, 8] + 3.0 * square * m[b, 7]
        about_3 -= square * mean * m[b, 6]
        about_4 = m[b, 14] - 4.0 * mean * m[b, 13] + 6.0 * square * m[b, 12]
        about_4 += square * (square * m[b, 10] - 4.0 * mean * m[b, 11])
    worst = heaviest * max(mean - smallest, 0.0)
    gain = about_4 * (stake / (-4.0 * (1.0 - stake * worst)))
    gain = (gain + about_3 * (1.0 / 3.0)) * stake
    gain = (gain - 0.5 * about_2) * stake
    return float((gain + about_1) * stake)


@njit(nogil=True, cache=True, error_model="numpy")
def _late_factor(
    draws: FloatArray, weights: FloatArray, begin: int, end: int, mean: float, stake: float
) -> float:
    """What a late block multiplies the capital by; a weight of 0 means no draw."""
    factor = 1.0
    for row in range(begin, end):
        factor *= 1.0 + stake * (draws[row] - mean) * weights[row]
    return factor


@njit(nogil=True, cache=True, error_model="numpy")
def _is_ruled_out(
    early: tuple[FloatArray, FloatArray, FloatArray],
    late: tuple[FloatArray, FloatArray, IndexArray],
    pace: FloatArray,
    mean: float,
    width: float,
    goal: float,
    most_lost: float,
    stakes: FloatArray,
) -> bool:
    """Bet against one mean of one sample; write the stakes into `stakes`."""
    moments, smallest, heaviest = early
    draws, weights, ends = late
    n_blocks = moments.shape[0]
    missing = goal
    most = most_lost / mean
    most_early = min(most, 1.0 / max(width - mean, 1e-300))
    for number in range(stakes.size):
        is_early = number < n_blocks
        short = max(missing, _NEAREST)
        stake = min(boldness(short) * pace[number], most_early if is_early else most)
        stakes[number] = stake
        if is_early:
            missing -= _early_gain(moments, number, smallest[number], heaviest[number], mean, stake)
        else:
            block = number - n_blocks
            missing -= math.log(
                _late_factor(draws, weights, ends[block], ends[block + 1], mean, stake)
            )
        if missing <= 0.0:
            return True
    return False


@njit(nogil=True, cache=True, error_model="numpy")
def _reaches(
    early: tuple[FloatArray, FloatArray, FloatArray],
    late: tuple[FloatArray, FloatArray, IndexArray],
    mean: float,
    goal: float,
    stakes: FloatArray,
) -> bool:
    """Whether bets with the given stakes against a mean of one sample reach the goal."""
    moments, smallest, heaviest = early
    draws, weights, ends = late
    n_blocks = moments.shape[0]
    gained = 0.0
    for number in range(n_blocks):
        gained += _early_gain(
            moments, number, smallest[number], heaviest[number], mean, stakes[number]
        )
        if gained >= goal:
            return True
    capital = 1.0
    wanted = math.exp(goal - gained)
    for block in range(ends.size - 1):
        stake = stakes[n_blocks + block]
        capital *= _late_factor(draws, weights, ends[block], ends[block + 1], mean, stake)
        if capital >= wanted:
            return True
    return False


@njit(nogil=True, cache=True, error_model="numpy")
def plain_moments(
    moments: FloatArray, draws: FloatArray, weights: FloatArray, ends: IndexArray
) -> FloatArray:
    """The moments of early and late blocks by sample, of shape (n_samples, n_steps, 5), if all
    weights are 1.

    `moments` are those of `bet_walk.Bets`; draws and weights have shape (n_samples, n_draws).
    """
    n_moments, n_blocks, n_samples = moments.shape
    found = np.zeros((n_samples, n_blocks + ends.size - 1, n_moments))
    for sample in range(n_samples):
        for block in range(n_blocks):
            for k in range(n_moments):
                found[sample, block, k] = moments[k, block, sample]
        for block in range(ends.size - 1):
            step = n_blocks + block
            # numpy adds the first draw of a block last
            for row in range(ends[block] + 1, ends[block + 1]):
                _add_powers(found, sample, step, draws[sample, row], weights[sample, row])
            row = ends[block]
            _add_powers(found, sample, step, draws[sample, row], weights[sample, row])
    return found


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _add_powers(found: FloatArray, sample: int, step: int, draw: float, weight: float) -> None:
    """Add the powers of a draw from 0 to 4; a weight of 0 means no draw."""
    power = weight
    for k in range(found.shape[2]):
        found[sample, step, k] += power
        power *= draw


@njit(nogil=True, cache=True, error_model="numpy")
def plain_paces(moments: FloatArray, guess: FloatArray, guess_draws: FloatArray) -> FloatArray:
    """The pace of each sample and step, as in `bet_walk`, from the moments of `plain_moments`."""
    n_samples, n_steps, _ = moments.shape
    found = np.empty((n_samples, n_steps))
    for s in range(n_samples):
        n_draws = 0.0
        for step in range(n_steps):
            n_draws += moments[s, step, 0]
        before = 0.0
        sums = 0.0
        squares = 0.0
        for step in range(n_steps):
            mean = sums / (before if before > 0.0 else 1.0)
            spread = max(squares - 2.0 * mean * sums + mean * mean * before, 0.0)
            variance = (guess_draws[s] * guess[s] + spread) / (guess_draws[s] + before)
            found[s, step] = 1.0 / math.sqrt(variance * max(n_draws - before, 1.0))
            before += moments[s, step, 0]
            sums += moments[s, step, 1]
            squares += moments[s, step, 2]
    return found


@njit(nogil=True, cache=True, error_model="numpy")
def lower_limits(
    moments: FloatArray,
    smallest: FloatArray,
    heaviest: FloatArray,
    draws: FloatArray,
    weights: FloatArray,
    pace: FloatArray,
    ends: IndexArray,
    width: FloatArray,
    start: FloatArray,
    step: FloatArray,
    goal: FloatArray,
    most_lost: float,
    bisections: int,
) -> FloatArray:
    """The lower limit of each sample that has draws, minus the lower end of its range.

    The arrays are those of `block_bets.Bets` and of their walk, with samples first: moments of shape
    (n_samples, n_blocks, 15) or (n_samples, n_blocks, 5), draws and weights of shape (n_samples,
    n_draws), pace of shape (n_samples, n_steps).
    """
    limits = start.copy()
    stakes = np.zeros(pace.shape[1])
    for sample in range(start.size):
        early = (moments[sample], smallest[sample], heaviest[sample])
        late = (draws[sample], weights[sample], ends)
        target = goal[sample]
        reach = width[sample]
        number = math.floor(start[sample] / step[sample]) + 1.0
        while limits[sample] < reach:
            mean = number * step[sample]
            stakes[:] = 0.0
            if _is_ruled_out(early, late, pace[sample], mean, reach, target, most_lost, stakes):
                limits[sample] = mean
                number += 1.0
                continue
            ruled_out = limits[sample]
            kept = mean
            for _ in range(bisections):
                middle = (ruled_out + kept) / 2.0
                if _reaches(early, late, middle, target, stakes):
                    ruled_out = middle
                else:
                    kept = middle
            limits[sample] = ruled_out
            break
    return limits
