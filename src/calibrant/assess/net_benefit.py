"""Net benefit of models at every threshold probability, with bands for all thresholds
simultaneously.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike, FloatArray
from calibrant.assess.compare_models.compare_models import read
from calibrant.assess.metrics.bin_sums import read_forecasts
from calibrant.assess.metrics.independent_units import Units
from calibrant.errors import InvalidValueError
from calibrant.limits.binomial import lower_limit, upper_limit
from calibrant.limits.kolmogorov import kolmogorov_distance
from calibrant.params.arrays import as_numbers
from calibrant.params.rules import error_budget
from calibrant.sample.reader import rows_in
from calibrant.sample.sample import Sample
from calibrant.sample.sources.memory import MemoryRows
from calibrant.text.numbers import counted, nearest, percent, rows
from calibrant.text.picture import Drawn, Picture, ReferenceLine
from calibrant.text.quantity import Quantity
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
    over_all_lower : float array of shape (n_models, m)
        Lower limits on the net benefit minus that of acting on every row.
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
    over_all_lower: FloatArray
    confidence_level: float
    n_rows: int
    population: str = ""
    drawn: str = "the rows are independent draws from one distribution"

    def useful(self, model: str) -> NDArray[np.bool_]:
        """The thresholds at which the model is shown to be better than acting on none and acting
        on all.
        """
        number = self.models.index(model)
        return np.asarray((self.lower[number] > 0.0) & (self.over_all_lower[number] > 0.0))

    @property
    def sentence(self) -> str:
        """Where each model is shown to be useful."""
        where = "; ".join(f"{model!r} {self._where(model)}" for model in self.models)
        level = percent(self.confidence_level)
        about = ", assumed independent"
        if self.population:
            about = f"; net benefit {self.population}, if {self.drawn}"
        return (
            f"Better than acting on all rows and than acting on none: {where} ({level} confidence, all"
            f" together, {rows(self.n_rows)}{about})."
        )

    def _where(self, model: str) -> str:
        """The thresholds at which a model is useful, in words."""
        at = self.thresholds[self.useful(model)]
        if not at.size:
            return "at no threshold"
        lowest = nearest(at.min())
        highest = nearest(at.max())
        where = lowest if lowest == highest else f"between {lowest} and {highest}"
        return f"at {at.size:,} of {counted(self.thresholds.size, 'threshold')}, {where}"

    @property
    def numbers(self) -> tuple[Quantity, ...]:
        """The rows and the confidence."""
        return (
            Quantity("Counted", self.n_rows, unit="row"),
            Quantity("Confidence", self.confidence_level, unit="share"),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Which population it is about, if not that of the rows."""
        return (f"the net benefit is that {self.population}",) if self.population else ()

    def pictures(self) -> tuple[Picture, ...]:
        """The net benefit of each model with its band, and of acting on all rows."""
        at = self.thresholds.tolist()
        curves = [
            drawn
            for row, name in enumerate(self.models)
            for drawn in (
                Drawn(name, at, self.value[row].tolist(), kind="line", style=row),
                Drawn(
                    name,
                    at,
                    self.value[row].tolist(),
                    self.lower[row].tolist(),
                    self.upper[row].tolist(),
                    kind="band",
                    style=row,
                ),
            )
        ]
        every = Drawn("act on all rows", at, self.act_on_all.tolist(), kind="line", quiet=True)
        text = "The net benefit of acting on the rows at or above each threshold."
        labels = "threshold", "net benefit"
        rule = ReferenceLine("act on none", 0.0)
        return (Picture("Net benefit", text, *labels, (*curves, every), (rule,)),)

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
        curves = {
            name: getattr(self, name).ravel()
            for name in ("value", "lower", "upper", "over_all_lower")
        }
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

    Guarantee: with probability at least `confidence_level`, the net benefit of every model at every
    threshold lies in its band, all simultaneously, for every distribution. Assumptions: rows are
    independent draws from one population, and the models were not trained on them. With `groups`,
    the groups are independent draws.

    Parameters
    ----------
    y : array-like of shape (n,), or Sample
        Labels of two classes; or labels and scores of one model together, see `calibrant.scored`.
    scores : array-like of shape (n,), or mapping of names to such arrays
        Predicted probabilities of each model, for the same rows.
    thresholds : array-like of shape (m,), optional
        Threshold probabilities strictly between 0 and 1; 0.01, 0.02, ..., 0.99 by default. With
        weights or groups, choose them before you look at labels: the bands hold at these thresholds
        only. For rows without either, they hold at all thresholds, however chosen.
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

    Net benefit minus that of acting on all is -p (1 - R) + (1 - p) (1 - F) t / (1 - t), with the same
    p, R and F. Where they lie within their limits, its smallest value over these limits is at the
    upper limits on p and F and the lower one on R, because it falls in p and F and rises in R. This
    limit needs no further share of alpha, and is higher than the difference of two limits, which
    takes p at both ends at once.

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
    how: dict[str, Any] = {
        "pos_label": pos_label,
        "classes": classes,
        "importance_weight": importance_weight,
        "groups": groups,
        "weight_bound": weight_bound,
        "max_group_size": max_group_size,
    }
    if isinstance(scores, Mapping):
        if not scores:
            raise InvalidValueError("scores", "have at least one model", got="none")
        names = tuple(map(str, scores))
        judged, models = read(y, scores, **how)
    else:
        held = rows_in(y)
        names = ("model" if held is None else held.columns.score,)
        judged = read_forecasts(y, scores, **how)
        models = [judged.scores]
    judged, units = Units.bounded_of(judged)
    limits = _limits_of_rows if units.row_weights is None else _limits_of_units
    curves, everyone = limits(judged, models, units, at, alpha)
    value, lower, upper, over_all = np.swapaxes(curves, 0, 1)
    of_all, of_all_lower, of_all_upper = everyone
    return NetBenefit(
        models=names,
        thresholds=at,
        value=value,
        lower=lower,
        upper=upper,
        act_on_all=of_all,
        act_on_all_lower=of_all_lower,
        act_on_all_upper=of_all_upper,
        over_all_lower=over_all,
        confidence_level=float(confidence_level),
        n_rows=len(judged),
        population=units.stated_population.strip(),
        drawn=units.assumption,
    )


def _limits_of_rows(
    judged: MemoryRows, models: Sequence[FloatArray], units: Units, at: FloatArray, alpha: float
) -> tuple[FloatArray, FloatArray]:
    """The curve of each model, its lower and its upper limits, and lower limits on what it gains over
    acting on all rows; and the curve and limits of acting on all rows.

    For independent rows: exact limits on the rate, and Kolmogorov distances for the scores.
    """
    codes = judged.codes
    n1 = int(codes.sum())
    n = codes.size
    for_share = _PREVALENCE_SHARE * alpha
    share = (
        n1 / n,
        float(lower_limit(n1, n, for_share / 2)),
        float(upper_limit(n1, n, for_share / 2)),
    )
    reach = kolmogorov_distance(np.array([n1, n - n1]), (alpha - for_share) / len(models))
    curves = []
    for scores in models:
        own = (np.sort(scores[codes == code]) for code in (1, 0))
        hits, alarms = (1.0 - np.searchsorted(one, at) / max(one.size, 1) for one in own)
        best = np.clip(hits + reach[0], 0.0, 1.0), np.clip(alarms - reach[1], 0.0, 1.0)
        worst = np.clip(hits - reach[0], 0.0, 1.0), np.clip(alarms + reach[1], 0.0, 1.0)
        shares = zip(share, ((hits, alarms), worst, best), strict=True)
        # the gain over acting on all is minus the net benefit of acting on the other rows
        over_all = -_worth(share[2], 1.0 - worst[0], 1.0 - worst[1], at)
        curves.append([*(_worth(part, *above, at) for part, above in shares), over_all])
    return np.array(curves), _of_everyone(share, at)


def _limits_of_units(
    judged: MemoryRows, models: Sequence[FloatArray], units: Units, at: FloatArray, alpha: float
) -> tuple[FloatArray, FloatArray]:
    """The same for weighted or grouped rows: bets on the net benefit of each unit."""
    for_share = _PREVALENCE_SHARE * alpha
    each = (alpha - for_share) / (len(models) * at.size)
    prices = at / (1.0 - at)
    codes = judged.codes
    # the order of bets is drawn for the rows of each model
    draws = [replace(units, rows=replace(judged, scores=scores).fingerprint()) for scores in models]
    curves = []
    for scores, own in zip(models, draws, strict=True):
        points = []
        for threshold, price in zip(at.tolist(), prices.tolist(), strict=True):
            benefit = np.where(scores >= threshold, np.where(codes == 1, 1.0, -price), 0.0)
            limits = own.limits(benefit, each, ends=(-price, 1.0))
            points.append((own.mean(benefit), *limits))
        curves.append(np.array(points).T)
    labels = codes.astype(np.float64)
    share = (units.mean(labels), *draws[0].limits(labels, for_share))
    everyone = _of_everyone(share, at)
    over_all = [curve[1] - everyone[2] for curve in curves]
    return np.array([[*pair[0], pair[1]] for pair in zip(curves, over_all, strict=True)]), everyone


def _worth(share: float, hits: Any, alarms: Any, at: FloatArray) -> FloatArray:
    return np.asarray(share * hits - (1.0 - share) * alarms * (at / (1.0 - at)))


def _of_everyone(shares: tuple[float, ...], at: FloatArray) -> FloatArray:
    """The net benefit of acting on all rows, for each share of positives."""
    return np.array([_worth(share, 1.0, 1.0, at) for share in shares])
