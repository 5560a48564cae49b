"""How rows were read, as far as a guarantee has to mention it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

_BY_ID = "rows were drawn by an id that is unique per row and says nothing about score or label"
_BY_PARTITION = (
    "the rows that cut the bins were drawn by partition and position in it, as the data have no order; with an id "
    "column the draw does not depend on partitions"
)


@dataclass(frozen=True, slots=True)
class RowFacts:
    """How the rows of a fit were drawn: "id", "partition" or "position"; None where no row was drawn."""

    drawn_by: str | None = None

    @property
    def assumed(self) -> tuple[str, ...]:
        """Assumptions of the guarantee."""
        return (_BY_ID,) if self.drawn_by == "id" else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks of the guarantee."""
        return (_BY_PARTITION,) if self.drawn_by == "partition" else ()

    def to_dict(self) -> dict[str, Any]:
        """What a saved model keeps."""
        return {f"drawn_by_{self.drawn_by}": True} if self.drawn_by in ("id", "partition") else {}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        return cls(next((by for by in ("id", "partition") if state.get(f"drawn_by_{by}") is True), None))
