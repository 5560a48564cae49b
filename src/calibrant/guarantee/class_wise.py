"""What is guaranteed for several classes simultaneously, each against the rest."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from calibrant.guarantee import words as wording
from calibrant.guarantee.guarantee import AFTER_FIT, Guarantee
from calibrant.text.numbers import points, upper
from calibrant.text.quantity import NextStep, Quantity
from calibrant.text.result import Result, Verdict, said_of_file
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
    def verdict(self) -> Verdict:
        """Whether something is guaranteed that is better than no data."""
        return "ok" if self.is_proved and self.epsilon < 0.5 else "unclear"

    @property
    def sentence(self) -> str:
        """What is guaranteed about all classes, and under which assumption, in 35 words at most."""
        worst = self.guarantees[self.worst]
        if not self.is_proved:
            unproved = next(one for one in self.guarantees.values() if not one.is_proved)
            return unproved.sentence
        whole = replace(worst, confidence_level=self.confidence_level, positive_label=1)
        opinion = " of a first opinion" if worst.statement.n_trained else ""
        rate = wording.rate_of(whole).removeprefix("the ")
        claim = (
            f"For each of {len(self.guarantees)} classes, in each score range{opinion}, its {rate}"
            f" is within {points(upper(self.epsilon))} of the {wording.prediction_of(worst)}"
        )
        full = f"{claim} {wording.sure(whole, ', all together')}."
        if wording.n_words(full) <= wording.MOST_WORDS:
            return full
        return f"{claim} {wording.sure(whole, ', all together', counting=False)}."

    @property
    def numbers(self) -> tuple[Quantity, ...]:
        """The bound and its confidence."""
        most = self.epsilon
        return (
            Quantity("Off by at most", most, high=most, unit="points"),
            Quantity("Classes", len(self.guarantees)),
            Quantity("Confidence", self.confidence_level, unit="share"),
        )

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        """Calibrate new scores, decide, and watch."""
        return AFTER_FIT

    @property
    def notes(self) -> tuple[str, ...]:
        """How the classes share the error budget, whether their probabilities add up, and which rows
        trained the models.
        """
        worst = self.guarantees[self.worst]
        sums = "add up to 1" if self.adds_up else "need not add up to 1"
        notes = [
            "each class has an equal part of the error budget",
            f"the probabilities of a row {sums}",
        ]
        if worst.statement.groups is not None:
            capped = wording.on_groups(worst.statement.groups)[0]
            notes.append(f"for the class with the largest bound, {capped}")
        if worst.statement.n_trained:
            notes.append(wording.training_of(worst))
        if self.read:
            notes.append(said_of_file(self.read).strip())
        return tuple(notes)

    def tables(self) -> tuple[ResultTable, ...]:
        """The guarantee for each class, and the regions of all classes."""
        classes = {
            "class": [str(label) for label in self.guarantees],
            "n_regions": [len(one.regions) for one in self.guarantees.values()],
            "epsilon": [one.epsilon for one in self.guarantees.values()],
            "guaranteed": [one.is_proved for one in self.guarantees.values()],
        }
        regions: dict[str, list[Any]] = {}
        for label, guarantee in self.guarantees.items():
            (table,) = guarantee.tables()
            regions.setdefault("class", []).extend([str(label)] * len(table))
            for name, column in table.columns.items():
                regions.setdefault(name, []).extend(column)
        return ResultTable("classes", classes, units={"epsilon": "points"}), ResultTable(
            "regions", regions, shown=()
        )
