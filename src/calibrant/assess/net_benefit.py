"""Net benefit of models at every threshold probability, with bands for all thresholds
simultaneously.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike, CodeArray, FloatArray, IntArray
from calibrant.assess.metrics.bin_sums import CALIBRATE_FIRST, read_forecasts
from calibrant.assess.metrics.independent_units import Units
from calibrant.errors import InvalidValueError
from calibrant.limits.binomial import lower_limit, upper_limit
from calibrant.limits.kolmogorov import kolmogorov_distance
from calibrant.params.arrays import as_numbers, as_scores, check_in_range, check_same_length
from calibrant.params.labels import encode_labels
from calibrant.params.rules import error_budget
from calibrant.sample.reader import bound_of, is_scored, rows_in
from calibrant.sample.sample import Sample
from calibrant.sample.sources.memory import MemoryRows
from calibrant.text.numbers import counted, nearest, percent, rows
from calibrant.text.result import Result
from calibrant.text.result_table import ResultTable
from calibrant.text.sentences import shown

_PREVALENCE_SHARE = 0.25  # share of alpha; the rest is for the two distributions of scores


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NetBenefit(Result):
    """Decision curves for one or more models, with bands that hold for all models and thresholds at
    once.

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
        All limits hold simultaneously with this probability.
    n_rows : int
        Number of rows.
    population : str
        The population, if it differs from that of the rows: "in the weighted population", or "of
        rows of new groups".
    drawn : str
        The assumption about how rows were drawn.
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
    population: str = ""
    drawn: str = "rows are independent draws from one distribution"

    def useful(self, model: str) -> NDArray[np.bool_]:
        """The thresholds at which the model is proved to be better than acting on none and acting
        on all.
        """
        row = self.lower[self.models.index(model)]
        return np.asarray((row > 0.0) & (row > self.act_on_all_upper))

    @property
    def sentence(self) -> str:
        """Where each model is proved useful."""
        told = "; ".join(f"{model!r} {self._where(model)}" for model in self.models)
        about = f" The net benefit is that {self.population}." if self.population else ""
        return (
            f"With {percent(self.confidence_level)} confidence, for all models and thresholds"
            f" simultaneously, from {rows(self.n_rows)}: {told}. Useful means better than acting on"
            f" all rows and better than acting on none.{about}"
        )

    def _where(self, model: str) -> str:
        """The thresholds at which a model is useful, in words."""
        at = self.thresholds[self.useful(model)]
        if not at.size:
            return "is not proved to be useful at any threshold"
        lowest = nearest(at.min())
        highest = nearest(at.max())
        where = lowest if lowest == highest else f"between {lowest} and {highest}"
        return (
            f"is proved to be useful at {at.size:,} of {counted(self.thresholds.size, 'threshold')},"
            f" {where}"
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must be true for the limits to hold."""
        return (
            self.drawn,
            "the models were not trained on these rows",
        )

    def tables(self) -> tuple[ResultTable, ...]:
        """The curves, one row for each model and threshold."""
        size = self.thresholds.size
        curves = {name: getattr(self, name).ravel() for name in ("value", "lower", "upper")}
        columns = {
            "model": np.repeat(self.models, size),
            "threshold": np.tile(self.thresholds, len(self.models)),
            **curves,
            "act_on_all": np.tile(self.act_on_all, len(self.models)),
        }
        return (ResultTable("curves", columns, heads={"value": "net benefit"}),)


def net_benefit(
    y: "ArrayLike | Sample",
    scores: "ArrayLike | Mapping[str, ArrayLike] | None" = None,
    *,
    thresholds: "ArrayLike | None" = None,
    confidence_level: float = 0.9,
    importance_weight: "ArrayLike | None" = None,
    weight_bound: float | None = None,
    groups: "ArrayLike | None" = None,
    max_group_size: int | None = None,
    pos_label: Hashable = None,
    classes: "ArrayLike | None" = None,
) -> NetBenefit:
    """Return decision curves: the net benefit of one or more models at every threshold probability,
    with bands.

    Claimed: with probability at least `confidence_level`, the net benefit of every model at every
    threshold lies in its band, all simultaneously, for every distribution. Assumed: rows are
    independent draws from one population, and the models were not trained on them. With `groups`,
    the groups are independent draws.

    Parameters
    ----------
    y : array-like of shape (n,), or Sample
        Labels of two classes; or labels and scores of one model together, see `calibrant.scored`.
    scores : array-like of shape (n,), or mapping of names to such arrays
        Predicted probabilities of each model, for the same rows.
    thresholds : array-like of shape (m,), optional
        Threshold probabilities strictly between 0 and 1; 0.01, 0.02, ..., 0.99 by default.
    confidence_level : float, default=0.9
        1 - alpha.
    importance_weight, weight_bound : array-like of shape (n,), float, optional
        How much each row counts, and an upper bound on the weights, which is required. The curves
        are then for the weighted population.
    groups, max_group_size : array-like of shape (n,), int, optional
        The group of each row, such as its customer, and the largest number of rows that a group
        counts as, which is required. The curves are then for rows of new groups.
    pos_label, classes
        The positive class; and both classes, if the data may contain only one of them.

    Returns
    -------
    NetBenefit

    Notes
    -----
    At the threshold t, net benefit is TP / n - FP / n * t / (1 - t) (Vickers and Elkin 2006): true
    alarms minus false alarms, weighted by the exchange rate that t implies. In the population, it
    is p R(t) - (1 - p) F(t) t / (1 - t), where p is the share of positives, and R and F are the
    shares of positives and of negatives at or above t. A quarter of alpha goes to exact limits on
    p. The rest goes to Kolmogorov's distance for the scores of positives and of negatives, which
    bounds R and F at all t simultaneously, with or without ties (Massart 1990); models share it
    evenly.

    With weights or groups, it is the mean of b(t) = 1{s >= t} (y - (1 - y) t / (1 - t)), which lies
    between -t / (1 - t) and 1. Bets on the units bound this mean (`Units.limits`); models and
    thresholds share alpha evenly, so fewer thresholds give narrower bands.

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
    bounds = (
        bound_of(y, "weight_bound", weight_bound),
        bound_of(y, "max_group_size", max_group_size),
    )
    beside: dict[str, Any] = {"importance_weight": importance_weight, "groups": groups}
    has_units = any(value is not None for value in (*beside.values(), *bounds))
    if not has_units and not is_scored(y):
        codes, checked = _checked_scores(y, scores, pos_label, classes)
        return _result(_curves_of_rows(codes, checked, at, alpha), at, confidence_level, codes.size)
    models = {
        name: read_forecasts(y, given, pos_label, classes, **beside, weight_bound=bounds[0])
        for name, given in _named(y, scores).items()
    }
    units = {name: Units.bounded_of(read, *bounds) for name, read in models.items()}
    first, of_first = next(iter(units.values()))
    if of_first.row_weights is None:
        plain = {name: read.scores for name, read in models.items()}
        curves = _curves_of_rows(first.codes, plain, at, alpha)
        return _result(curves, at, confidence_level, len(first))
    return replace(
        _result(_curves_of_units(units, at, alpha), at, confidence_level, len(first)),
        population=of_first.population.strip(),
        drawn=of_first.assumption,
    )


class _Curves(NamedTuple):
    """Names of models, the curve and band of each, and the curve and band of acting on all rows."""

    models: tuple[str, ...]
    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    act_on_all: FloatArray
    act_on_all_lower: FloatArray
    act_on_all_upper: FloatArray


def _result(curves: _Curves, at: FloatArray, confidence_level: float, n_rows: int) -> NetBenefit:
    return NetBenefit(
        models=curves.models,
        thresholds=at,
        value=curves.value,
        lower=curves.lower,
        upper=curves.upper,
        act_on_all=curves.act_on_all,
        act_on_all_lower=curves.act_on_all_lower,
        act_on_all_upper=curves.act_on_all_upper,
        confidence_level=float(confidence_level),
        n_rows=n_rows,
    )


def _named(y: Any, scores: Any) -> dict[str, Any]:
    """The scores of each model by name; for a sample, the score column."""
    held = rows_in(y)
    if held is not None:
        return {held.columns.score: scores}
    models = dict(scores) if isinstance(scores, Mapping) else {"model": scores}
    if not models:
        raise InvalidValueError("scores", "have at least one model", got="none")
    return models


def _checked_scores(
    y: Any, scores: Any, pos_label: Hashable, classes: "ArrayLike | None"
) -> tuple[CodeArray, dict[str, FloatArray]]:
    """The labels of plain rows, and the probabilities from each model."""
    codes, known = encode_labels(y, classes=classes, pos_label=pos_label, score_columns=1)
    checked = {}
    for name, given in _named(y, scores).items():
        label = f"scores of {name}" if isinstance(scores, Mapping) else "scores"
        values = as_scores(given, positive_column=known.positive_index, name=label)
        check_in_range(values, 0.0, 1.0, label, CALIBRATE_FIRST)
        check_same_length(values, codes)
        checked[name] = values
    return codes, checked


def _curves_of_rows(
    codes: CodeArray, models: Mapping[str, FloatArray], at: FloatArray, alpha: float
) -> _Curves:
    """Curves for independent rows: exact limits on the rate, and Kolmogorov distances for the
    scores.
    """
    n = codes.size
    n1 = int(codes.sum())
    for_share = _PREVALENCE_SHARE * alpha
    share = (
        n1 / n,
        float(lower_limit(n1, n, for_share / 2)),
        float(upper_limit(n1, n, for_share / 2)),
    )
    reach = kolmogorov_distance(np.array([n1, n - n1]), (alpha - for_share) / len(models))
    odds = at / (1.0 - at)
    curves = []
    for values in models.values():
        hits, alarms = (_at_or_above(values[codes == code], at) for code in (1, 0))
        best = np.clip(hits + reach[0], 0.0, 1.0), np.clip(alarms - reach[1], 0.0, 1.0)
        worst = np.clip(hits - reach[0], 0.0, 1.0), np.clip(alarms + reach[1], 0.0, 1.0)
        shares = zip(share, ((hits, alarms), worst, best), strict=True)
        curves.append([_worth(part, *above, odds) for part, above in shares])
    value, lower, upper = np.swapaxes(np.array(curves), 0, 1)
    everyone, least, most = (_worth(part, 1.0, 1.0, odds) for part in share)
    return _Curves(tuple(map(str, models)), value, lower, upper, everyone, least, most)


def _curves_of_units(
    models: Mapping[str, tuple[MemoryRows, Units]], at: FloatArray, alpha: float
) -> _Curves:
    """Curves for weighted or grouped rows: bets on the net benefit of each unit."""
    for_share = _PREVALENCE_SHARE * alpha
    each = (alpha - for_share) / (len(models) * at.size)
    odds = at / (1.0 - at)
    curves = []
    for read, units in models.values():
        points = []
        for threshold, price in zip(at.tolist(), odds.tolist(), strict=True):
            acted = read.scores >= threshold
            benefit = np.where(acted, np.where(read.codes == 1, 1.0, -price), 0.0)
            low, high = units.limits(benefit, each, ends=(-price, 1.0))
            points.append((units.mean(benefit), low, high))
        curves.append(np.array(points).T)
    value, lower, upper = np.swapaxes(np.array(curves), 0, 1)
    read, units = next(iter(models.values()))
    labels = read.codes.astype(np.float64)
    shares = (units.mean(labels), *units.limits(labels, for_share))
    everyone, least, most = (_worth(part, 1.0, 1.0, odds) for part in shares)
    return _Curves(tuple(map(str, models)), value, lower, upper, everyone, least, most)


def _at_or_above(scores: FloatArray, thresholds: FloatArray) -> FloatArray:
    """The share of scores at or above each threshold."""
    below: IntArray = np.searchsorted(np.sort(scores), thresholds, side="left")
    return 1.0 - below / max(scores.size, 1)


def _worth(share: float, hits: Any, alarms: Any, odds: FloatArray) -> FloatArray:
    return np.asarray(share * hits - (1.0 - share) * alarms * odds)
