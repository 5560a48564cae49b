"""How groups count in a region.

In a region a group has S rows, T of them positive. It counts there with weight w, and the limits
are for E[w T / S] / E[w] over the groups with rows in the region:

- "rows": w = min(S, M), the rate among rows, where a group counts as at most M rows in a region;
- "groups": w = S over the total number of rows of the group, the rate of a random row from a
  random group.
"""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.cells.units import Counting
from calibrant.params.bounds import GROUP_TARGET
from calibrant.params.declared_state import Saved
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.rules import Flag, Integer
from calibrant.params.state_kinds import Lists, OneCount


@dataclass(frozen=True, slots=True)
class GroupDesign(Saved):
    """How groups count.

    Attributes
    ----------
    max_size : int
        M: the largest number of rows that a group counts as in a region. Fixed before the counted
        groups are seen.
    target : {"rows", "groups"}
        Whether every row or every group counts equally.
    aside : int
        Number of groups that were set aside and are not counted.
    unproved : tuple of int
        Regions for which nothing is proved, because no group set aside has rows in their segment.
    max_weight : float or None
        If rows have importance weights: the largest weight of a group in a region. Not saved,
        because the limits are saved.
    fixed : bool
        Whether the regions were given, and so not cut by groups set aside.
    order : int
        The seed of the random order of bets, which also depends on the counted groups.
    """

    _entries: ClassVar[EntryTable] = {
        "max_size": Integer(1),
        "target": GROUP_TARGET,
        "aside": OneCount(),
        "unproved": Entry(Lists(OneCount()), absent=()),
        "fixed": Entry(Flag(), absent=False),
        "order": Entry(OneCount(), absent=0),
    }

    max_size: int
    target: str = "rows"
    aside: int = 0
    unproved: tuple[int, ...] = ()
    max_weight: float | None = None
    fixed: bool = False
    order: int = 0

    @property
    def counting(self) -> Counting:
        """By how much a group counts in a region."""
        if self.target == "groups":
            return Counting(1.0, by_group=True)
        return Counting(float(self.max_size) if self.max_weight is None else self.max_weight)
