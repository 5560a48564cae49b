"""Facts about how rows were read that a guarantee has to mention."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from calibrant.params.declared_state import Saved
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.rules import Flag, Integer
from calibrant.params.state_kinds import Label, Lists, OneCount
from calibrant.text.numbers import counted

_BY_ID = "rows were drawn by an id that is unique per row"
_ID_BY_SEED = (
    "rows were drawn by an id that is unique per row and says nothing about score or label"
)
_SKIPPED = (
    "in every region, whether a row's label is missing does not depend on the label; shares of the"
    " population are shares of the rows with a label"
)
ONE_OF_EACH = "groups are independent draws, and one row of each was drawn at random"
_EACH_BY_SEED = (
    "groups are independent draws, and one row of each was drawn at random: by a hash of the seed,"
    " the group's name and the row's place in the group, and neither names nor places say anything"
    " about scores and labels"
)
_NAMED = 12  # segments named in a note
_BY_PARTITION = (
    "the rows that cut the bins were drawn by partition and position in it, as the data have no"
    " order; with an id column the draw does not depend on partitions"
)


@dataclass(frozen=True, slots=True)
class RowFacts(Saved):
    """What a guarantee has to say about the rows of a fit.

    Attributes
    ----------
    drawn_by : str or None
        How rows were drawn to cut the bins: by "id", "partition" or "position"; None if no row was
        drawn.
    skipped : int
        Rows skipped because their label is missing.
    looked, cutting : int
        Pilot rows that were only checked for ties, and rows that cut bins because ties were found.
    pooled : tuple
        Segments of these rows that share the regions of other segments.
    one_of_each : (int, int)
        If one row of each group was drawn: the number of groups, and the number of rows left out.
    keyed : bool
        Whether the draw depends on the rows (`calibrant.params.random`). In files of earlier
        releases it depends on the seed alone, so the order of the rows must say nothing about
        scores and labels.
    """

    _entries: ClassVar[EntryTable] = {
        "drawn_by_id": Entry(Flag(), of="_by_id", absent=False),
        "drawn_by_partition": Entry(Flag(), of="_by_partition", absent=False),
        "skipped_rows": Entry(Integer(0), of="skipped", absent=0),
        "looked_rows": Entry(Integer(0), of="looked", absent=0),
        "cutting_rows": Entry(Integer(0), of="cutting", absent=0),
        "pooled_segments": Entry(Lists(Label()), of="pooled", absent=()),
        "one_of_each": Entry(Lists(OneCount(), size=2), absent=(0, 0)),
        "keyed_draws": Entry(Flag(), of="keyed", absent=False),
    }

    drawn_by: str | None = None
    skipped: int = 0
    looked: int = 0
    cutting: int = 0
    pooled: tuple[str | int | float, ...] = ()
    one_of_each: tuple[int, int] = (0, 0)
    keyed: bool = True

    @property
    def assumed(self) -> tuple[str, ...]:
        """Assumptions of the guarantee."""
        by_id, of_each = (_BY_ID, ONE_OF_EACH) if self.keyed else (_ID_BY_SEED, _EACH_BY_SEED)
        stated = {
            by_id: self.drawn_by == "id",
            _SKIPPED: self.skipped,
            of_each: self.one_of_each[0],
        }
        return tuple(text for text, holds in stated.items() if holds)

    @property
    def said_of_groups(self) -> str:
        """What a guarantee says about groups if one row of each was drawn; empty without groups."""
        groups, others = self.one_of_each
        if not groups:
            return ""
        left = (
            f" The other {counted(others, 'row')} {'was' if others == 1 else 'were'} not used."
            if others
            else ""
        )
        return (
            f" One row was drawn at random from each of {counted(groups, 'group')}: this is about a"
            f" row drawn at random from a new group, and every group counts the same.{left}"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the guarantee."""
        told = []
        if self.skipped:
            were = "was" if self.skipped == 1 else "were"
            told.append(f"{counted(self.skipped, 'row')} without a label {were} skipped")
        if self.drawn_by == "partition":
            told.append(_BY_PARTITION)
        return (*told, *self._on_pooled())

    def _on_pooled(self) -> tuple[str, ...]:
        if not self.pooled:
            return ()
        names = ", ".join(map(str, self.pooled[:_NAMED])) + (
            ", ..." if len(self.pooled) > _NAMED else ""
        )
        one = len(self.pooled) == 1
        does = "shares the regions" if one else "share the regions"
        return (
            (
                f'{counted(len(self.pooled), "segment")} {does} of "other", as do segments not'
                f" seen: {names}"
            ),
        )

    @property
    def _by_id(self) -> bool:
        return self.drawn_by == "id"

    @property
    def _by_partition(self) -> bool:
        return self.drawn_by == "partition"

    @classmethod
    def _made(cls, values: dict[str, Any], known: Known) -> Self:
        by_partition = "partition" if values.pop("_by_partition") else None
        drawn_by = "id" if values.pop("_by_id") else by_partition
        return cls(drawn_by, **values)
