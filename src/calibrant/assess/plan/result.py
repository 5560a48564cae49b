"""What a number of labels proves."""

from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant.assess._relative_plan import in_factors, limits_at
from calibrant.guarantee.relative import RARE
from calibrant.limits.interval import Interval
from calibrant.text.numbers import nearest, percent, plain, upper
from calibrant.text.result import Result
from calibrant.text.sentences import Setting, Text, words

_PLANNED = Setting("method", "binning", python="BinningCalibrator")
CURVE = "AnchoredCalibrator"
CALIBRATORS = ("BinningCalibrator", CURVE)
"""The calibrators that can be planned for."""
CURVE_NAMED = Setting("method", "anchored", python=CURVE)


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Result):
    """A number of labels, and the epsilon a calibrator reaches with it.

    Attributes
    ----------
    n : int
        The number of rows with labels, including those that only cut bins.
    epsilon : float
        The largest epsilon of a fit: in every bin at once, the true rate is within epsilon of the
        predicted probability.
    rows_per_bin : int
        Rows in the smallest bin.
    confidence_level, n_bins, interval, pilot :
        As given.
    base_rate : float or None
        Overall rate of positives, as given; None for the worst case.
    probability : float
        The probability that a fit has at most `epsilon`: 1 without a base rate, pilot rows or
        groups, otherwise as given. For `AnchoredCalibrator`, the share of simulated fits, 0.9.
    group_size, icc : int and float, or None
        The number of rows in each group, and the correlation of labels within a group, as given;
        None for independent rows.
    calibrator : str
        The calibrator that the plan is for: "BinningCalibrator", for any rates, or
        "AnchoredCalibrator", for smooth ones.
    """

    _also: ClassVar[tuple[str, ...]] = ("design_effect",)

    n: int
    epsilon: float
    rows_per_bin: int
    confidence_level: float
    n_bins: int
    interval: str
    base_rate: float | None
    pilot: float | int | str | None
    probability: float
    group_size: int | None = None
    icc: float | None = None
    calibrator: str = words((_PLANNED,))

    @property
    def relative(self) -> Interval | None:
        """Limits on the true rate divided by the prediction, in a bin of `rows_per_bin` rows with
        the base rate.

        They are for a bin in which that share of rows is positive. None if the base rate is 5% or
        more or not given, and with groups.
        """
        if self.base_rate is None or self.base_rate >= RARE or self.group_size is not None:
            return None
        return limits_at(
            self.base_rate, self.rows_per_bin, self.n_bins, self.interval, self.confidence_level
        )

    @property
    def design_effect(self) -> float:
        """The factor by which variances are larger than for independent rows: 1 + (group_size - 1)
        icc.
        """
        return (
            1.0
            if self.group_size is None or self.icc is None
            else 1.0 + (self.group_size - 1) * self.icc
        )

    @property
    def sentence(self) -> str:
        """The plan in words, with the calibrator that it is for."""
        if self.calibrator == CURVE:
            return words(self._of_curve())
        bins = (
            "1 bin"
            if self.n_bins == 1
            else f"{self.n_bins:,} bins of at least {self.rows_per_bin:,} rows each"
        )
        level = f" at {percent(self.confidence_level)} confidence"
        how_likely = (
            ""
            if self.probability == 1.0
            else f" with probability at least {percent(self.probability)}"
        )
        rates = "whatever the rates, if"
        if self.base_rate is not None:
            rates = f"if {percent(self.base_rate)} of rows are positive and"
        if self.group_size is not None:
            groups = f"in {self.n // self.group_size:,} groups of {self.group_size:,}"
            alike = (
                f"an intra-cluster correlation of {self.icc:g} (design effect"
                f" {nearest(self.design_effect, 2)})"
            )
            return words(
                (
                    f"With {self.n:,} labels {groups}, and {alike}, the epsilon of ",
                    _PLANNED,
                    f"{level} will be about {upper(self.epsilon)} or less{how_likely}.",
                )
            )
        given = (
            f"{level} will be at most {upper(self.epsilon)}{how_likely}, {rates} no scores are"
            f" tied.{in_factors(self.relative, self.base_rate)}"
        )
        return words((f"With {self.n:,} labels and {bins}, the epsilon of ", _PLANNED, given))

    def _of_curve(self) -> Text:
        """The sentence of a plan for a curve, with its conditions."""
        regions = f"{self.n_bins:,} regions of about {self.rows_per_bin:,} rows each"
        level = f" at {percent(self.confidence_level)} confidence"
        return (
            f"With {self.n:,} labels and {regions}, the epsilon of ",
            CURVE_NAMED,
            f"{level} will be at most {upper(self.epsilon)} in about 9 of 10 fits, if the rate rises"
            " smoothly and clearly with the score and no scores are tied. This is an estimate from"
            " simulations, not a bound for all rates.",
        )

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain JSON values."""
        limits = self.relative
        relative = None if limits is None else plain([limits.lower[0], limits.upper[0]])
        return {**Result.to_dict(self), "relative": relative}
