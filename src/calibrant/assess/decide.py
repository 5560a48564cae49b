"""From rates and costs to decisions, and their worth: net benefit with bands for all thresholds at once."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from calibrant._optional import pandas
from calibrant._typing import ArrayLike, FloatArray, Frame, IntArray
from calibrant.calibrators.regions.region_calibrator import columns_to_predict
from calibrant.calibrators.score_calibrator import ScoreCalibrator
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee.guarantee import Guarantee
from calibrant.limits.binomial import lower_limit, upper_limit
from calibrant.limits.kolmogorov import kolmogorov_distance
from calibrant.params.arrays import as_numbers, as_scores, check_in_range, check_same_length
from calibrant.params.labels import encode_labels
from calibrant.params.rules import Number, error_budget
from calibrant.sample.added_columns import LookUp
from calibrant.sample.sample import Sample
from calibrant.sample.taken_rows import CountSegments
from calibrant.text.numbers import limits, nearest, percent
from calibrant.text.sentences import TextTable, shown

ACT, DO_NOT, UNKNOWN = "act", "do not act", "cannot tell"
REGION = "calibrant region"
"""A column for the number of each row's region."""
_COST = Number("a number > 0", 0.0, open_low=True)
_PREVALENCE_SHARE = 0.25  # of alpha; the rest is for the two distributions of scores


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """What to do with each row, made by `calibrant.decide`.

    Attributes
    ----------
    action : array of str of shape (n,)
        "act", "do not act" or "cannot tell", for each row; for data of any size, for each region.
    lower, upper : float arrays of shape (n,)
        Limits of the rate in the row's region, or in each region.
    break_even : float
        The rate at which acting and not acting cost the same: cost_false_alarm / (cost_false_alarm + cost_miss).
    cost : float
        Expected cost per row, given the regions of these rows: the mean of what their regions cost, if regions of
        "cannot tell" are decided by the middle of their interval. In the population, regions may occur more often.
    cost_lower, cost_upper : float
        Limits of it.
    confidence_level : float
        All limits hold at once with this probability.
    cost_false_alarm, cost_miss : float
        The costs.
    caveat : str or None
        Why nothing is proved, where the calibrator's guarantee has a caveat.
    rows : int array of shape (n,), or None
        For data of any size: how many rows are in each region.
    """

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

    @property
    def counts(self) -> dict[str, int]:
        """How many rows have each action."""
        rows = np.ones(self.action.size, dtype=np.int64) if self.rows is None else self.rows
        return {name: int(rows[self.action == name].sum()) for name in (ACT, DO_NOT, UNKNOWN)}

    @property
    def said(self) -> str:
        """How many rows have each action, in words."""
        return ", ".join(f"{name}: {count:,}" for name, count in self.counts.items())

    def sentence(self) -> str:
        """What was decided, and what it costs."""
        found = self.counts
        if not any(found.values()):
            return f"{unproved(self.caveat)}There is no row to decide on."
        counts = ", ".join(f"{name} {count:,}" for name, count in found.items())
        return (
            f"{unproved(self.caveat)}With {percent(self.confidence_level)} confidence for all regions at once, of "
            f"{sum(found.values()):,} rows: {counts}. Given the regions of these rows, the expected cost per row is "
            f"{nearest(self.cost)} ({limits(self.cost_lower, self.cost_upper)}). Assumed: what the calibrator's "
            "guarantee assumes, and that these rows are drawn like those it is about."
        )

    __str__ = sentence


def decide(
    calibrator: ScoreCalibrator,
    scores: ArrayLike | Sample,
    *,
    cost_false_alarm: float,
    cost_miss: float,
    segments: ArrayLike | None = None,
) -> Decisions:
    """Decide for each row whether to act, from the proved rate of its region and from what errors cost.

    A region is acted on if its rate is proved to be above the break-even rate, and not acted on if it is proved to be
    below. Otherwise the data cannot tell yet which of the two costs less.

    Claimed: with probability at least the calibrator's `confidence_level`, every "act" and every "do not act" is the
    cheaper of the two for its region as a whole, in all regions at once, and the expected cost, given the regions of
    these rows, lies within its limits. Assumed: what the calibrator's guarantee assumes; rows are new draws from the
    same population. Nothing is claimed about one row, or about part of a region.

    Parameters
    ----------
    calibrator : calibrator of scores, CalibratedClassifier or Model
        Fitted, with intervals of the rate in each region, such as `AnchoredCalibrator` or `BinningCalibrator`.
    scores : array-like of shape (n,), or Sample
        Scores, for a classifier features. Or `calibrant.scored` data of any size: rows are counted by region.
    cost_false_alarm, cost_miss : float
        What it costs to act on a negative, and not to act on a positive; both positive. Only their ratio matters for
        the decision.
    segments : array-like of shape (n,), optional
        For a calibrator with segments.

    Returns
    -------
    Decisions

    Notes
    -----
    Acting on a region with rate p costs cost_false_alarm (1 - p) a row, not acting cost_miss p. They are equal at c =
    cost_false_alarm / (cost_false_alarm + cost_miss). With limits [L, U] of p: act where L > c, do not where U < c.

    The interval is that of the region's rate (`predict_rate_interval`), since the decision is one for the region.

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
    fitted: Any = calibrator if hasattr(calibrator, "fit") else getattr(calibrator, "calibrator", calibrator)
    guarantee = getattr(fitted, "guarantee_", None)
    if not isinstance(guarantee, Guarantee) or not hasattr(fitted, "predict_rate_interval"):
        rule = "be fitted and have intervals of the rate"
        advice = "use AnchoredCalibrator, BinningCalibrator, or a CalibratedClassifier with one of them"
        raise InvalidTypeError("calibrator", rule, got=type(fitted).__name__, advice=advice)
    if isinstance(scores, Sample):
        return _by_region(fitted, guarantee, scores, segments, false_alarm, miss)
    where = {} if segments is None else {"segments": segments}
    lower, upper = np.asarray(fitted.predict_rate_interval(scores, **where)).T
    predicted = _probability(fitted, scores, where)
    action, costs = weighed(predicted, lower, upper, false_alarm, miss)
    cost, least, most = costs.mean(axis=1).tolist() if costs.size else (np.nan, np.nan, np.nan)
    even, level = break_even(false_alarm, miss), guarantee.confidence_level
    return Decisions(action, lower, upper, even, cost, least, most, level, false_alarm, miss, guarantee.caveat)


def _probability(fitted: Any, scores: Any, where: Mapping[str, Any]) -> FloatArray:
    """The predicted probability of the positive class; `predict` of a classifier gives labels."""
    if is_classifier(fitted):
        place = fitted.classes_.tolist().index(fitted.guarantee_.positive_label)
        return np.asarray(fitted.predict_proba(scores, **where))[:, place]
    return np.asarray(fitted.predict(scores, **where))


def unproved(caveat: str | None) -> str:
    """What stands before numbers that rest on a guarantee with a caveat."""
    return "" if caveat is None else f"Nothing is proved: {caveat}. "


def _by_region(
    fitted: Any, guarantee: Guarantee, data: Sample, segments: Any, false_alarm: float, miss: float
) -> Decisions:
    """Decide for each region, and count the rows of data of any size in it."""
    if segments is not None:
        raise InvalidTypeError("segments", "be None: scored(...) names their column", got=shown(segments))
    if not getattr(fitted, "bins_of_score", False):
        raise InvalidTypeError("calibrator", "have bins of the score itself", got=type(fitted).__name__)
    rows = np.zeros(guarantee.value.size, dtype=np.int64)
    refused = 0
    for batch in regions_of(fitted, data):
        rows += np.bincount(batch.column(REGION).drop_null().to_numpy(), minlength=rows.size)
        refused += batch.column(REGION).null_count
    if refused:
        raise _refusal(fitted, data, refused)
    return decided_by_region(guarantee, rows, false_alarm, miss)


def _refusal(fitted: Any, data: Sample, n_rows: int) -> InvalidValueError:
    """The error for rows without a region, the same as for arrays."""
    known, columns = fitted.partition_.bins_by_segment, columns_to_predict(fitted, data)
    sizes = data.fold(CountSegments(columns))
    sizes.faults.check()
    if unseen := [name for name in sizes.rows if name not in known]:
        rule = f"be among those seen in fit ({', '.join(shown(name) for name in list(known)[:10])})"
        return InvalidValueError("segment", rule, f"{shown(unseen[0])}, {n_rows:,} such rows", column=columns.segment)
    return InvalidValueError("score", "lie in the range of the bins", got=f"{n_rows:,} beyond", column=columns.score)


def regions_of(fitted: Any, data: Sample, **added: Any) -> Any:
    """Return a reader of the rows with the number of their region, and with more columns that regions have."""
    columns = {**added, REGION: np.arange(fitted.partition_.n_regions)}
    return data.apply(LookUp(columns_to_predict(fitted, data), fitted.partition_.as_bins(), columns))


def decided_by_region(guarantee: Guarantee, rows: IntArray, false_alarm: float, miss: float) -> Decisions:
    """Decide for each region, with `rows` rows in each."""
    lower, upper = guarantee.lower, guarantee.upper
    action, costs = weighed(guarantee.value, lower, upper, false_alarm, miss)
    cost, least, most = (costs @ rows / rows.sum()).tolist() if rows.any() else (np.nan, np.nan, np.nan)
    even, level = break_even(false_alarm, miss), guarantee.confidence_level
    return Decisions(action, lower, upper, even, cost, least, most, level, false_alarm, miss, guarantee.caveat, rows)


def regions_table(
    guarantee: Guarantee, found: Decisions, rows: IntArray, name_of: Callable[[str], str] = str
) -> TextTable:
    """What was decided for each region, with `rows` rows in each, as text."""
    columns = (
        map(name_of, guarantee.regions),
        (f"{count:,}" for count in rows.tolist()),
        map(limits, found.lower, found.upper),
        map(str, found.action),
    )
    return TextTable(("region", "rows", "true rate lies in", "action"), [*zip(*columns, strict=True)])


def check_cost(name: str, cost: Any) -> float:
    """A cost as a plain float, or an error for one that is not positive."""
    return _COST.check(name, cost)


def break_even(false_alarm: float, miss: float) -> float:
    """The rate at which acting and not acting cost the same."""
    return false_alarm / (false_alarm + miss)


def weighed(
    rate: FloatArray, lower: FloatArray, upper: FloatArray, false_alarm: float, miss: float
) -> tuple[NDArray[np.str_], FloatArray]:
    """The action for each rate, and three rows of costs: as estimated, at least and at most."""
    even = break_even(false_alarm, miss)
    acts = (lower + upper) / 2.0 >= even  # one decision for a region, whose rate alone is known
    rates = np.clip(rate, lower, upper), lower, upper
    costs = np.array([np.where(acts, false_alarm * (1.0 - part), miss * part) for part in rates])
    action = np.where(lower > even, ACT, np.where(upper < even, DO_NOT, UNKNOWN))
    return action, np.stack([costs[0], costs[1:].min(axis=0), costs[1:].max(axis=0)])


@dataclass(frozen=True, slots=True, eq=False)
class NetBenefit:
    """Decision curves of one or more models, with bands that hold for all models and all thresholds at once.

    Attributes
    ----------
    models : tuple of str
        Names of the models.
    thresholds : float array of shape (m,)
        Threshold probabilities, between 0 and 1.
    value, lower, upper : float arrays of shape (n_models, m)
        Net benefit of acting on rows with probability >= threshold, and its limits.
    act_on_all, act_on_all_lower, act_on_all_upper : float arrays of shape (m,)
        Net benefit of acting on every row. Acting on none has net benefit 0.
    confidence_level : float
        All limits hold at once with this probability.
    n_rows : int
        Rows.
    """

    models: tuple[str, ...]
    thresholds: FloatArray
    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    act_on_all: FloatArray
    act_on_all_lower: FloatArray
    act_on_all_upper: FloatArray
    confidence_level: float
    n_rows: int

    def useful(self, model: str) -> NDArray[np.bool_]:
        """At which thresholds the model is proved to be worth more than acting on none and acting on all."""
        row = self.lower[self.models.index(model)]
        return np.asarray((row > 0.0) & (row > self.act_on_all_upper))

    def to_frame(self) -> Frame:
        """Return the curves as a pandas frame, one row for each model and threshold."""
        size = self.thresholds.size
        curves = {name: getattr(self, name).ravel() for name in ("value", "lower", "upper")}
        columns = {
            "model": np.repeat(self.models, size),
            "threshold": np.tile(self.thresholds, len(self.models)),
            **curves,
            "act_on_all": np.tile(self.act_on_all, len(self.models)),
        }
        return pandas().DataFrame(columns)


def net_benefit(
    y: ArrayLike,
    scores: ArrayLike | Mapping[str, ArrayLike],
    *,
    thresholds: ArrayLike | None = None,
    confidence_level: float = 0.9,
    pos_label: Hashable = None,
) -> NetBenefit:
    """Return decision curves: the net benefit of one or more models at every threshold probability, with bands.

    Claimed: with probability at least `confidence_level`, the net benefit of every model at every threshold lies in its
    band, all at once, for every distribution. Assumed: rows are independent draws from one population, and the models
    were not trained on them.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of two classes.
    scores : array-like of shape (n,), or mapping of names to such arrays
        Predicted probabilities of each model, for the same rows.
    thresholds : array-like of shape (m,), optional
        Threshold probabilities strictly between 0 and 1; 0.01, 0.02, ..., 0.99 by default.
    confidence_level : float, default=0.9
        1 - alpha.
    pos_label : object, optional
        The positive class.

    Returns
    -------
    NetBenefit

    Notes
    -----
    At the threshold t net benefit is TP / n - FP / n * t / (1 - t) (Vickers and Elkin 2006): true alarms, less false
    ones at the rate of exchange that t implies. In the population it is p R(t) - (1 - p) F(t) t / (1 - t), with the
    share p of positives, and the shares R and F of positives and negatives at or above t. A quarter of alpha goes to
    exact limits of p. The rest goes to Kolmogorov's distance for the scores of positives and of negatives, which bounds
    R and F at all t at once, ties or not (Massart 1990); models share it evenly.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import net_benefit
    >>> y, p = np.repeat([1, 0], [60, 40]), np.repeat([0.8, 0.3, 0.8, 0.1], [50, 10, 10, 30])
    >>> found = net_benefit(y, p, thresholds=[0.2, 0.5])
    >>> found.value.round(4), found.act_on_all.round(4)
    (array([[0.575, 0.4  ]]), array([0.5, 0.2]))
    """
    alpha = error_budget(confidence_level)
    at = np.arange(1, 100) / 100 if thresholds is None else as_numbers(thresholds, "thresholds")
    if not at.size or at.min() <= 0.0 or at.max() >= 1.0:
        raise InvalidValueError("thresholds", "lie strictly between 0 and 1", got=shown(thresholds))
    models = dict(scores) if isinstance(scores, Mapping) else {"model": scores}
    if not models:
        raise InvalidValueError("scores", "have at least one model", got="none")
    codes, known = encode_labels(y, classes=None, pos_label=pos_label, score_columns=1)
    n, n1 = codes.size, int(codes.sum())
    for_share = _PREVALENCE_SHARE * alpha
    share = n1 / n, float(lower_limit(n1, n, for_share / 2)), float(upper_limit(n1, n, for_share / 2))
    reach = kolmogorov_distance(np.array([n1, n - n1]), (alpha - for_share) / len(models))
    odds = at / (1.0 - at)
    curves = []
    for name, given in models.items():
        label = f"scores of {name}" if isinstance(scores, Mapping) else "scores"
        values = as_scores(given, positive_column=known.positive_index, name=label)
        check_in_range(values, 0.0, 1.0, label)
        check_same_length(values, codes)
        hits, alarms = (_at_or_above(values[codes == code], at) for code in (1, 0))
        best = np.clip(hits + reach[0], 0.0, 1.0), np.clip(alarms - reach[1], 0.0, 1.0)
        worst = np.clip(hits - reach[0], 0.0, 1.0), np.clip(alarms + reach[1], 0.0, 1.0)
        shares = zip(share, ((hits, alarms), worst, best), strict=True)
        curves.append([_worth(part, *above, odds) for part, above in shares])
    value, lower, upper = np.swapaxes(np.array(curves), 0, 1)
    everyone, least, most = (_worth(part, 1.0, 1.0, odds) for part in share)
    names = tuple(map(str, models))
    return NetBenefit(names, at, value, lower, upper, everyone, least, most, float(confidence_level), n)


def _at_or_above(scores: FloatArray, thresholds: FloatArray) -> FloatArray:
    """The share of scores at or above each threshold."""
    below: IntArray = np.searchsorted(np.sort(scores), thresholds, side="left")
    return 1.0 - below / max(scores.size, 1)


def _worth(share: float, hits: Any, alarms: Any, odds: FloatArray) -> FloatArray:
    return np.asarray(share * hits - (1.0 - share) * alarms * odds)
