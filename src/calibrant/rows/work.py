"""What is done to every batch, on whichever machine it is: a record batch in, a small result out, results add up."""

from abc import ABC, abstractmethod
from typing import Any, Generic, Protocol, TypeVar

from calibrant.rows.batch import Columns
from calibrant.rows.faults import Place


class Addable(Protocol):
    """Results of two batches add to the result of both."""

    def __add__(self, other: Any) -> Any: ...


Result = TypeVar("Result", bound=Addable)


class Work(ABC, Generic[Result]):
    """A function of one batch. It is sent to where the data are, so it holds plain values only."""

    @property
    @abstractmethod
    def columns(self) -> Columns:
        """The columns it reads."""

    @property
    def by_position(self) -> bool:
        """Whether it must know each row's position among all rows, as a draw without ids must."""
        return False

    @abstractmethod
    def __call__(self, batch: Any, place: Place) -> Result:
        """The result of one record batch."""

    @abstractmethod
    def nothing(self) -> Result:
        """The result of no rows."""
