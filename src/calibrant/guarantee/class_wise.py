"""What is proved for several classes simultaneously, each against the rest."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.short import (
    assumption_of,
    confidence_of,
    counting_of,
    opinion_of,
    prediction_of,
    rate_of,
    training_of,
)
from calibrant.text.numbers import upper
from calibrant.text.result import Result, said_of_file
from calibrant.text.result_table import ResultTable


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClassWiseGuarantee(Result):
    """One guarantee per class; all hold simultaneously.

    Attributes
    ----------
    confidence_level : float
        Probability that all statements hold.
    guarantees : mapping from label to Guarantee
        The guarantee for each class against the rest; the classes share the error budget equally.
    adds_up : bool
        Whether the probabilities of a row add up to 1.
    read : tuple of str
        What was read from a file, and not recomputed from the rows.
    """

    _also: ClassVar[tuple[str, ...]] = ("epsilon", "is_proved")

    confidence_level: float
    guarantees: Mapping[Hashable, Guarantee]
    adds_up: bool = False
    read: tuple[str, ...] = ()

    @property
    def epsilon(self) -> float:
        """Largest distance between a value and the true rate, over all classes and bins."""
        return max(guarantee.epsilon for guarantee in self.guarantees.values())

    @property
    def is_proved(self) -> bool:
        """Whether the guarantee follows from the stated assumptions alone."""
        return all(guarantee.is_proved for guarantee in self.guarantees.values())

    @property
    def worst(self) -> Hashable:
        """The class with the largest epsilon."""
        return max(self.guarantees, key=lambda label: self.guarantees[label].epsilon)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must be true for the guarantee to hold."""
        return tuple(
            dict.fromkeys(text for one in self.guarantees.values() for text in one.assumptions)
        )

    @property
    def sentence(self) -> str:
        """What is proved about all classes, and under which assumption, in 35 words at most."""
        worst = self.guarantees[self.worst]
        if not self.is_proved:
            unproved = next(one for one in self.guarantees.values() if not one.is_proved)
            return unproved.sentence
        statement = worst.statement
        rate = rate_of(statement).removeprefix("the ") + counting_of(statement)
        return (
            f"{confidence_of(self.confidence_level, statement)}, {assumption_of(statement)}, then"
            f" for each of {len(self.guarantees)} classes, in each bin{opinion_of(statement)}, its"
            f" {rate} is within {upper(self.epsilon)} of the {prediction_of(worst)}."
        )

    @property
    def explanation(self) -> str:
        """How the classes share the error budget, whether their probabilities add up, and which rows
        trained the models.
        """
        sums = (
            "The probabilities of a row add up to 1"
            if self.adds_up
            else "Probabilities need not add up to 1"
        )
        worst = self.guarantees[self.worst]
        trained = f" {training_of(worst)}" if worst.statement.n_trained else ""
        return (
            f"Each class has an equal part of the error budget. {sums}.{trained}"
            f"{said_of_file(self.read)}"
        )

    def tables(self) -> tuple[ResultTable, ...]:
        """The guarantee for each class, and the regions of all classes."""
        classes = {
            "class": [str(label) for label in self.guarantees],
            "n_regions": [len(one.regions) for one in self.guarantees.values()],
            "epsilon": [one.epsilon for one in self.guarantees.values()],
            "proved": [one.is_proved for one in self.guarantees.values()],
        }
        regions: dict[str, list[Any]] = {}
        for label, guarantee in self.guarantees.items():
            (table,) = guarantee.tables()
            regions.setdefault("class", []).extend([str(label)] * len(table))
            for name, column in table.columns.items():
                regions.setdefault(name, []).extend(column)
        return ResultTable("classes", classes), ResultTable("regions", regions, shown=())
