"""The result of a metric: a number, an interval, and whether the interval is exact."""

from dataclasses import dataclass

from calibrant.text.numbers import limits, nearest, percent
from calibrant.text.quantity import Quantity
from calibrant.text.result import Result


@dataclass(frozen=True, slots=True, repr=False)
class Estimate(Result):
    """A metric's value and a confidence interval for what it estimates.

    Attributes
    ----------
    name : str
        Name of the metric.
    value : float
        The estimate.
    lower, upper : float
        Confidence limits on `target`.
    confidence_level : float
        Confidence in the interval.
    heuristic : bool
        False: the interval holds with at least the stated confidence, for every distribution and
        sample size. True: the interval is an approximation and may hold less often.
    target : str
        The quantity that the interval is for.
    basis : str
        The bound or approximation behind the interval.
    exact : bool
        Whether binning hides no error: every bin has only one score value, or the metric uses no
        bins.
    """

    name: str
    value: float
    lower: float
    upper: float
    confidence_level: float
    heuristic: bool
    target: str
    basis: str
    exact: bool = True

    def __float__(self) -> float:
        return self.value

    @property
    def sentence(self) -> str:
        """The value, and the interval with what it is for."""
        kind = "asymptotic" if self.heuristic else "exact"
        interval = f"{kind} {percent(self.confidence_level)} CI {limits(self.lower, self.upper)}"
        return f"{self.name}: {nearest(self.value)}, {interval} for {self.target}."

    @property
    def numbers(self) -> tuple[Quantity, ...]:
        """The value with its interval."""
        return (
            Quantity(self.name, self.value, self.lower, self.upper),
            Quantity("Confidence", self.confidence_level, unit="share"),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What the interval rests on."""
        return (f"interval: {self.basis}",) if self.basis else ()
