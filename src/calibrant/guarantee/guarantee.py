"""What is guaranteed: limits for every region, their confidence level, and epsilon."""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IntArray
from calibrant.cells.partition import Partition
from calibrant.cells.tally import Tally, check_tally
from calibrant.errors import InvalidValueError
from calibrant.guarantee import words as wording
from calibrant.guarantee.relative import RARE, relative_limits
from calibrant.guarantee.statement import NO_DIFFERENCE, Caveat, Claim, Edges, Statement
from calibrant.guarantee.values import region_values
from calibrant.limits.error_budget import budgets
from calibrant.limits.interval import Interval
from calibrant.limits.mass import MassLimits, mass_limits
from calibrant.limits.methods import get_method
from calibrant.limits.region_limits import region_limits
from calibrant.params.rules import Number, error_budget
from calibrant.sample.facts import RowFacts
from calibrant.text.numbers import percent, plain
from calibrant.text.picture import Drawn, Picture
from calibrant.text.quantity import NextStep, Quantity
from calibrant.text.result import Result, Verdict
from calibrant.text.result_table import ResultTable
from calibrant.text.sentences import Text, in_words, words

if TYPE_CHECKING:
    from typing_extensions import TypeIs


_SENTENCE_MASSES = (
    0.99,
    0.95,
    0.9,
)  # the first that lowers epsilon; the others only if epsilon is 1/2 or more
_LITTLE = 0.25  # from this epsilon on, a guarantee says little
_SENTENCE_GAIN = (
    0.9  # the sentence leaves regions out only if that lowers epsilon by a tenth or more
)


AFTER_FIT = (
    NextStep(
        "Calibrate new scores",
        "calibrator.predict(new_scores)",
        "apply {model} new.csv -o out.csv",
    ),
    NextStep(
        "Make decisions based on the cost of errors",
        "decide(calibrator, new_scores, cost_false_alarm=1, cost_miss=5)",
        "decide {model} new.csv --cost-false-alarm 1 --cost-miss 5",
    ),
    NextStep(
        "Watch the model in production: the guarantee no longer applies once the data drift",
        'Monitor("watch.db", calibrator, maturity=7)',
        "watch labels.jsonl --model {model} --store watch.db --maturity 7",
    ),
)


@dataclass(frozen=True, slots=True, eq=False)
class PartialGuarantee:
    """A guarantee for the kept regions, which hold at least `mass` of the population.

    Attributes
    ----------
    mass : float
        Lower limit on the share of the population in the kept regions. It excludes rows in no
        region: rows of unseen segments, and rows whose score equals an edge that was seen once. NaN
        if nothing is known about the share.
    epsilon : float
        Largest distance between value and true rate in the kept regions.
    kept : bool array of shape (n_regions,)
        Which regions the guarantee is about.
    """

    mass: float
    epsilon: float
    kept: BoolArray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Guarantee(Result):
    """What is guaranteed about a calibrator, and with what confidence.

    With probability at least `confidence_level` over the calibration data, *in every region
    simultaneously*, the true rate of the positive class lies in [lower, upper], and so within
    `epsilon` of the predicted value; and, if there are `mass_limits`, they all hold.

    Attributes
    ----------
    confidence_level : float
        1 - alpha.
    method : str
        Name of the interval method.
    regions : tuple of str
        Name of each region.
    counts, positives : int arrays of shape (n_regions,)
        Numbers of rows and positive rows.
    value, lower, upper : float arrays of shape (n_regions,)
        Predicted probability and confidence limits.
    positive_label : object
        The label of the positive class.
    statement : Statement
        The facts behind the sentence, the assumptions and the notes.
    mass_limits : MassLimits or None
        Limits on the mass of each region and on the mass outside all regions; None if nothing is
        guaranteed about mass.
    margin : float array of shape (n_regions,), or None
        If predictions vary within a region: `value` is their average over the calibration rows of
        the region, and their average over the population differs from it by at most this margin.
    errors : Interval or None
        If predictions vary within a region: limits on the rate minus the average prediction, in
        each region.
    read : tuple of str
        What was read from a saved state and not recomputed from the rows, such as "counts"; empty
        after `fit`. Only `calibrant verify`, which needs the rows, can confirm it.

    Notes
    -----
    Every statement follows from one event: all limits on rates hold, which fails with probability
    at most 95% of alpha, and all limits on mass hold, which fails with probability at most 5% of
    alpha. On this event, the statements about any of the regions are true simultaneously, so you
    may choose among them after looking at the results. Without limits on mass (streams, shifted
    populations), the limits on rates get all of alpha.

    epsilon is the *maximum over regions* of max(upper - value, value - lower). Corollary 4 of
    Gupta, Podkopaev and Ramdas (2020) takes the region with the fewest rows instead. But variances
    differ, so the largest half-width may be in another region, and the corollary as printed can
    cover with probability 0.063 where 0.9 was guaranteed.
    """

    _also: ClassVar[tuple[str, ...]] = (
        "epsilon",
        "average_epsilon",
        "n_rows",
        "is_proved",
        "theorem",
        "caveat",
    )

    confidence_level: float
    method: str
    regions: tuple[str, ...]
    counts: IntArray
    positives: IntArray
    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    positive_label: Hashable = 1
    statement: Statement = field(default_factory=Statement)
    mass_limits: MassLimits | None = None
    margin: FloatArray | None = None
    errors: Interval | None = None
    read: tuple[str, ...] = ()

    @classmethod
    def from_tally(
        cls,
        partition: Partition,
        tally: Tally,
        *,
        interval: str = "clopper-pearson",
        confidence_level: float = 0.9,
        value: str = "mean",
        positive_label: Hashable = 1,
        split: bool = False,
        n_bins: int | None = None,
    ) -> Self:
        """Derive the guarantee from a tally.

        `split` says that the edges were cut from other rows of the same sample, and `n_bins` is the
        number of bins requested.
        """
        check_tally(partition, tally)
        if tally.groups is not None:
            advice = "use BinningCalibrator.from_tally with max_group_size"
            raise InvalidValueError(
                "tally", "be of independent rows", got="one of groups", advice=advice
            )
        method = get_method(interval)
        for_rates, for_mass = budgets(error_budget(confidence_level))
        limits = region_limits(partition, tally, method, for_rates)
        edges = Edges.OTHER_ROWS if split else Edges.FIXED
        return cls.from_limits(
            partition,
            tally,
            limits,
            confidence_level,
            method.name,
            Statement(method.theorem, edges=edges, n_bins=n_bins),
            value,
            positive_label,
            for_mass=for_mass,
        )

    @classmethod
    def from_limits(
        cls,
        partition: Partition,
        tally: Tally,
        limits: Interval,
        confidence_level: float,
        method: str,
        statement: Statement,
        value: str | FloatArray = "mean",
        positive_label: Hashable = 1,
        *,
        for_mass: float | None = None,
        margin: FloatArray | None = None,
        errors: Interval | None = None,
    ) -> Self:
        """Derive the guarantee from limits that hold for all regions simultaneously, found by any
        method.

        `statement` holds the facts that do not follow from the partition. `value` may also be the
        predicted values themselves, one per region. `for_mass` is the error budget of limits on
        mass, which need independent rows of one population; None if nothing is claimed about mass.
        """
        check_tally(partition, tally)
        values = region_values(value, partition, tally, limits) if isinstance(value, str) else value
        return cls(
            float(confidence_level),
            method,
            partition.describe(),
            tally.counts,
            tally.positives,
            values,
            limits.lower,
            limits.upper,
            positive_label,
            _about_regions(statement, partition),
            None if for_mass is None else mass_limits(partition, tally, for_mass),
            margin,
            errors,
        )

    @property
    def interval(self) -> Interval:
        """The limits of all regions."""
        return Interval(self.lower, self.upper)

    @property
    def radius(self) -> FloatArray:
        """For each region, the largest distance between the predicted value and a rate that is not
        ruled out.
        """
        # limits on the errors themselves are sharper than limits on the rate beside an average
        if self.errors is not None:
            return np.minimum(np.maximum(self.errors.upper, -self.errors.lower), 1.0)
        return np.maximum(self.upper - self.value, self.value - self.lower)

    @property
    def epsilon(self) -> float:
        """The largest radius: the largest distance between a predicted value and the true rate in
        any region.
        """
        return float(self.radius.max())

    @property
    def relative(self) -> Interval:
        """Limits on the true rate divided by the average prediction, for each region.

        Infinite if there is no limit.

        They follow from the limits on rates, averages and errors, and hold jointly with them; see
        `relative_limits`.
        """
        if self.margin is None:
            predictions = Interval(self.value, self.value)
        else:
            lowest = np.maximum(self.value - self.margin, 0.0)
            predictions = Interval(lowest, np.minimum(self.value + self.margin, 1.0))
        return relative_limits(self.interval, predictions, self.errors)

    @property
    def is_rare(self) -> bool:
        """Whether predictions are below 5% on average, so that `relative` is more informative than
        epsilon.
        """
        return self.n_rows > 0 and float(self.counts @ self.value) < RARE * self.n_rows

    @property
    def average_epsilon(self) -> float:
        """An upper limit on the average radius over the part of the population that lies in the
        regions.

        It assumes the worst case, in which as much mass as possible lies where the radius is
        largest. It is at most `epsilon`, and holds together with everything else. Without limits on
        mass, it is `epsilon`.

        Notes
        -----
        Let m_b <= u_b be the masses of the regions, and M >= 1 - o their sum, where o is the limit
        on the mass outside all regions. The largest sum of m_b r_b for a given M fills regions in
        the order of their radius. It is concave in M and 0 at 0, so its ratio to M is largest for
        the smallest M, 1 - o.
        """
        # without a bound on what lies outside, all mass may be where the radius is largest
        if self.mass_limits is None or self.mass_limits.outside >= 1.0:
            return self.epsilon
        inside = 1.0 - self.mass_limits.outside
        order = np.argsort(-self.radius, kind="stable")
        filled = np.minimum(np.cumsum(self.mass_limits.regions[order]), inside)
        average = float(np.diff(filled, prepend=0.0) @ self.radius[order]) / float(filled[-1])
        return min(average, self.epsilon)

    @property
    def n_rows(self) -> int:
        """The number of rows counted in the regions."""
        return int(self.counts.sum())

    @property
    def is_proved(self) -> bool:
        """Whether the guarantee follows from the stated assumptions alone."""
        return not self.statement.caveats

    @property
    def predictions_vary(self) -> bool:
        """Whether predictions vary within a region, so that statements are about their average."""
        return self.statement.claim is Claim.AVERAGE

    @property
    def design_effect(self) -> float | None:
        """The factor by which variances were larger than for the same number of independent rows.

        None without groups.
        """
        return None if self.statement.groups is None else self.statement.groups.design_effect

    @property
    def draws_rows(self) -> bool:
        """Whether pilot rows or groups were drawn at random, which count in no region."""
        groups = self.statement.groups
        if groups is not None and groups.aside > 0:
            return True
        return self.statement.edges is Edges.OTHER_ROWS or self.statement.looked > 0

    @property
    def is_vacuous(self) -> bool:
        """Whether the guarantee is no better than predicting 1/2 without any data."""
        return self.epsilon >= 0.5

    @property
    def is_weak(self) -> bool:
        """Whether the sentence says little: an epsilon of 0.25 or more, or a vacuous guarantee."""
        return self.epsilon >= _LITTLE and self.stated.epsilon >= _LITTLE

    def with_caveat(self, reason: Text, *, supposition: Text = NO_DIFFERENCE) -> "Guarantee":
        """Return the same numbers as not guaranteed, with the reason.

        Earlier caveats are kept.
        """
        return self.with_facts(caveats=(*self.statement.caveats, Caveat(reason, supposition)))

    def with_facts(self, **facts: Any) -> "Guarantee":
        """Return the same numbers with other fields of the statement."""
        return replace(self, statement=replace(self.statement, **facts))

    def of_rows(self, facts: RowFacts) -> "Guarantee":
        """Return the same numbers, with remarks on how the rows were read."""
        statement = self.statement
        return self.with_facts(
            assumed=tuple(dict.fromkeys((*statement.assumed, *facts.assumed))),
            notes=tuple(dict.fromkeys((*statement.notes, *facts.notes))),
            edges=Edges.OTHER_ROWS
            if facts.cutting and statement.edges is Edges.FIXED
            else statement.edges,
            looked=facts.looked,
            over_seed=statement.over_seed or facts.over_seed,
            n_pooled=len(facts.pooled),
            of_groups=facts.said_of_groups,
            cutting=facts.cutting,
        )

    def epsilon_for(self, mass: float) -> float:
        """Return the epsilon that holds in regions with at least the share `mass` of the
        population.

        One nearly empty region need not spoil the whole guarantee. See `restricted_to`.
        """
        return self.restricted_to(mass).epsilon

    def restricted_to(self, mass: float) -> PartialGuarantee:
        """Leave out the regions with the largest radius, as long as the others have at least `mass`
        of the population.

        The statement is that the kept regions have at least the returned `mass` of the population,
        and that in each of them the true rate is within `epsilon` of the value. It holds as a
        whole, for every `mass` simultaneously, with probability at least `confidence_level` (see
        the notes of the class). If `mass` cannot be guaranteed, because too much may lie outside all
        regions, all regions are kept, and the returned mass is the largest that can be guaranteed.
        """
        mass = Number("a number in (0, 1]").check("mass", mass)
        if not 0.0 < mass <= 1.0:
            raise InvalidValueError("mass", "be a number in (0, 1]", got=repr(mass))
        if self.mass_limits is not None:
            inside = 1.0 - self.mass_limits.outside
            order = np.argsort(-self.radius, kind="stable")
            certified = inside - np.cumsum(self.mass_limits.regions[order])
            n_left_out = min(int(np.count_nonzero(certified >= mass)), order.size - 1)
            epsilon = float(self.radius[order[n_left_out]])
            # keeping a region that is no worse than those kept costs nothing
            kept = self.radius <= epsilon
            left_out = float(self.mass_limits.regions[~kept].sum())
            return PartialGuarantee(max(0.0, inside - left_out), epsilon, kept)
        # regions hold everybody if there are no unseen segments and no edge values that count in
        # none
        everywhere = not self.statement.n_segments and not self.statement.n_uncounted
        kept = np.ones(self.radius.size, dtype=bool)
        return PartialGuarantee(1.0 if everywhere else np.nan, self.epsilon, kept)

    @property
    def stated(self) -> PartialGuarantee:
        """What the sentence is about: all regions, or all but the worst few if that is much more
        informative.

        If regions are left out, `mass` is the share that the sentence names: 0.99, 0.95 or 0.9.
        """
        for mass in _SENTENCE_MASSES if self.is_vacuous else _SENTENCE_MASSES[:1]:
            partial = self.restricted_to(mass)
            if partial.epsilon <= _SENTENCE_GAIN * self.epsilon:
                return replace(partial, mass=mass)
        return self.restricted_to(1.0)

    # The wording. Texts are str in the words of Python users; `calibrant.text.sentences.render`
    # translates them for other tools.

    @property
    def theorem(self) -> str:
        """The theorem behind the guarantee."""
        return self.statement.theorem

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must be true for the guarantee to hold."""
        return tuple(map(words, wording.assumptions(self.statement)))

    @property
    def notes(self) -> tuple[str, ...]:
        """What else a reader should know."""
        return tuple(map(words, wording.notes(self)))

    @property
    def caveat(self) -> str | None:
        """Why nothing is guaranteed, or None; the numbers ignore the caveat."""
        return words(wording.caveat(self.statement)) or None

    @property
    def supposition(self) -> str | None:
        """What would have to be true for the numbers to hold despite the caveat."""
        return words(wording.supposition(self.statement)) or None

    @property
    def advice(self) -> str:
        """What to do about a region with too few rows."""
        return words(wording.advice(self))

    @property
    def weakness(self) -> str | None:
        """Why the guarantee is weak, and what to do about it; None if it is not weak."""
        return words(wording.weakness(self)) if self.is_weak else None

    @property
    def verdict(self) -> Verdict:
        """Whether something is guaranteed that is better than no data."""
        return "ok" if self.is_proved and not self.is_vacuous else "unclear"

    @property
    def sentence(self) -> str:
        """What is guaranteed and under which assumption, in 35 words at most."""
        return words(wording.guarantee_sentence(self))

    @property
    def numbers(self) -> tuple[Quantity, ...]:
        """The bound, its confidence, and the rows behind it."""
        most = self.stated.epsilon
        average = self.average_epsilon
        return (
            Quantity("Off by at most", most, high=most, unit="points"),
            Quantity("On average off by at most", average, high=average, unit="points"),
            Quantity("Confidence", self.confidence_level, unit="share"),
            Quantity("Counted", self.n_rows, unit="row"),
        )

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        """Calibrate new scores, decide, and watch; or what to do about a weak guarantee."""
        weak = (NextStep(self.advice),) if self.is_weak else ()
        return (*weak, *AFTER_FIT)

    def pictures(self) -> tuple[Picture, ...]:
        """The guaranteed limits of each region that has rows."""
        seen = np.flatnonzero(self.counts > 0)
        drawn = Drawn(
            "true rate, guaranteed",
            self.value[seen].tolist(),
            self.value[seen].tolist(),
            self.lower[seen].tolist(),
            self.upper[seen].tolist(),
            titles=[in_words(self.regions[row]) for row in seen.tolist()],
        )
        sure = percent(self.confidence_level)
        text = f"The guaranteed limits of each region, which hold together with {sure} confidence."
        labels = f"{wording.prediction_of(self)}", "true rate"
        return (Picture("What is guaranteed", text, *labels, (drawn,), is_square=True),)

    def tables(self) -> tuple[ResultTable, ...]:
        """The regions: rows, value and limits of each."""
        columns = {
            name: getattr(self, name)
            for name in ("counts", "positives", "value", "lower", "upper", "radius")
        }
        columns |= {"relative_lower": self.relative.lower, "relative_upper": self.relative.upper}
        averaged = self.predictions_vary
        heads = {
            "region": "score",
            "counts": "rows",
            "value": wording.prediction_of(self),
            "lower": "true rate, guaranteed",
            "radius": "bound",
            "relative_lower": "rate / prediction",
        }
        units = {"value": "share", "lower": "share", "radius": "points"}
        shown = ["region", "counts", "value", "lower", "upper"]
        if self.margin is not None and (self.margin > self.radius).any():
            # the limits are wide because the average prediction is not known, as with few groups
            shown = ["region", "counts", "value"]
        if averaged:
            shown.append("radius")
        if self.is_rare:
            shown.extend(("relative_lower", "relative_upper"))
        about = wording.OFF_BY if averaged else ""
        return (
            ResultTable(
                "regions",
                {"region": self.regions, **columns},
                tuple(shown),
                heads,
                about,
                units=units,
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers and the texts of the guarantee as plain JSON values.

        `stated_epsilon` holds for `stated_mass` of the population, as in the sentence. `epsilon`
        holds in all regions. The keys are listed in the documentation, under "The command line".

        >>> from calibrant import BinningCalibrator
        >>> scores = [number / 400 for number in range(400)]
        >>> found = BinningCalibrator(2, pilot=None).fit(scores,
        ...     [score > 0.5 for score in scores]).guarantee_.to_dict()
        >>> found["positive_label"], found["n_rows"], round(found["epsilon"], 3)
        (True, 399, 0.016)
        >>> found["regions"][0]["region"], found["regions"][0]["counts"]
        ('(-inf, 0.5)', 200)
        """
        stated = self.stated
        return {
            **Result.to_dict(self),
            "stated_epsilon": stated.epsilon,
            "stated_mass": plain(stated.mass),
            "read": list(self.read),
        }


def _about_regions(statement: Statement, partition: Partition) -> Statement:
    """The statement, with the facts that follow from the partition."""
    # regions of a function: no bins were asked for
    if not partition.bins_by_segment:
        return replace(statement, edges=Edges.FUNCTION, n_bins=None)
    layout = partition.as_bins().layout
    return replace(
        statement,
        edges=Edges.SAME_ROWS if partition.cuts_own_sample else statement.edges,
        n_segments=len(partition.bins_by_segment) if partition.has_segments else 0,
        n_atoms=layout.n_atoms,
        n_absorbed=layout.absorbed_cells.size,
        n_uncounted=layout.n_uncounted,
    )


def is_guarantee(value: object) -> "TypeIs[Guarantee]":
    """Whether limits are guaranteed for each region; False for a `NoGuarantee` and for None."""
    return isinstance(value, Guarantee)
