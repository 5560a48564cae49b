"""The last of the four ideas: what follows from the intervals, in numbers and in one English sentence."""

import math
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from calibrant._optional import pandas
from calibrant._params import check_choice, check_real, error_budget
from calibrant._typing import BoolArray, FloatArray, IntArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.intervals import Interval, get_method
from calibrant.mass import mass_limits
from calibrant.partition import FunctionPartition, Partition, ScorePartition, SegmentedPartition
from calibrant.partition.base import check_partition
from calibrant.tally import Tally

VALUES = ("mean", "midpoint")
_MASS_SHARE = 0.1  # of alpha, spent on the mass limits by statements that leave regions out
_SENTENCE_MASSES = (0.99, 0.95, 0.9)  # the first that lowers epsilon; the others only where epsilon says nothing
_NO_DIFFERENCE = "that made no difference"
_SAME_POPULATION = "whatever the distribution of the data, as long as future rows are drawn like the calibration rows"
_MORE_ROWS = "use fewer bins or more rows"
_SHARE_BINS = "scores are tied, so use split=0.2, or fewer bins"
_ONE_SAMPLE = "over the draw of the {n:,} calibration rows"
_SENTENCE_GAIN = 0.9  # the sentence leaves regions out only when that lowers epsilon by a tenth or more


@dataclass(frozen=True, slots=True, eq=False)
class PartialGuarantee:
    """A promise for the regions that are kept, which hold at least `mass` of the population.

    Attributes
    ----------
    mass : float
        Certified share of the population in the kept regions.
    epsilon : float
        Largest distance between value and true rate in the kept regions.
    kept : bool array of shape (n_regions,)
        Which regions the promise is about.
    """

    mass: float
    epsilon: float
    kept: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class _Spare:
    """Intervals at a slightly higher level, and mass limits within what that leaves of the error budget."""

    radius: FloatArray
    mass_limits: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Guarantee:
    """What is promised of a calibrator, with which confidence, and on which assumptions.

    With probability at least `confidence_level` over the calibration data, *in every region at once*, the true rate
    of the positive label lies in [lower, upper], and so within `epsilon` of the predicted value.

    Attributes
    ----------
    confidence_level : float
        1 - alpha.
    method : str
        Name of the interval.
    theorem : str
        What the promise rests on.
    assumptions : tuple of str
        What must be true for it to hold.
    remarks : tuple of str
        What a reader should know besides.
    regions : tuple of str
        Name of each region.
    counts, positives : int arrays of shape (n_regions,)
        Rows and positive rows seen.
    value, lower, upper : float arrays of shape (n_regions,)
        Predicted probability and confidence limits.
    positive_label : object
        The label whose rate is meant.
    event : str or None
        What the rate is of, in words, where it is not of one label.
    caveat : str or None
        Why the promise is not proved, where it is not; the numbers are then what they would be without the caveat.
    supposition : str
        What would have to be true for the numbers to hold in spite of the caveat.
    basis : str
        The part of the sentence that says for which future rows the promise is made.
    advice : str
        What to do about a region with too few rows.
    occasion : str
        The part of the sentence that says what the confidence is about; `{n}` stands for the number of rows.

    Notes
    -----
    epsilon is the *maximum over regions* of max(upper - value, value - lower). `cor:calibration-fixed-partition`
    takes the region with the fewest rows instead; variances differ, so the largest half-width may sit elsewhere, and
    the corollary as printed can cover with probability 0.063 where 0.9 was promised.
    """

    confidence_level: float
    method: str
    theorem: str
    assumptions: tuple[str, ...]
    remarks: tuple[str, ...]
    regions: tuple[str, ...]
    counts: IntArray
    positives: IntArray
    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    positive_label: Any = 1
    event: str | None = None
    caveat: str | None = None
    supposition: str = _NO_DIFFERENCE
    basis: str = _SAME_POPULATION
    occasion: str = _ONE_SAMPLE
    advice: str = _MORE_ROWS
    _spare: _Spare | None = field(default=None, repr=False)

    @classmethod
    def from_tally(
        cls,
        partition: Partition,
        tally: Tally,
        *,
        interval: str = "clopper-pearson",
        confidence_level: float = 0.9,
        value: str = "mean",
        positive_label: Any = 1,
        split: bool = False,
    ) -> Self:
        """Derive the promise from a tally; `split` says that the edges were cut from other rows of the same sample."""
        method = get_method(interval)
        alpha = error_budget(confidence_level)
        check_choice("value", value, VALUES)
        check_tally(partition, tally)
        limits = method.function(tally, alpha)
        values = _values(tally, limits, value)
        wider = method.function(tally, alpha * (1 - _MASS_SHARE))
        spare = _Spare(
            _radius(values, wider),
            mass_limits(partition, tally, alpha * _MASS_SHARE),
        )
        return cls(
            confidence_level=float(confidence_level),
            method=method.name,
            theorem=method.theorem,
            assumptions=_assumptions(partition, split),
            remarks=_remarks(partition, tally),
            regions=partition.describe(),
            counts=tally.counts,
            positives=tally.positives,
            value=values,
            lower=limits.lower,
            upper=limits.upper,
            positive_label=positive_label,
            advice=_SHARE_BINS if _n_atoms(partition) else _MORE_ROWS,
            _spare=spare,
        )

    @classmethod
    def from_limits(
        cls, partition: Partition, tally: Tally, limits: Interval, *, value: str = "mean", **statement: Any
    ) -> Self:
        """Derive the promise from limits that hold for all regions at once, however they were made.

        `statement` holds the fields that say what is promised: confidence_level, method, theorem, assumptions, remarks
        and, where they differ from the usual, the others.
        """
        check_choice("value", value, VALUES)
        check_tally(partition, tally)
        return cls(
            regions=partition.describe(),
            counts=tally.counts,
            positives=tally.positives,
            value=_values(tally, limits, value),
            lower=limits.lower,
            upper=limits.upper,
            **statement,
        )

    @property
    def interval(self) -> Interval:
        """The limits of all regions."""
        return Interval(self.lower, self.upper)

    @property
    def radius(self) -> FloatArray:
        """Per region, the largest distance between the predicted value and a rate that is not ruled out."""
        return _radius(self.value, self.interval)

    @property
    def epsilon(self) -> float:
        """Largest radius: how far, at most, a predicted value is from the true rate, in any region."""
        return float(self.radius.max())

    @property
    def is_proved(self) -> bool:
        """Whether the promise follows from the stated assumptions alone."""
        return self.caveat is None

    def with_caveat(self, caveat: str, *, supposition: str = _NO_DIFFERENCE) -> "Guarantee":
        """Return the same numbers, withdrawn as a promise for the stated reason; a caveat it has already is kept."""
        if self.caveat is not None:
            caveat = f"{self.caveat}; and {caveat}"
            supposition = (
                self.supposition if supposition == self.supposition else f"{self.supposition} and {supposition}"
            )
        return replace(self, caveat=caveat, supposition=supposition)

    @property
    def is_vacuous(self) -> bool:
        """Whether the promise is no better than predicting 1/2 without any data."""
        return self.epsilon >= 0.5

    def epsilon_for(self, mass: float) -> float:
        """Return the epsilon that holds on regions carrying at least the share `mass` of the population.

        One nearly empty region need not spoil the whole statement. See `restricted_to`.
        """
        return self.restricted_to(mass).epsilon

    def restricted_to(self, mass: float) -> PartialGuarantee:
        """Leave out the regions of largest radius, as long as `mass` of the population is certainly kept.

        The statement, that the kept regions hold at least `mass` of the population and that in each of them the true
        rate is within `epsilon` of the value, holds as a whole with probability `confidence_level`: a tenth of the
        error budget pays for exact limits on the mass of every region, the rest for the intervals. For `mass=1`
        nothing is left out, and the whole budget goes to the intervals.
        """
        mass = check_real("mass", mass, rule="a number in (0, 1]")
        if not 0.0 < mass <= 1.0:
            raise InvalidValueError(f"mass must be a number in (0, 1]; got {mass!r}")
        everything = PartialGuarantee(1.0, self.epsilon, np.ones(self.counts.size, dtype=bool))
        if mass == 1.0 or self._spare is None:
            return everything
        order = np.argsort(-self._spare.radius, kind="stable")
        left_out_mass = np.cumsum(self._spare.mass_limits[order])
        n_left_out = min(int(np.searchsorted(left_out_mass, 1.0 - mass, side="right")), self.counts.size - 1)
        epsilon = float(self._spare.radius[order[n_left_out]])
        if epsilon >= self.epsilon:
            return everything
        kept = np.ones(self.counts.size, dtype=bool)
        # a region no worse than those kept costs nothing to keep
        kept[order[:n_left_out]] = self._spare.radius[order[:n_left_out]] <= epsilon
        return PartialGuarantee(1.0 - float(self._spare.mass_limits[~kept].sum()), epsilon, kept)

    @property
    def stated(self) -> PartialGuarantee:
        """What the sentence says: of all regions, or without the poorest few where that says much more.

        `mass` is the share that the sentence names, 0.99, 0.95 or 0.9; 1 where it is about all regions.
        """
        for mass in _SENTENCE_MASSES if self.is_vacuous else _SENTENCE_MASSES[:1]:
            partial = self.restricted_to(mass)
            if partial.epsilon <= _SENTENCE_GAIN * self.epsilon:
                return replace(partial, mass=mass)
        return PartialGuarantee(1.0, self.epsilon, np.ones(self.counts.size, dtype=bool))

    def __str__(self) -> str:
        sentence = self._sentence()
        if self.caveat is None:
            return sentence
        return f"Nothing is proved: {self.caveat}. If {self.supposition}: {sentence[0].lower()}{sentence[1:]}"

    def _sentence(self) -> str:
        n_regions = len(self.regions)
        opening = f"With {_percent(self.confidence_level)} confidence {self.occasion.format(n=self.n_rows)}"
        everywhere = "in the one region there is" if n_regions == 1 else f"in all {n_regions:,} regions at once"
        event = f"class {self.positive_label!r}" if self.event is None else self.event
        claim = f"the true rate of {event} is within {{}} of the predicted probability"
        stated = self.stated
        if not stated.kept.all():
            where = (
                f"in {int(stated.kept.sum()):,} of {n_regions:,} regions at once, which hold at least "
                f"{_percent(stated.mass)} of the population"
            )
            rest = f"; over all {n_regions:,} regions the bound is {_rounded_up(self.epsilon)}"
            return f"{opening}, {where}, {claim.format(_rounded_up(stated.epsilon))}, {self.basis}{rest}."
        sentence = f"{opening}, {everywhere}, {claim.format(_rounded_up(self.epsilon))}, {self.basis}"
        if self.is_vacuous:
            worst = int(self.radius.argmax())
            sentence += (
                f"; this says almost nothing yet, for region {self.regions[worst]} holds "
                f"{_rows(int(self.counts[worst]))}: {self.advice}"
            )
        return sentence + "."

    @property
    def n_rows(self) -> int:
        """Rows that were counted in the regions."""
        return int(self.counts.sum())

    def to_frame(self) -> Any:
        """Return the regions as a pandas frame: count, value and limits, one row each."""
        pd = pandas()
        columns = {name: getattr(self, name) for name in ("counts", "positives", "value", "lower", "upper", "radius")}
        return pd.DataFrame({"region": self.regions, **columns})


@dataclass(frozen=True, slots=True)
class NoGuarantee:
    """What is said of a calibrator for which nothing can be promised without assumptions on the data.

    Attributes
    ----------
    reason : str
        Why there is none.
    advice : str
        What to use for one.
    """

    reason: str
    advice: str

    @property
    def epsilon(self) -> None:
        """None: there is no bound."""
        return

    @property
    def is_proved(self) -> bool:
        """Always False."""
        return False

    def __str__(self) -> str:
        return f"No distribution-free guarantee exists: {self.reason}. {self.advice}."


def check_tally(partition: Partition, tally: Tally) -> None:
    """Refuse a tally that was taken over another partition."""
    check_partition(partition)
    if not isinstance(tally, Tally):
        raise InvalidTypeError(f"tally must be a Tally; got {type(tally).__name__}")
    if tally.n_regions != partition.n_regions:
        raise InvalidValueError(f"tally must have one entry per region, {partition.n_regions}; got {tally.n_regions}")
    if tally.partition is not None and tally.partition != partition.fingerprint:
        raise InvalidValueError("tally must have been taken over this partition; got one taken over another")


def _values(tally: Tally, limits: Interval, value: str) -> FloatArray:
    """The predicted value of each region; 1/2 where nothing was seen."""
    middle = limits.midpoint
    return middle if value == "midpoint" else np.where(tally.counts > 0, tally.rates, middle)


def _radius(value: FloatArray, limits: Interval) -> FloatArray:
    return np.maximum(limits.upper - value, value - limits.lower)


def _assumptions(partition: Partition, split: bool) -> tuple[str, ...]:
    stated = [
        "calibration rows and future rows are independent draws from one distribution",
        "the scores come from a model that was not trained on the calibration rows",
    ]
    if isinstance(partition, FunctionPartition):
        stated.append("the regions were fixed before the calibration labels were seen")
    elif split:
        stated.append("the bins were cut from a random part of the rows, which is counted in no bin")
    if n_uncounted := sum(_uncounted_edges(part) for part in _score_parts(partition)):
        stated.append(
            f"scores exactly equal to one of the {n_uncounted} cut values seen once are outside the statement "
            "(probability zero for continuous scores)"
        )
    return tuple(stated)


def _remarks(partition: Partition, tally: Tally) -> tuple[str, ...]:
    remarks = []
    if n_empty := int(np.count_nonzero(tally.counts == 0)):
        remarks.append(f"{n_empty} of {tally.n_regions} regions hold no row: there the interval is [0, 1]")
    n_atoms = _n_atoms(partition)
    small = int(np.count_nonzero(tally.counts < tally.n_rows / (4 * tally.n_regions)))
    if n_atoms and small:
        remarks.append(
            f"ties made {_single_values(n_atoms)}, and {_regions(small)} small: split=0.2 cuts the bins from other "
            "rows, so that tied scores may share a bin"
        )
    return tuple(remarks)


def _score_parts(partition: Partition) -> tuple[ScorePartition, ...]:
    if isinstance(partition, SegmentedPartition):
        return partition.parts
    return (partition,) if isinstance(partition, ScorePartition) else ()


def _n_atoms(partition: Partition) -> int:
    """How many single score values ties have made regions of their own."""
    return sum(int(part.is_atom.sum()) for part in _score_parts(partition) if part.cuts_own_sample)


def _uncounted_edges(part: ScorePartition) -> int:
    return int((~part.is_atom).sum()) if part.cuts_own_sample else 0


def _single_values(count: int) -> str:
    return (
        "a single score value a region of its own"
        if count == 1
        else f"{count} single score values regions of their own"
    )


def _regions(count: int) -> str:
    return "1 region is" if count == 1 else f"{count} regions are"


def _rows(count: int) -> str:
    return "no row" if count == 0 else "one row only" if count == 1 else f"only {count:,} rows"


def _percent(share: float) -> str:
    return f"{100 * share:.10g}%"


def _rounded_up(epsilon: float) -> str:
    """Three significant digits, never less than what is proved."""
    if epsilon <= 0.0:
        return "0"
    scale = 10.0 ** (2 - math.floor(math.log10(epsilon)))
    return f"{math.ceil(epsilon * scale) / scale:.3g}"
