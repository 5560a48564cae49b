"""From rates and costs to decisions."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from calibrant._typing import ArrayLike, FloatArray, IntArray
from calibrant.calibrators.regions.region_calibrator import columns_to_predict
from calibrant.calibrators.score_calibrator import ScoreCalibrator
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee.class_wise import ClassWiseGuarantee
from calibrant.guarantee.guarantee import AFTER_FIT, Guarantee, is_guarantee
from calibrant.params.rules import Number
from calibrant.sample.added_columns import LookUp
from calibrant.sample.reader import rows_in
from calibrant.sample.rows import Rows
from calibrant.sample.sample import Sample
from calibrant.sample.taken_rows import TakeSurvey
from calibrant.text.numbers import limits, nearest, percent
from calibrant.text.numbers import rows as rows_text
from calibrant.text.picture import Drawn, Picture, ReferenceLine
from calibrant.text.quantity import NextStep, Quantity
from calibrant.text.result import Result, Verdict
from calibrant.text.result_table import ResultTable
from calibrant.text.sentences import in_words, shown

ACT = "act"
DO_NOT = "do not act"
UNKNOWN = "too close to call"
_MIDDLE = "rows that are too close to call are decided by the middle of their interval"
REGION = "calibrant region"
"""The column with the index of each row's region."""
COST = Number("a number > 0", 0.0, open_low=True)
"""The rule for a cost."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Decisions(Result):
    """What to do with each row, made by `calibrant.decide`.

    Attributes
    ----------
    action : array of str of shape (n,)
        "act", "do not act" or "too close to call", for each row; for `calibrant.scored` data, for each
        region.
    lower, upper : float arrays of shape (n,)
        Limits on the rate in the row's region, or in each region.
    break_even : float
        The rate at which acting and not acting cost the same: cost_false_alarm / (cost_false_alarm
        + cost_miss).
    cost : float
        Expected cost per row, given the regions of these rows: the mean of the costs in their
        regions, if "too close to call" regions are decided by the middle of their interval. In the
        population, the regions may have other shares.
    cost_lower, cost_upper : float
        Limits on the expected cost.
    confidence_level : float
        All limits hold simultaneously with this probability.
    cost_false_alarm, cost_miss : float
        The costs.
    caveat : str or None
        Why nothing is guaranteed, if the calibrator's guarantee has a caveat.
    rows : int array of shape (n,), or None
        For `calibrant.scored` data: the number of rows in each region.
    regions : tuple of str
        For `calibrant.scored` data: the name of each region.
    assumptions : tuple of str
        What must be true.
    label : object
        The class to act on, if there are more than two; otherwise None.
    """

    _also: ClassVar[tuple[str, ...]] = ("is_proved",)

    action: NDArray[np.str_]
    lower: FloatArray
    upper: FloatArray
    break_even: float
    cost: float
    cost_lower: float
    cost_upper: float
    confidence_level: float
    cost_false_alarm: float
    cost_miss: float
    caveat: str | None = None
    rows: IntArray | None = None
    regions: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    label: Hashable = None

    @property
    def is_proved(self) -> bool:
        """Whether the calibrator's guarantee has no caveat."""
        return self.caveat is None

    @property
    def counts(self) -> dict[str, int]:
        """The number of rows for each action."""
        rows = np.ones(self.action.size, dtype=np.int64) if self.rows is None else self.rows
        return {name: int(rows[self.action == name].sum()) for name in (ACT, DO_NOT, UNKNOWN)}

    @property
    def verdict(self) -> Verdict | None:
        """Nothing is judged; but without a guarantee, decisions are not sure."""
        return None if self.is_proved else "unclear"

    @property
    def sentence(self) -> str:
        """What was decided, and on which assumption."""
        found = self.counts
        total = sum(found.values())
        if not total:
            return "There are no rows to decide on."
        if self.caveat is not None:
            return f"Nothing is guaranteed about these decisions: {self.caveat}."
        return (
            f"Act on {found[ACT]:,} of {rows_text(total)}, do not act on {found[DO_NOT]:,};"
            f" {found[UNKNOWN]:,} are too close to call ({percent(self.confidence_level)} confidence,"
            " if they come from the population of the guarantee)."
        )

    @property
    def numbers(self) -> tuple[Quantity, ...]:
        """The rows of each action, and the expected cost."""
        counts = [Quantity(name.capitalize(), n, unit="row") for name, n in self.counts.items()]
        even = Quantity("Break-even rate", self.break_even, unit="share")
        cost = Quantity("Expected cost per row", self.cost, self.cost_lower, self.cost_upper)
        return (*counts, even, cost)

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        """What to do about the rows that are too close to call."""
        if not self.counts[UNKNOWN]:
            return AFTER_FIT[2:]
        why = "Let a person decide the rows that are too close to call, or label more rows"
        return (NextStep(why), *AFTER_FIT[2:])

    def pictures(self) -> tuple[Picture, ...]:
        """Each region with its action, and the break-even rate."""
        if not self.regions:
            return ()
        drawn = []
        for name in (ACT, DO_NOT, UNKNOWN):
            here = np.flatnonzero(self.action == name)
            middle = (self.lower[here] + self.upper[here]) / 2.0
            drawn.append(
                Drawn(
                    name,
                    here.tolist(),
                    middle.tolist(),
                    self.lower[here].tolist(),
                    self.upper[here].tolist(),
                    titles=[in_words(self.regions[one]) for one in here.tolist()],
                    quiet=name == UNKNOWN,
                )
            )
        text = "The guaranteed limits of each region, by action."
        rule = ReferenceLine("break-even rate", self.break_even)
        labels = "region", "true rate"
        return (Picture("Decisions", text, *labels, tuple(drawn), (rule,), y_unit="share"),)

    @property
    def notes(self) -> tuple[str, ...]:
        """The expected cost, and how rows that are too close to call are decided."""
        even = (
            "the break-even rate, at which acting and not acting cost the same, is"
            f" {nearest(self.break_even)}"
        )
        cost = (
            f"given the regions of these rows, the expected cost per row is {nearest(self.cost)}"
            f" ({limits(self.cost_lower, self.cost_upper)})"
        )
        found = (cost, even, "nothing is guaranteed for a single row", _MIDDLE)
        if self.label is None:
            return found
        return (f"to act is to treat a row as class {self.label!r}, against all others", *found)

    def tables(self) -> tuple[ResultTable, ...]:
        """What was decided for each row, or for each region."""
        columns: dict[str, Any] = (
            {"region": self.regions} if self.regions else {"row": range(self.action.size)}
        )
        if self.rows is not None:
            columns["counts"] = self.rows
        columns |= {"lower": self.lower, "upper": self.upper, "action": self.action}
        heads = {"region": "score", "counts": "rows", "lower": "true rate, guaranteed"}
        name = "regions" if self.regions else "decisions"
        shown = None if self.regions else ()
        return (ResultTable(name, columns, shown, heads, units={"lower": "share"}),)

    def to_dict(self) -> dict[str, Any]:
        """The decisions as plain JSON values."""
        return {**Result.to_dict(self), "counts": self.counts}


def decide(
    calibrator: ScoreCalibrator,
    scores: "ArrayLike | Sample",
    *,
    cost_false_alarm: float,
    cost_miss: float,
    segments: "ArrayLike | None" = None,
    pos_label: Hashable = None,
) -> Decisions:
    """Decide for each row whether to act, from the guaranteed rate in its region and the cost of
    errors.

    Act on a region if its rate is guaranteed to be above the break-even rate; do not act if it is
    guaranteed to be below. Otherwise the data cannot tell yet which of the two costs less.

    Guarantee: with probability at least the calibrator's `confidence_level`, every "act" and every
    "do not act" is the cheaper of the two for its region as a whole, in all regions simultaneously,
    and the expected cost, given the regions of these rows, lies within its limits. Assumptions:
    what the calibrator's guarantee assumes; rows are new draws from the same population. Nothing is
    claimed about a single row, or about part of a region.

    Parameters
    ----------
    calibrator : calibrator of scores, CalibratedClassifier or Model
        A fitted calibrator with intervals for the rate in each region, such as `Calibrator`
        or `BinningCalibrator`.
    scores : array-like of shape (n,), or Sample
        Scores, or features for a classifier; or `calibrant.scored` data of any size, whose rows are
        counted by region.
    cost_false_alarm, cost_miss : float
        The cost of acting on a negative, and of not acting on a positive; both must be positive.
        Only their ratio matters for the decision.
    segments : array-like of shape (n,), optional
        For a calibrator with segments.
    pos_label : object, optional
        The class to act on, against all others. Required for a classifier or a calibrator with more
        than two classes. Its guarantee holds for all classes simultaneously, so you may decide on
        each.

    Returns
    -------
    Decisions

    Notes
    -----
    Acting on a region with rate p costs cost_false_alarm (1 - p) per row; not acting costs
    cost_miss p. They are equal at c = cost_false_alarm / (cost_false_alarm + cost_miss). With
    limits [L, U] on p: act if L > c, do not act if U < c.

    The interval is the one for the region's rate (`predict_rate_interval`), because the decision is
    made for the whole region.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import BinningCalibrator, decide
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=5_000)
    >>> y = rng.uniform(size=5_000) < scores
    >>> calibrator = BinningCalibrator(10).fit(scores, y)
    >>> found = decide(calibrator, [0.1, 0.24, 0.6], cost_false_alarm=1, cost_miss=3)
    >>> found.break_even, found.action.tolist()
    (0.25, ['do not act', 'too close to call', 'act'])
    """
    false_alarm = COST.check("cost_false_alarm", cost_false_alarm)
    costs = (false_alarm, COST.check("cost_miss", cost_miss))
    fitted: Any = (
        calibrator if hasattr(calibrator, "fit") else getattr(calibrator, "calibrator", calibrator)
    )
    guarantee: Any = getattr(fitted, "guarantee_", None)
    if hasattr(guarantee, "guarantees"):  # one guarantee for each of several classes
        if segments is not None:
            rule = "be None for more than two classes"
            raise InvalidTypeError("segments", rule, got=shown(segments))
        return _on_class(fitted, guarantee, scores, pos_label, costs)
    if not is_guarantee(guarantee) or not hasattr(fitted, "predict_rate_interval"):
        rule = "be fitted and have intervals for the rate"
        advice = "use Calibrator, BinningCalibrator, or a CalibratedClassifier with one of them"
        raise InvalidTypeError("calibrator", rule, got=type(fitted).__name__, advice=advice)
    if pos_label not in (None, guarantee.positive_label):
        rule = f"be None or {guarantee.positive_label!r}, whose rate is known"
        raise InvalidValueError("pos_label", rule, got=shown(pos_label))
    held = rows_in(scores)
    if held is not None:
        return _by_region(fitted, guarantee, held, segments, costs)
    where = {} if segments is None else {"segments": segments}
    lower, upper = np.asarray(fitted.predict_rate_interval(scores, **where)).T
    if is_classifier(fitted):  # whose `predict` gives labels
        place = fitted.classes_.tolist().index(guarantee.positive_label)
        predicted = np.asarray(fitted.predict_proba(scores, **where))[:, place]
    else:
        predicted = np.asarray(fitted.predict(scores, **where))
    return _decisions(predicted, lower, upper, guarantee, costs)


def _on_class(
    fitted: Any,
    guarantee: ClassWiseGuarantee,
    scores: Any,
    pos_label: Hashable,
    costs: tuple[float, float],
) -> Decisions:
    """Decide for each row whether to act on one of several classes, against all others."""
    known = list(guarantee.guarantees)
    if pos_label not in known:
        rule = f"name the class to act on, one of {known}"
        raise InvalidValueError("pos_label", rule, got=shown(pos_label))
    place = fitted.classes_.tolist().index(pos_label)
    lower, upper = np.asarray(fitted.predict_rate_interval(scores))[:, place].T
    predicted = np.asarray(fitted.predict_proba(scores))[:, place]
    own = replace(guarantee.guarantees[pos_label], confidence_level=guarantee.confidence_level)
    return replace(_decisions(predicted, lower, upper, own, costs), label=pos_label)


def _decisions(
    rate: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    guarantee: Guarantee,
    costs: tuple[float, float],
    rows: IntArray | None = None,
) -> Decisions:
    """Decide for each row, given its probability and the limits on its region's rate; or for each
    region, with so many rows.
    """
    action, spent = weighed(rate, lower, upper, *costs)
    weight = np.ones(rate.size) if rows is None else rows
    mean = spent @ weight / weight.sum() if weight.any() else np.full(3, np.nan)
    cost, least, most = mean.tolist()
    level = guarantee.confidence_level
    even = costs[0] / sum(costs)
    proved = (even, cost, least, most, level, *costs, guarantee.caveat)
    names = () if rows is None else guarantee.regions
    where = "these rows come from the population that the guarantee is about"
    return Decisions(action, lower, upper, *proved, rows, names, (*guarantee.assumptions, where))


def _by_region(
    fitted: Any, guarantee: Guarantee, data: Rows, segments: Any, costs: tuple[float, float]
) -> Decisions:
    """Decide for each region, and count its rows in data of any size."""
    if segments is not None:
        raise InvalidTypeError(
            "segments", "be None: scored(...) names their column", got=shown(segments)
        )
    if not getattr(fitted, "bins_of_score", False):
        raise InvalidTypeError(
            "calibrator", "have bins of the score itself", got=type(fitted).__name__
        )
    rows = np.zeros(guarantee.value.size, dtype=np.int64)
    refused = 0
    for batch in regions_of(fitted, data):
        rows += np.bincount(batch.column(REGION).drop_null().to_numpy(), minlength=rows.size)
        refused += batch.column(REGION).null_count
    if refused:  # the same error as for arrays
        known = fitted.partition_.bins_by_segment
        columns = columns_to_predict(fitted, data)
        sizes = data.fold(TakeSurvey(columns))
        sizes.faults.check()
        if unseen := [name for name in sizes.rows if name not in known]:
            rule = f"be among those seen in fit ({', '.join(map(shown, list(known)[:10]))})"
            got = f"{shown(unseen[0])}, {refused:,} such rows"
            raise InvalidValueError("segment", rule, got, column=columns.segment)
        rule = "lie in the range of the bins"
        raise InvalidValueError("score", rule, got=f"{refused:,} beyond", column=columns.score)
    return decided_by_region(guarantee, rows, *costs)


def regions_of(fitted: Any, data: Rows, **added: Any) -> Any:
    """Return a reader of the rows with the index of their region, and with further columns by
    region.
    """
    columns = {**added, REGION: np.arange(fitted.partition_.n_regions)}
    return data.apply(
        LookUp(columns_to_predict(fitted, data), fitted.partition_.as_bins(), columns)
    )


def decided_by_region(
    guarantee: Guarantee, rows: IntArray, false_alarm: float, miss: float
) -> Decisions:
    """Decide for each region, with `rows` rows in each."""
    limits = (guarantee.lower, guarantee.upper)
    return _decisions(guarantee.value, *limits, guarantee, (false_alarm, miss), rows)


def weighed(
    rate: FloatArray, lower: FloatArray, upper: FloatArray, false_alarm: float, miss: float
) -> tuple[NDArray[np.str_], FloatArray]:
    """The action for each rate, and three rows of costs: estimated, smallest and largest."""
    even = false_alarm / (false_alarm + miss)
    acts = (lower + upper) / 2.0 >= even  # one decision per region, because only its rate is known
    rates = np.clip(rate, lower, upper), lower, upper
    costs = np.array([np.where(acts, false_alarm * (1.0 - part), miss * part) for part in rates])
    action = np.where(lower > even, ACT, np.where(upper < even, DO_NOT, UNKNOWN))
    return action, np.stack([costs[0], costs[1:].min(axis=0), costs[1:].max(axis=0)])
