"""What a metric returns: a number, an interval, and whether the interval is proved."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """A metric's value and a confidence interval for what it estimates.

    Attributes
    ----------
    name : str
        Name of the metric.
    value : float
        The estimate.
    lower, upper : float
        Confidence limits for `target`.
    confidence_level : float
        Confidence in the interval.
    heuristic : bool
        False: the interval holds with at least the stated confidence, for every distribution and sample size. True:
        it rests on an approximation, and may hold less often.
    target : str
        What the interval is about.
    basis : str
        What the interval rests on.
    exact : bool
        Whether nothing is lost to bins: every bin holds one score value, or the metric has none.
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

    def __str__(self) -> str:
        kind = "heuristic interval" if self.heuristic else "valid interval"
        level = f"{100 * self.confidence_level:.6g}%"
        return f"{self.name} {self.value:.4g} ({level} {kind} [{self.lower:.4g}, {self.upper:.4g}] for {self.target})"
