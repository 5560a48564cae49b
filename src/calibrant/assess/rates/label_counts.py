"""How many labels a rate needs, and the most that a number of labels can show."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from calibrant._typing import FloatArray
from calibrant.assess._fewest_labels import smallest_enough
from calibrant.assess.rates.exact import (
    BOX_SHARE,
    ROUNDING,
    Stratum,
    fewest_positives,
    outcome_order,
    positives_within,
    probabilities,
    stratified_limits,
    upper_tails,
)
from calibrant.assess.rates.goal import ENDLESS, Goal
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.rules import OPEN_UNIT, Integer, Number, Optional, error_budget
from calibrant.text.numbers import counted, percent, points
from calibrant.text.quantity import NextStep, Quantity
from calibrant.text.result import Result
from calibrant.text.result_table import ResultTable
from calibrant.text.sentences import Setting

_UNIT = Number("a number from 0 to 1", 0.0, 1.0)
_MOST_LABELS = 2_000_000
_TOOTH = 200  # most labels that are tried one by one
_FEASIBLE = (50, 100, 200, 500, 1_000, 2_000)
_MOST_EXACT = (
    2_000  # labels with a judge; beyond, widths shrink with the root of the number of labels
)


@dataclass(frozen=True, slots=True, repr=False)
class RatePlan(Result):
    """The number of labels that a rate needs.

    Attributes
    ----------
    n_labels : int or None
        The number of labels that is about enough; None if even labels on all items are not.
    fewest_labels : int or None
        With `at_least` or `at_most`: the fewest labels that can show it, if no label is negative;
        with `at_most`, if none is positive.
    feasible : tuple of (int, int)
        With `at_least` or `at_most`: numbers of labels, and the largest number of negatives allowed
        among them (with `at_most`, of positives), from labels alone.
    width, at_least, at_most, expected_rate, sensitivity, specificity : float or None
        What was asked for.
    n_items : int or None
    confidence_level, probability : float
    """

    n_labels: int | None
    fewest_labels: int | None
    feasible: tuple[tuple[int, int], ...]
    width: float | None
    at_least: float | None
    n_items: int | None
    expected_rate: float | None
    sensitivity: float | None
    specificity: float | None
    confidence_level: float
    probability: float
    at_most: float | None = None

    @property
    def numbers(self) -> tuple[Quantity, ...]:
        """The number of labels."""
        labels = self.fewest_labels if self.n_labels is None else self.n_labels
        return (
            Quantity("Labels", labels),
            Quantity("Confidence", self.confidence_level, unit="share"),
        )

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        """Label items drawn at random, then call `rate`."""
        why = "Label items drawn at random, and ask for the rate"
        goal = "".join(
            f" --{option} {level:g}"
            for option, level in (("at-least", self.at_least), ("at-most", self.at_most))
            if level is not None
        )
        return (NextStep(why, "rate(labels, scores)", f"rate {{rows}}{goal}"),)

    @property
    def sentence(self) -> str:
        """The number of labels, and what it is for."""
        sure = f"with {percent(self.confidence_level)} confidence"
        if self.width is not None:
            width = points(f"{self.width:g}")
            sure = f"at {percent(self.confidence_level)} confidence"
            rate = percent(0.5 if self.expected_rate is None else self.expected_rate)
            if self.n_labels is None:
                return (
                    f"Even with all items labelled, the limits are more than {width} apart {sure}."
                )
            count = counted(self.n_labels, "label")
            return (
                f"With about {count}, the limits are {width} apart {sure}, if the rate is about"
                f" {rate}."
            )
        asked = Goal.of(self.at_least, self.at_most)
        goal = f"a rate of {asked.words}"
        if self.expected_rate is None:
            fewest = (
                f"At least {counted(self.fewest_labels or 0, 'label')} are needed to show {goal}"
                f" {sure}"
            )
            return (
                f"{fewest}, even if none of them is {'positive' if asked.at_most else 'negative'}."
            )
        if self.n_labels is None:
            return (
                f"No number of labels is likely to show {goal} if the rate is"
                f" {percent(self.expected_rate)}."
            )
        return (
            f"With about {counted(self.n_labels, 'label')}, the probability of showing {goal}"
            f" {sure} is about {percent(self.probability)}, if the rate is"
            f" {percent(self.expected_rate)}."
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What numbers of labels can show at best, without a judge."""
        if self.width is not None:
            return ()
        asked = Goal.of(self.at_least, self.at_most)
        found = [feasibility(count, most, asked) for count, most in self.feasible]
        if self.sensitivity is not None:
            more = "may be positive" if asked.at_most else "may fail"
            said = f"This is for labels alone; with a good judge, a few more {more}"
            needs = (
                ""
                if self.expected_rate
                else ". For a number of labels, also give the expected rate"
            )
            found.append(f"{said}{needs}.")
        return tuple(found)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the plan assumes."""
        found = ["items to be labelled are drawn at random, one by one, and looked at once"]
        if self.sensitivity is not None:
            found.append("the judge is as good as stated")
        return tuple(found)

    def tables(self) -> tuple[ResultTable, ...]:
        """Numbers of labels, and the largest number of negatives allowed among them; with `at_most`,
        of positives.
        """
        counts = [count for count, _ in self.feasible]
        most = [number for _, number in self.feasible]
        name = "most_negative" if self.at_most is None else "most_positive"
        return (ResultTable("feasible", {"n_labels": counts, name: most}, shown=()),)


def feasibility(n_labels: int, most: int, goal: Goal) -> str:
    """What a number of labels can show, if at most so many are of the other class.

    >>> feasibility(200, 3, Goal(0.95))
    'With 200 labels, 95% can be shown only if at most 3 fail.'
    >>> feasibility(200, 3, Goal(0.05, at_most=True))
    'With 200 labels, at most 5% can be shown only if at most 3 are positive.'
    """
    share = goal.words if goal.at_most else percent(goal.rate)
    labels = counted(n_labels, "label")
    if most < 0:
        return f"With {labels}, {share} cannot be shown at all."
    if most == 0:
        none = "none is positive" if goal.at_most else "none fails"
        return f"With {labels}, {share} can be shown only if {none}."
    are = "is positive" if most == 1 else "are positive"
    what = are if goal.at_most else "fail"
    return f"With {labels}, {share} can be shown only if at most {most:,} {what}."


def most_negative_labels(
    n_labels: int, n_items: int, at_least: float, confidence_level: float = 0.95
) -> int:
    """The largest number of negative labels with which labels alone still show the rate.

    -1 if these labels cannot show the rate even if none is negative.

    >>> most_negative_labels(200, 10_000, 0.95), most_negative_labels(20, 10_000, 0.95)
    (4, -1)
    """
    alpha = error_budget(confidence_level)
    too_few = math.ceil(at_least * n_items - 1e-9) - 1
    # the probabilities of at least 0, 1, ..., n_labels positive labels, and 0
    tails = upper_tails(probabilities(n_items, np.array([too_few]), n_labels))[0]
    is_shown = tails * (1.0 + ROUNDING) <= alpha
    return n_labels - int(is_shown.argmax())


def plan_rate(
    *,
    width: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    n_items: int | None = None,
    n_labels: int | None = None,
    expected_rate: float | None = None,
    sensitivity: float | None = None,
    specificity: float | None = None,
    confidence_level: float = 0.95,
    probability: float = 0.8,
) -> RatePlan:
    """Return how many labels `rate` needs for limits of a given width, or to show that a rate is
    high or low enough.

    It plans for individual items that are drawn and looked at once, without segments, and for the
    rate among these items; without `n_items`, for the population. Groups, segments and looks while
    labels come in need more labels.

    Without a judge, the probability of showing a rate is exact, and so is what a given number of
    labels and failures can show at best. With a judge, the number is an estimate, based on the limits
    that `rate` would give for typical labels; a good judge allows a few more failures.

    Parameters
    ----------
    width : float, optional
        The distance between the two limits. Give one of `width`, `at_least` and `at_most`.
    at_least, at_most : float, optional
        The rate to show: at least, or at most, this. "At most 10% are bad" is the same question as
        "at least 90% are not bad", and has the same answer.
    n_items : int, optional
        The number of items; None for a very large number.
    n_labels : int, optional
        With `at_least` or `at_most`: a number of labels, for which the plan says how many may fail.
    expected_rate : float, optional
        The rate that you expect. With `at_least` or `at_most`, it is required for a number of
        labels. With `width`, the default is 1/2, the worst case.
    sensitivity, specificity : float, optional
        Shares of the positive items that the judge passes, and of the negative ones that it fails.
        Without them the plan is for labels alone.
    confidence_level : float, default=0.95
        As in `rate`.
    probability : float, default=0.8
        With `at_least` or `at_most`: the probability that the labels show it.

    Returns
    -------
    RatePlan

    Examples
    --------
    >>> from calibrant import plan_rate
    >>> print(plan_rate(at_least=0.95, n_items=10_000, n_labels=200).details)
    At least 59 labels are needed to show a rate of at least 95% with 95% confidence, even if none of them is negative.
    <BLANKLINE>
    Assumptions: items to be labelled are drawn at random, one by one, and looked at once.
    With 200 labels, 95% can be shown only if at most 4 fail.
    >>> plan_rate(width=0.05, n_items=4_000, expected_rate=0.8, sensitivity=0.97,
    ...     specificity=0.95).n_labels
    237
    """  # noqa: E501
    goal = _goal(width, at_least, at_most)
    if (sensitivity is None) != (specificity is None):
        together = ("be given together with ", Setting("specificity"))
        raise InvalidTypeError("sensitivity", together, got=repr(sensitivity))
    alpha = error_budget(confidence_level)
    width = Optional(OPEN_UNIT).check("width", width)
    expected_rate = Optional(OPEN_UNIT).check("expected_rate", expected_rate)
    sensitivity = Optional(_UNIT).check("sensitivity", sensitivity)
    specificity = Optional(_UNIT).check("specificity", specificity)
    probability = OPEN_UNIT.check("probability", probability)
    items = Optional(Integer(1)).check("n_items", n_items)
    asked = Optional(Integer(1)).check("n_labels", n_labels)
    total = items or ENDLESS
    _check_labels(asked, total, goal)
    rate = 0.5 if expected_rate is None else expected_rate
    world = _World(total, rate, sensitivity, specificity, alpha)
    if goal is not None and goal.at_most:
        world = world.mirrored()
    needed: int | None = None
    fewest: int | None = None
    feasible: list[tuple[int, int]] = []
    if width is not None:
        needed = _smallest(lambda count: world.width(count) <= width, total)
    if goal is not None:
        target = goal.mirrored

        def most_negative(count: int) -> int:
            return most_negative_labels(count, total, target, confidence_level)

        fewest = _smallest(lambda count: most_negative(count) >= 0, total)
        sizes = [asked] if asked is not None else [count for count in _FEASIBLE if count <= total]
        feasible = [(count, most_negative(count)) for count in sizes]
        if expected_rate is not None and world.rate > target:
            needed = _labels_to_show(target, world, probability)
    return RatePlan(
        needed,
        fewest,
        tuple(feasible),
        width,
        None if goal is None or goal.at_most else goal.rate,
        items,
        expected_rate,
        sensitivity,
        specificity,
        float(confidence_level),
        probability,
        at_most=goal.rate if goal is not None and goal.at_most else None,
    )


def _goal(width: float | None, at_least: float | None, at_most: float | None) -> Goal | None:
    """The rate to be shown, None for a width; raise an error unless one of the three is given."""
    given = [number for number in (width, at_least, at_most) if number is not None]
    if len(given) != 1:
        names = (Setting("at_least"), " and ", Setting("at_most"))
        rule = ("be given if ", *names, " are not; give exactly one of the three")
        raise InvalidTypeError("width", rule, got=str(len(given)) if given else "none of them")
    return None if width is not None else Goal.of(at_least, at_most)


def _check_labels(n_labels: int | None, n_items: int, goal: Goal | None) -> None:
    """Reject more labels than items, and labels without a rate to show."""
    if n_labels is None:
        return
    if n_labels > n_items:
        most = ("be at most ", Setting("n_items"), f", {n_items:,}")
        raise InvalidValueError("n_labels", most, got=f"{n_labels:,}")
    if goal is None:
        rule = ("be None without ", Setting("at_least"), " or ", Setting("at_most"))
        raise InvalidTypeError("n_labels", rule, got=f"{n_labels}")


@dataclass(frozen=True, slots=True)
class _World:
    """Items and a judge with the expected properties."""

    n_items: int
    rate: float
    sensitivity: float | None
    specificity: float | None
    alpha: float

    def mirrored(self) -> "_World":
        """The same world with the classes swapped: limits on one rate bound the other."""
        return replace(
            self,
            rate=1.0 - self.rate,
            sensitivity=self.specificity,
            specificity=self.sensitivity,
        )

    def width(self, n_labels: int) -> float:
        """The distance between the limits, for the expected labels."""
        if n_labels > _MOST_EXACT and self.sensitivity is not None:
            return math.sqrt(_MOST_EXACT / n_labels) * self.width(_MOST_EXACT)
        strata = [
            Stratum(items, labels, math.floor(labels * positives / items + 1e-9))
            for items, labels, positives in self._strata(n_labels)
        ]
        tail = self.alpha / 2.0
        if len(strata) == 1:
            only = strata[0]
            fewest, most = positives_within(only.n_items, n_labels, only.positives, tail)
        else:
            fewest, most = stratified_limits(strata[0], strata[1], tail)
        return (most - fewest) / self.n_items

    def lower(self, n_labels: int, probability: float) -> float:
        """A one-sided lower limit that is reached with this probability, if labels are divided
        between the strata as expected.

        Limits rise in the order of outcomes, so it is the limit at a quantile of that order.
        """
        if n_labels > _MOST_EXACT and self.sensitivity is not None:
            distance = self.rate - self.lower(_MOST_EXACT, probability)
            return self.rate - math.sqrt(_MOST_EXACT / n_labels) * distance
        strata = self._strata(n_labels)
        laws = [
            probabilities(items, np.array([positives]), labels)[0]
            for items, labels, positives in strata
        ]
        if len(laws) == 1:
            seen = _quantile(laws[0], 1.0 - probability)
            return fewest_positives(self.n_items, n_labels, seen, self.alpha) / self.n_items
        first, second = ((items, labels) for items, labels, _ in strata)
        order = outcome_order(*first, *second, (1.0 - BOX_SHARE) * self.alpha).ravel().argsort()
        chances = np.outer(*laws).ravel()[order]
        outcome = int(order[_quantile(chances, 1.0 - probability)])
        seen1, seen0 = divmod(outcome, second[1] + 1)
        outcomes = Stratum(*first, seen1), Stratum(*second, seen0)
        return stratified_limits(*outcomes, self.alpha)[0] / self.n_items

    def _strata(self, n_labels: int) -> list[tuple[int, int, int]]:
        """The expected items, labels and positive items of each stratum."""
        if self.sensitivity is None or self.specificity is None:
            return [(self.n_items, n_labels, round(self.n_items * self.rate))]
        passed = self.rate * self.sensitivity
        failed = self.rate - passed
        share = passed + (1.0 - self.rate) * (1.0 - self.specificity)
        if not 0.0 < share < 1.0:  # all items have the same verdict
            return [(self.n_items, n_labels, round(self.n_items * self.rate))]
        labels = min(round(share * n_labels), n_labels)
        items = min(max(round(share * self.n_items), labels), self.n_items - n_labels + labels)
        left = self.n_items - items
        return [
            (items, labels, round(items * (passed / share))),
            (left, n_labels - labels, round(left * (failed / (1.0 - share)))),
        ]


def _labels_to_show(target: float, world: _World, probability: float) -> int | None:
    """How many labels show the rate with this probability; None if all items do not."""

    def is_likely(count: int) -> bool:
        return world.lower(count, probability) >= target

    needed = _smallest(is_likely, world.n_items)
    if needed is None or world.sensitivity is not None:
        return needed
    # each label makes it less likely until one more may fail, so fewer may do, too
    fewer = range(max(1, needed - min(_TOOTH, math.ceil(2.0 / (1.0 - target)))), needed)
    return next(filter(is_likely, fewer), needed)


def _quantile(chances: FloatArray, share: float) -> int:
    """The last outcome such that the outcomes before it have at most this total probability."""
    return min(int(np.searchsorted(np.cumsum(chances), share, side="right")), chances.size - 1)


def _smallest(enough: Callable[[int], bool], n_items: int) -> int | None:
    """A number of labels that is enough while one fewer is not; None if all items are not."""
    return 1 if enough(1) else smallest_enough(enough, 1, 16, min(n_items, _MOST_LABELS))
