"""Independent units in the form that bets need: sums over blocks, and the last units singly.

A unit has a weight w in [0, 1] and a value z in [0, 1]. Units are bet on one after another, in an
order that is drawn at random, independently of them. The last 64 units of a region have stakes of
their own; before them, blocks of a 32nd of the units left after them share one. A block is
described by sums of w^p z^k, over its units with z < 1/2 and over the others.

*Rows given as counts*: how many rows have each of the values that are possible in a region. Given
the counts of independent rows, all orders are equally likely. So an order that is drawn after
counting has the same distribution as the order in which the rows came, and bets may follow it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from typing import Self

import numpy as np

from calibrant._typing import FloatArray, IndexArray
from calibrant.cells.entries import Entries
from calibrant.errors import InvalidValueError

MOMENTS = tuple((p, k) for p in range(5) for k in range(p + 1))
"""Pairs (p, k) of the sums of w^p z^k, in the order in which they are kept."""
PLACE = {pair: number for number, pair in enumerate(MOMENTS)}
"""The place of each pair."""
_SINGLE = 64  # last units that have stakes of their own
_PART = 32  # a block holds one over this of the units left after it
_EXACT = 512  # about so many last units are kept singly
_MOST_SHUFFLED = 1 << 14  # equal units of a region that are put in order one by one
_MOST_LEFT = 1 << 12  # of a region with more, only so many of the last ones
_EARLY_PART = 16  # the others are in blocks of one over this of the units left: fast, little wider
_ROUNDING = 1e-9  # by which a value may leave its range, over the range


@dataclass(frozen=True, slots=True, eq=False)
class BetUnits:
    """Units of several regions, in the order of the bets; block 0 is bet on last.

    Attributes
    ----------
    moments : float array of shape (15, 2, n_blocks, n_regions)
        Sums of w^p z^k, for the pairs of `MOMENTS`, over the units of each block with z < 1/2, and
        over the others.
    heaviest : float array of shape (2, n_blocks, n_regions)
        Upper bounds on their weights.
    z, w : float arrays of shape (n_late, n_regions)
        The last units, by the number of units left after each; w is 0 where there is none.
    ends : int array of shape (n_late_blocks + 1,)
        Late block b holds the late units from ends[b] to ends[b + 1] - 1.
    low, high : float arrays of shape (n_regions,)
        The range of the values: z is 0 at `low` and 1 at `high`. Fixed without looking at the units.
    pilot : float array of shape (15, n_regions)
        Sums of w^p z^k over other units, which are not bet on. They sharpen stakes; bad ones never
        invalidate a limit.
    """

    moments: FloatArray
    heaviest: FloatArray
    z: FloatArray
    w: FloatArray
    ends: IndexArray
    low: FloatArray
    high: FloatArray
    pilot: FloatArray

    @classmethod
    def of(
        cls,
        entries: Entries,
        low: FloatArray,
        high: FloatArray,
        generator: np.random.Generator,
        pilot: Entries | None = None,
    ) -> Self:
        """Put units in a random order, drawn by a generator that is independent of them.

        A unit that left its range or had a weight above 1 would invalidate the limits, so that is
        an error; units of the pilot are moved into the range.
        """
        entries = _checked(_in_range(entries, low, high))
        of_pilot = np.zeros((len(MOMENTS), low.size))
        if pilot is not None:
            inside = _in_range(pilot, low, high)
            inside = replace(inside, value=np.clip(inside.value, 0.0, 1.0))
            of_pilot = _sums_by(inside.region, inside, low.size)
        early, single = _dealt(entries, generator)
        order = single[generator.permutation(single.size)]
        moments, heaviest, late, ends = _ordered(entries, order)
        of_early = np.stack(early, axis=2) if early else moments[:, :, :0]
        return cls(
            np.concatenate([moments, of_early], axis=2),
            np.concatenate([heaviest, np.ones(of_early.shape[1:])], axis=1),
            late[0],
            late[1],
            ends,
            low,
            high,
            of_pilot,
        )

    def beside(self, other: "BetUnits") -> "BetUnits":
        """These regions, followed by others. Neither have early blocks of equal units."""
        ends = max(self.ends, other.ends, key=len)
        sizes = {
            "moments": max(self.moments.shape[2], other.moments.shape[2]),
            "heaviest": max(self.heaviest.shape[1], other.heaviest.shape[1]),
            "z": ends[-1],
            "w": ends[-1],
        }
        joined = {}
        for name in ("moments", "heaviest", "z", "w", "low", "high", "pilot"):
            parts = [getattr(one, name) for one in (self, other)]
            if name in sizes:  # blocks that one of both does not have are empty
                parts = [_padded(part, sizes[name]) for part in parts]
            joined[name] = np.concatenate(parts, axis=-1)
        return replace(self, ends=ends, **joined)

    def part(self, some: slice) -> "BetUnits":
        """Some of the regions."""
        return replace(
            self,
            moments=self.moments[..., some],
            heaviest=self.heaviest[..., some],
            z=self.z[:, some],
            w=self.w[:, some],
            low=self.low[some],
            high=self.high[some],
            pilot=self.pilot[:, some],
        )


def _padded(values: FloatArray, size: int) -> FloatArray:
    """The values, with zeros at the end of the axis before the last one."""
    width = [(0, 0)] * values.ndim
    width[-2] = (0, size - values.shape[-2])
    return np.pad(values, width)


def _in_range(entries: Entries, low: FloatArray, high: FloatArray) -> Entries:
    """The same units, with values from 0 to 1: where they lie in the range of their region."""
    width = np.where(high > low, high - low, 1.0)
    return replace(entries, value=(entries.value - low[entries.region]) / width[entries.region])


def _checked(entries: Entries) -> Entries:
    """Units whose values and weights are from 0 to 1; values may be beyond by rounding."""
    z = entries.value
    if z.size and not (z.min() >= -_ROUNDING and z.max() <= 1.0 + _ROUNDING):
        raise InvalidValueError("values", "lie in their range", got="some outside, or NaN")
    w = None if entries.weight is None else entries.weight / entries.bound
    if w is not None and w.size and not (w.min() >= 0.0 and w.max() <= 1.0):
        raise InvalidValueError("weights", "be from 0 to their bound", got="others, or NaN")
    return replace(entries, value=np.clip(z, 0.0, 1.0), weight=w, bound=1.0)


def _ordered(
    units: Entries, order: IndexArray
) -> tuple[FloatArray, FloatArray, FloatArray, IndexArray]:
    """Single units in a random order, given by their entries: moments and heaviest weights of
    blocks, late units, and ends of late blocks.
    """
    n_regions = units.n_regions
    if n_regions > 1:
        small = units.region[order].astype(np.min_scalar_type(n_regions))
        order = order[np.argsort(small, kind="stable")]
    z = units.value[order]
    weight = None if units.weight is None else units.weight[order]
    n_units = np.bincount(units.region[order], minlength=n_regions)
    stop = np.cumsum(n_units)
    ends = block_ends(int(n_units.max(initial=1)))
    late_ends = ends[: np.searchsorted(ends, _EXACT) + 1]
    late = np.zeros((2, late_ends[-1], n_regions))
    region, left = np.nonzero(np.arange(late_ends[-1]) < n_units[:, None])
    unit = stop[region] - 1 - left
    late[0, left, region] = z[unit]
    late[1, left, region] = 1.0 if weight is None else weight[unit]
    moments = np.zeros((len(MOMENTS), 2, ends.size - 1, n_regions))
    heaviest = np.zeros(moments.shape[1:])
    # the blocks of each region, in the order of the bets
    region, later = np.nonzero(ends[-2::-1] < n_units[:, None])
    block = ends.size - 2 - later
    starts = stop[region] - np.minimum(ends[block + 1], n_units[region])

    def added(term: FloatArray) -> FloatArray:
        return np.add.reduceat(term, starts)  # pairwise, so that sums of 10^7 terms are precise

    if starts.size:
        for kind, chosen in enumerate((z < 0.5, z >= 0.5)):
            number = chosen.astype(np.float64)
            moments[:, kind, block, region] = _moments(z, weight, number, added)
            weighty = number if weight is None else weight * number
            heaviest[kind, block, region] = np.maximum.reduceat(weighty, starts)
    return moments, heaviest, late, late_ends


def _moments(
    z: FloatArray,
    weight: FloatArray | None,
    number: FloatArray,
    added: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """Sums of number w^p z^k for the pairs of `MOMENTS`; `added` adds up the terms of each cell."""
    if weight is None:
        terms = accumulate(range(4), lambda term, _: term * z, initial=number)
        sums = [added(term) for term in terms]
        return np.stack([sums[k] for _, k in MOMENTS])
    found = []
    for p in range(5):
        terms = accumulate(range(p), lambda term, _: term * z, initial=number)
        found += [added(term) for term in terms]
        number = number * weight
    return np.stack(found)


def _sums_by(cell: IndexArray, entries: Entries, n_cells: int) -> FloatArray:
    """Sums of w^p z^k over the units of each cell, an array of shape (15, n_cells)."""
    number = np.ones(cell.size) if entries.number is None else entries.number.astype(np.float64)

    def added(term: FloatArray) -> FloatArray:
        return np.bincount(cell, term, minlength=n_cells).astype(np.float64, copy=False)

    return _moments(entries.value, entries.weight, number, added)


def _dealt(entries: Entries, generator: np.random.Generator) -> tuple[list[FloatArray], IndexArray]:
    """Early blocks of regions with very many equal units, and the entries of the other units, one
    by one.

    Think of a uniform random time for each unit: a block holds the units whose times are in the
    next sixteenth of the time left. So the order is uniform, and the sizes of blocks are random but
    independent of the kinds of units: stakes may depend on them.
    """
    if entries.number is None:
        return [], np.arange(entries.region.size)
    region = entries.region
    n_regions = entries.n_regions
    left = entries.number
    n_units = np.bincount(region, left, minlength=n_regions)
    is_large = n_units > _MOST_SHUFFLED
    cell = region + n_regions * (entries.value >= 0.5)
    blocks = []
    while (more := is_large & (n_units > _MOST_LEFT)).any():
        chosen = np.flatnonzero(more[region])
        block = generator.binomial(left[chosen], 1.0 / _EARLY_PART)
        dealt = replace(entries.take(chosen), number=block)
        sums = _sums_by(cell[chosen], dealt, 2 * n_regions)
        blocks.append(sums.reshape(-1, 2, n_regions))
        left = left.copy()
        left[chosen] -= block
        n_units = np.bincount(region, left, minlength=n_regions)
    return blocks[::-1], np.repeat(np.arange(left.size), left)


@lru_cache(maxsize=64)
def block_ends(most: int) -> IndexArray:
    """Units left after the last unit of each block: 0, 1, ..., 64, then a 32nd more each.

    >>> block_ends(70)[[0, 1, 63, 64, 65, 66]]
    array([ 0,  1, 63, 64, 66, 68])
    """
    ends = list(range(min(most, _SINGLE) + 1))
    while ends[-1] < most:
        ends.append(ends[-1] + max(1, ends[-1] // _PART))
    return np.array(ends)
