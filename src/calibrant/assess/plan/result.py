"""What a number of labels proves."""

from dataclasses import dataclass, field
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
MORE_IF_TIED = 0.75
"""Additional labels, as a share of those planned, if scores are tied.

Simulated: scores of 1 or 2 decimals, every rate 1/2, 5 or 10 bins, plans of 384 to 7,240 labels. At
least 97% of the fits reached the planned epsilon; with 50% more labels, at least 68%.
"""


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Result):
    """A number of labels, and the epsilon a calibrator reaches with it.

    Attributes
    ----------
    n : int
        The number of rows with labels, including those that only cut bins.
    epsilon : float
        The largest epsilon of a fit: in every bin simultaneously, the true rate is within epsilon
        of the predicted probability.
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
    default_fit : Plan or None
        The plan for `AnchoredCalibrator`, the default calibrator, with the same `epsilon` or `n`;
        None if this plan is for it, or if it cannot be planned for with these settings.
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
    default_fit: "Plan | None" = field(default=None, compare=False)

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

    @property
    def notes(self) -> tuple[str, ...]:
        """What the default calibrator needs, if the plan is for another; what to do about ties."""
        found = [self._if_tied()]
        if self.calibrator != CURVE:
            found.insert(0, self._for_default())
        return tuple(words(note) for note in found if note)

    def _for_default(self) -> Text:
        """The same plan for the default calibrator, which users fit unless they choose another."""
        if self.default_fit is None:
            return ("This plan is for ", _PLANNED, ", not for the default, ", CURVE_NAMED, ".")
        other = self.default_fit
        return (
            "This plan is for ",
            _PLANNED,
            ". With ",
            CURVE_NAMED,
            f", the default, {other.n:,} labels give an epsilon of at most {upper(other.epsilon)}"
            " in about 9 of 10 fits, if the rate rises smoothly and clearly with the score.",
        )

    def _if_tied(self) -> Text:
        """What to do about tied scores. The numbers are from simulated fits."""
        if self.group_size is not None:
            return ""
        if self.calibrator == CURVE:
            return "If scores are tied, the same number of labels was enough in simulated fits."
        if self.pilot is None:
            return ("If scores are tied, plan and fit with ", Setting("pilot", "auto"), ".")
        if self.base_rate is None and self.pilot == "auto":
            more = percent(MORE_IF_TIED)
            enough = "almost all simulated fits needed no more"
            return f"If scores are tied, label about {more} more rows; {enough}."
        return "If scores are tied, label more rows."

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain JSON values."""
        limits = self.relative
        relative = None if limits is None else plain([limits.lower[0], limits.upper[0]])
        other = self.default_fit
        default = None if other is None else {"n": other.n, "epsilon": other.epsilon}
        return {**Result.to_dict(self), "relative": relative, "default_fit": default}
