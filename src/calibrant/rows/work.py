"""What is done to every batch, on whichever machine it is: a record batch in, a small result out, results add up."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from calibrant.rows.batch import Columns
from calibrant.rows.draw import Draw
from calibrant.rows.faults import Place


class Addable(Protocol):
    """Results of two batches add to the result of both."""

    def __add__(self, other: Any) -> Any: ...


Result = TypeVar("Result", bound=Addable)


@dataclass(frozen=True, slots=True)
class Work(ABC, Generic[Result]):
    """A function of one batch. It is sent to where the data are, so it holds plain values only."""

    data_columns: Columns
    roles: ClassVar[tuple[str, ...]] = ()
    """Roles of the columns that it reads, besides the score."""

    @property
    def columns(self) -> Columns:
        """The columns it reads."""
        return self.data_columns.only(*self.roles)

    @property
    def drawn(self) -> Draw | None:
        """Its `draw`, where it has one. Without ids, a draw needs each row's position among all rows."""
        found: Draw | None = getattr(self, "draw", None)
        return found

    @abstractmethod
    def __call__(self, batch: Any, place: Place) -> Result:
        """The result of one record batch."""

    @abstractmethod
    def nothing(self) -> Result:
        """The result of no rows."""
