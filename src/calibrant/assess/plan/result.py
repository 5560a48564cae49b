"""What a number of labels guarantees."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from calibrant.cells.tally import Tally
from calibrant.guarantee.relative import RARE, relative_limits
from calibrant.limits.error_budget import budgets
from calibrant.limits.interval import Interval
from calibrant.limits.methods import get_method
from calibrant.params.rules import error_budget
from calibrant.text.numbers import factor_limits, nearest, percent, plain, points, rows, upper
from calibrant.text.quantity import NextStep, Quantity
from calibrant.text.result import Result
from calibrant.text.sentences import Setting, Text, words

_PLANNED = Setting("method", "binning", python="BinningCalibrator")
CURVE = "Calibrator"
CALIBRATORS = ("BinningCalibrator", CURVE)
"""The calibrators that can be planned for."""
CURVE_NAMED = Setting("method", "curve", python=CURVE)
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
        groups, otherwise as given. For `Calibrator`, the share of simulated fits, 0.9.
    group_size, icc : int and float, or None
        The number of rows in each group, and the correlation of labels within a group, as given;
        None for independent rows.
    calibrator : str
        The calibrator that the plan is for: "BinningCalibrator", for any rates, or
        "Calibrator", for smooth ones.
    default_fit : Plan or None
        The plan for `Calibrator`, the default calibrator, with the same `epsilon` or `n`;
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
        more or not given, with groups, and for a bin without rows.
        """
        rate = self.base_rate
        if rate is None or rate >= RARE or self.group_size is not None or not self.rows_per_bin:
            return None
        counts = np.full(self.n_bins, self.rows_per_bin)
        positives = np.full(self.n_bins, round(rate * self.rows_per_bin))
        value = (positives + 0.5) / (counts + 1.0)
        for_rates, _ = budgets(error_budget(self.confidence_level))
        limits = get_method(self.interval)(Tally.from_counts(counts, positives), for_rates)
        every = relative_limits(limits, Interval(value, value))
        return Interval(every.lower[:1], every.upper[:1])

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
        """How many labels guarantee what, and on which assumption."""
        size = points(upper(self.epsilon))
        sure = f"{percent(self.confidence_level)} confidence"
        ranges = f"each of {self.n_bins:,} score ranges"
        if self.n_bins == 1:
            ranges = "the only score range"
        if self.calibrator == CURVE:
            return (
                f"With {self.n:,} labels, the true rate in {ranges} will be within {size} of the"
                f" average prediction in about 9 of 10 fits ({sure}, if the rate rises smoothly and"
                " clearly with untied scores)."
            )
        likely = ""
        if self.probability < 1.0:
            likely = f" with a probability of at least {percent(self.probability)}"
        supposed = "if no scores are tied"
        if self.base_rate is not None:
            supposed = f"{supposed} and {percent(self.base_rate)} of rows are positive"
        labels = f"With {self.n:,} labels"
        if self.group_size is not None:
            labels += f" in {self.n // self.group_size:,} groups of {self.group_size:,}"
            size = f"about {size}"
            supposed = f"if labels in a group have a correlation of {self.icc:g}"
        return words(
            (
                f"{labels} and ",
                _PLANNED,
                f", the true rate in {ranges} will be within {size} of the prediction{likely}"
                f" ({sure}, {supposed}).",
            )
        )

    @property
    def numbers(self) -> tuple[Quantity, ...]:
        """The labels, and the bound they give."""
        most = self.epsilon
        return (
            Quantity("Labels", self.n),
            Quantity("Off by at most", most, high=most, unit="points"),
            Quantity("Score ranges", self.n_bins),
            Quantity("Confidence", self.confidence_level, unit="share"),
        )

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        """Draw, label and calibrate."""
        method = "curve" if self.calibrator == CURVE else "binning"
        return (
            NextStep(
                f"Draw {self.n:,} rows at random, label them, and calibrate",
                f"{self.calibrator}(n_bins={self.n_bins}).fit(scores, y)",
                f"fit {{rows}} --method {method} --bins {self.n_bins} -o model.json",
            ),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What the default calibrator needs, if the plan is for another; what to do about ties."""
        found = [
            self._if_tied(),
            self._of_ranges(),
            self._in_factors(),
        ]
        if self.calibrator == CURVE:
            found.append("This is an estimate from simulations, not a bound for all rates.")
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
            f", the default, {other.n:,} labels keep it within {points(upper(other.epsilon))} in about"
            " 9 of 10 fits, if the rate rises smoothly and clearly with the score.",
        )

    def _of_ranges(self) -> str:
        """How many rows each score range has, and for which rates the plan holds."""
        if self.calibrator == CURVE:
            return f"Each score range has about {rows(self.rows_per_bin)}."
        has = f"each score range has at least {rows(self.rows_per_bin)}"
        if self.group_size is not None:
            return f"The design effect is {nearest(self.design_effect, 2)}; {has}."
        return f"E{has[1:]}{', whatever the rates' if self.base_rate is None else ''}."

    def _in_factors(self) -> str:
        """What epsilon does not say about rare events; empty if there is nothing to add."""
        limits = self.relative
        if limits is None or self.base_rate is None:
            return ""
        factors = factor_limits(float(limits.lower[0]), float(limits.upper[0]))
        return (
            f"In a bin with {percent(self.base_rate)} positive rows, the true rate is {factors} times"
            " the prediction."
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
