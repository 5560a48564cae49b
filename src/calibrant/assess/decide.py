"""From rates and costs to decisions."""

from collections.abc import Hashable, Mapping
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
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.kinds import is_guarantee
from calibrant.params.rules import Number
from calibrant.sample.added_columns import LookUp
from calibrant.sample.reader import rows_in
from calibrant.sample.rows import Rows
from calibrant.sample.sample import Sample
from calibrant.sample.taken_rows import CountSegments
from calibrant.text.numbers import limits, nearest, percent
from calibrant.text.numbers import rows as rows_text
from calibrant.text.result import Result
from calibrant.text.result_table import ResultTable
from calibrant.text.sentences import shown

ACT = "act"
DO_NOT = "do not act"
UNKNOWN = "cannot tell"
_MIDDLE = "rows that are too close to call are decided by the middle of their interval"
REGION = "calibrant region"
"""The column with the index of each row's region."""
_COST = Number("a number > 0", 0.0, open_low=True)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Decisions(Result):
    """What to do with each row, made by `calibrant.decide`.

    Attributes
    ----------
    action : array of str of shape (n,)
        "act", "do not act" or "cannot tell", for each row; for `calibrant.scored` data, for each
        region.
    lower, upper : float arrays of shape (n,)
        Limits on the rate in the row's region, or in each region.
    break_even : float
        The rate at which acting and not acting cost the same: cost_false_alarm / (cost_false_alarm
        + cost_miss).
    cost : float
        Expected cost per row, given the regions of these rows: the mean of the costs in their
        regions, if "cannot tell" regions are decided by the middle of their interval. In the
        population, the regions may have other shares.
    cost_lower, cost_upper : float
        Limits on the expected cost.
    confidence_level : float
        All limits hold simultaneously with this probability.
    cost_false_alarm, cost_miss : float
        The costs.
    caveat : str or None
        Why nothing is proved, if the calibrator's guarantee has a caveat.
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
    def sentence(self) -> str:
        """What was decided, and what it costs."""
        found = self.counts
        total = sum(found.values())
        if not total:
            return f"{unproved(self.caveat)}There are no rows to decide on."
        return (
            f"{unproved(self.caveat)}With {percent(self.confidence_level)} confidence for all"
            f" regions simultaneously: of {rows_text(total)}, act on {found[ACT]:,}, leave"
            f" {found[DO_NOT]:,} alone; too close to call: {found[UNKNOWN]:,}. Given the regions of"
            f" these rows, the expected cost per row is {nearest(self.cost)}"
            f" ({limits(self.cost_lower, self.cost_upper)}). Assumed: what the calibrator's"
            " guarantee assumes, and that these rows come from the population it is about."
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not proved, and how the rest is decided."""
        even = (
            "the break-even rate, at which acting and not acting cost the same, is"
            f" {nearest(self.break_even)}"
        )
        found = (even, "nothing is proved for a single row", _MIDDLE)
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
        heads = {"counts": "rows", "lower": "true rate lies in"}
        name = "regions" if self.regions else "decisions"
        return (ResultTable(name, columns, None if self.regions else (), heads),)

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
    """Decide for each row whether to act, from the proved rate in its region and the cost of
    errors.

    Act on a region if its rate is proved to be above the break-even rate; do not act if it is
    proved to be below. Otherwise the data cannot tell yet which of the two costs less.

    Claimed: with probability at least the calibrator's `confidence_level`, every "act" and every
    "do not act" is the cheaper of the two for its region as a whole, in all regions simultaneously,
    and the expected cost, given the regions of these rows, lies within its limits. Assumed: what
    the calibrator's guarantee assumes; rows are new draws from the same population. Nothing is
    claimed about a single row, or about part of a region.

    Parameters
    ----------
    calibrator : calibrator of scores, CalibratedClassifier or Model
        A fitted calibrator with intervals for the rate in each region, such as `AnchoredCalibrator`
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
    (0.25, ['do not act', 'cannot tell', 'act'])
    """
    false_alarm = check_cost("cost_false_alarm", cost_false_alarm)
    miss = check_cost("cost_miss", cost_miss)
    fitted: Any = (
        calibrator if hasattr(calibrator, "fit") else getattr(calibrator, "calibrator", calibrator)
    )
    guarantee: Any = getattr(fitted, "guarantee_", None)
    if hasattr(guarantee, "guarantees"):  # one guarantee for each of several classes
        if segments is not None:
            rule = "be None for more than two classes"
            raise InvalidTypeError("segments", rule, got=shown(segments))
        return _on_class(fitted, guarantee, scores, pos_label, (false_alarm, miss))
    if not is_guarantee(guarantee) or not hasattr(fitted, "predict_rate_interval"):
        rule = "be fitted and have intervals for the rate"
        advice = (
            "use AnchoredCalibrator, BinningCalibrator, or a CalibratedClassifier with one of them"
        )
        raise InvalidTypeError("calibrator", rule, got=type(fitted).__name__, advice=advice)
    if pos_label not in (None, guarantee.positive_label):
        rule = f"be None or {guarantee.positive_label!r}, whose rate is known"
        raise InvalidValueError("pos_label", rule, got=shown(pos_label))
    held = rows_in(scores)
    if held is not None:
        return _by_region(fitted, guarantee, held, segments, false_alarm, miss)
    where = {} if segments is None else {"segments": segments}
    lower, upper = np.asarray(fitted.predict_rate_interval(scores, **where)).T
    predicted = _probability(fitted, scores, where)
    return _of_rows(predicted, lower, upper, guarantee, (false_alarm, miss))


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
    return replace(_of_rows(predicted, lower, upper, own, costs), label=pos_label)


def _of_rows(
    predicted: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    guarantee: Guarantee,
    costs: tuple[float, float],
) -> Decisions:
    """Decide for each row, given its probability and the limits on its region's rate."""
    action, spent = weighed(predicted, lower, upper, *costs)
    cost, least, most = spent.mean(axis=1).tolist() if spent.size else (np.nan, np.nan, np.nan)
    level = guarantee.confidence_level
    proved = (break_even(*costs), cost, least, most, level, *costs, guarantee.caveat)
    return Decisions(action, lower, upper, *proved, assumptions=_assumed(guarantee))


def _assumed(guarantee: Guarantee) -> tuple[str, ...]:
    """The assumptions of the decisions."""
    return (
        *guarantee.assumptions,
        "these rows come from the population that the guarantee is about",
    )


def _probability(fitted: Any, scores: Any, where: Mapping[str, Any]) -> FloatArray:
    """The predicted probability of the positive class; a classifier's `predict` would give labels."""
    if is_classifier(fitted):
        place = fitted.classes_.tolist().index(fitted.guarantee_.positive_label)
        return np.asarray(fitted.predict_proba(scores, **where))[:, place]
    return np.asarray(fitted.predict(scores, **where))


def unproved(caveat: str | None) -> str:
    """The text before numbers that rest on a guarantee with a caveat."""
    return "" if caveat is None else f"Nothing is proved: {caveat}. "


def _by_region(
    fitted: Any, guarantee: Guarantee, data: Rows, segments: Any, false_alarm: float, miss: float
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
    if refused:
        raise _refusal(fitted, data, refused)
    return decided_by_region(guarantee, rows, false_alarm, miss)


def _refusal(fitted: Any, data: Rows, n_rows: int) -> InvalidValueError:
    """The error for rows without a region, the same as for arrays."""
    known = fitted.partition_.bins_by_segment
    columns = columns_to_predict(fitted, data)
    sizes = data.fold(CountSegments(columns))
    sizes.faults.check()
    if unseen := [name for name in sizes.rows if name not in known]:
        rule = f"be among those seen in fit ({', '.join(shown(name) for name in list(known)[:10])})"
        return InvalidValueError(
            "segment", rule, f"{shown(unseen[0])}, {n_rows:,} such rows", column=columns.segment
        )
    return InvalidValueError(
        "score", "lie in the range of the bins", got=f"{n_rows:,} beyond", column=columns.score
    )


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
    lower = guarantee.lower
    upper = guarantee.upper
    action, costs = weighed(guarantee.value, lower, upper, false_alarm, miss)
    cost, least, most = (
        (costs @ rows / rows.sum()).tolist() if rows.any() else (np.nan, np.nan, np.nan)
    )
    even = break_even(false_alarm, miss)
    level = guarantee.confidence_level
    proved = (even, cost, least, most, level, false_alarm, miss, guarantee.caveat)
    return Decisions(action, lower, upper, *proved, rows, guarantee.regions, _assumed(guarantee))


def check_cost(name: str, cost: Any) -> float:
    """A cost as a plain float, or an error for one that is not positive."""
    return _COST.check(name, cost)


def break_even(false_alarm: float, miss: float) -> float:
    """The rate at which acting and not acting cost the same."""
    return false_alarm / (false_alarm + miss)


def weighed(
    rate: FloatArray, lower: FloatArray, upper: FloatArray, false_alarm: float, miss: float
) -> tuple[NDArray[np.str_], FloatArray]:
    """The action for each rate, and three rows of costs: estimated, smallest and largest."""
    even = break_even(false_alarm, miss)
    acts = (lower + upper) / 2.0 >= even  # one decision per region, because only its rate is known
    rates = np.clip(rate, lower, upper), lower, upper
    costs = np.array([np.where(acts, false_alarm * (1.0 - part), miss * part) for part in rates])
    action = np.where(lower > even, ACT, np.where(upper < even, DO_NOT, UNKNOWN))
    return action, np.stack([costs[0], costs[1:].min(axis=0), costs[1:].max(axis=0)])
