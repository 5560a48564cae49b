"""Proper scores: the Brier score with its parts, and the log loss."""

import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from calibrant._typing import ArrayLike
from calibrant.assess.metrics.bin_sums import binned, read_forecasts
from calibrant.assess.metrics.ece import debiased_square
from calibrant.assess.metrics.estimate import Estimate
from calibrant.assess.metrics.independent_units import Units
from calibrant.params.rules import Number, error_budget
from calibrant.sample.sample import Sample

_CLIP = Number(
    "a number strictly between 0 and 0.5, or None",
    0.0,
    0.5,
    open_low=True,
    open_high=True,
)
_NORMAL = "the normal approximation for a mean"
_BOUNDED = (
    "bets against each value of the mean of a bounded loss, which aim at the capital that is needed"
)


@dataclass(frozen=True, slots=True, repr=False)
class BrierScore(Estimate):
    """The Brier score, a valid interval for its expectation, and its decomposition.

    value = calibration + refinement + within_bins.

    Attributes
    ----------
    calibration : float
        Mean of (mean score - rate)^2 over bins: the part that calibration could remove.
    refinement : float
        Mean of rate (1 - rate) over bins: the part that remains for a calibrated score in these
        bins.
    within_bins : float
        The rest, because a bin may have several scores; 0 if every bin has only one score value.
    uncertainty : float
        Brier score of the overall rate.
    resolution : float
        uncertainty - refinement: how much the rates differ from bin to bin.
    debiased_calibration : float
        The calibration part without its upward bias (Bröcker 2012; Ferro and Fricker 2012). It can
        be negative.
    """

    calibration: float = math.nan
    refinement: float = math.nan
    within_bins: float = math.nan
    uncertainty: float = math.nan
    resolution: float = math.nan
    debiased_calibration: float = math.nan


def brier_score(
    y: "ArrayLike | Sample",
    scores: "ArrayLike | None" = None,
    *,
    n_bins: int = 10,
    strategy: str = "auto",
    confidence_level: float = 0.95,
    importance_weight: "ArrayLike | None" = None,
    weight_bound: float | None = None,
    groups: "ArrayLike | None" = None,
    max_group_size: int | None = None,
    pos_label: Hashable = None,
    classes: "ArrayLike | None" = None,
) -> BrierScore:
    """Return the mean squared error of probabilities, and its calibration and refinement parts.

    Guarantee: the expected Brier score lies in [lower, upper] with probability at least
    `confidence_level`, for every distribution. The interval is found by betting on the rows in a
    random order, which depends on the rows. It is for the score only; the parts are plain
    estimates. Assumptions: rows are independent draws from one distribution, and the model was not
    trained on them. With `groups`, the groups are independent draws.

    Parameters
    ----------
    y, scores, n_bins, strategy, confidence_level, pos_label, classes
        As in `calibrant.metrics.ece`. The bins only affect the parts.
    importance_weight, weight_bound : array-like of shape (n,), float, optional
        How much each row counts, and an upper bound on the weights. The interval is then for the
        weighted population. Without a bound it is labelled heuristic.
    groups, max_group_size : array-like of shape (n,), int, optional
        The group of each row, such as its customer, and the largest number of rows that a group
        counts as. The interval is then for rows of new groups. Without a size, it is labelled
        heuristic.

    Returns
    -------
    BrierScore

    Notes
    -----
    With MP_b, FP_b and p_b for a bin's mean score, rate and share of rows: calibration = sum p_b
    (MP_b - FP_b)^2, refinement = sum p_b FP_b (1 - FP_b), within_bins = mean of (s - MP_b)^2 minus
    twice the mean of (s - MP_b)(y - FP_b).

    The loss of a row lies in [0, 1]. Each of the two limits misses with probability at most alpha /
    2, by bets that aim at the required capital (`calibrant.limits.bet_limits`). With
    weights, bets are on w (loss - m), where w is the weight divided by its bound. A group is one
    draw: its loss is the weighted mean over its rows, and w is its weight, at most `max_group_size`
    times the largest weight of a row, divided by that bound.

    References
    ----------
    Murphy (1973), "A new vector partition of the probability score". DeGroot and Fienberg (1983),
    "The comparison and evaluation of forecasters". Waudby-Smith and Ramdas (2024), "Estimating
    means of bounded random variables by betting". Kulldorff (1993), "Optimal control of favorable
    games with a time limit". Stephenson, Coelho and Jolliffe (2008), "Two extra components in the
    Brier score decomposition".

    Examples
    --------
    >>> from calibrant.metrics import brier_score
    >>> score = brier_score([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9], strategy="values")
    >>> round(score.value, 4), round(score.calibration, 4), round(score.refinement,
    ...     4), score.within_bins
    (0.135, 0.01, 0.125, 0.0)
    """
    alpha = error_budget(confidence_level)
    read = read_forecasts(
        y,
        scores,
        pos_label,
        classes,
        importance_weight=importance_weight,
        weight_bound=weight_bound,
        groups=groups,
        max_group_size=max_group_size,
    )
    rows, units = Units.of(read)
    bins = binned(rows, n_bins, strategy)
    losses = (rows.codes - rows.scores) ** 2
    lower, upper = units.limits(losses, alpha)
    overall = units.mean(rows.codes)
    refinement = float(bins.mass @ (bins.rate * (1.0 - bins.rate)))
    off_score = rows.scores - bins.mean_score[bins.index]
    off_label = rows.codes - bins.rate[bins.index]
    return BrierScore(
        name="Brier score",
        value=units.mean(losses),
        lower=lower,
        upper=upper,
        confidence_level=float(confidence_level),
        heuristic=not units.bounded,
        target=f"the expected Brier score{units.population}",
        basis=f"{_BOUNDED}{units.stated_cap}",
        exact=bool(bins.is_value.all()),
        calibration=float(bins.mass @ bins.gap**2),
        refinement=refinement,
        within_bins=units.mean(off_score * (off_score - 2.0 * off_label)),
        uncertainty=overall * (1.0 - overall),
        resolution=overall * (1.0 - overall) - refinement,
        debiased_calibration=debiased_square(bins),
    )


def log_loss(
    y: "ArrayLike | Sample",
    scores: "ArrayLike | None" = None,
    *,
    clip: float | None = None,
    confidence_level: float = 0.95,
    importance_weight: "ArrayLike | None" = None,
    weight_bound: float | None = None,
    groups: "ArrayLike | None" = None,
    max_group_size: int | None = None,
    pos_label: Hashable = None,
    classes: "ArrayLike | None" = None,
) -> Estimate:
    """Return the mean of -log(p), where p is the predicted probability of the observed label.

    Guarantee, with `clip`: the expected loss of the clipped scores lies in [lower, upper] with
    probability at least `confidence_level`, for every distribution. Without `clip` the loss is
    unbounded, so no interval is valid for all distributions. The normal interval is then returned
    and labelled heuristic. Assumptions: as in `brier_score`.

    Parameters
    ----------
    y, scores, confidence_level, importance_weight, weight_bound, groups, max_group_size, pos_label,
    classes
        As in `brier_score`.
    clip : float, default=None
        Scores are clipped to [clip, 1 - clip] first. None does not clip: a label with predicted
        probability 0 then makes the loss infinite.

    Returns
    -------
    Estimate

    References
    ----------
    Good (1952), "Rational decisions".

    Examples
    --------
    >>> from calibrant.metrics import log_loss
    >>> round(log_loss([0, 1, 1], [0.2, 0.7, 0.9]).value, 6)
    0.228393
    >>> log_loss([0, 1, 1], [0.2, 0.7, 0.0]).value
    inf
    """
    alpha = error_budget(confidence_level)
    read = read_forecasts(
        y,
        scores,
        pos_label,
        classes,
        importance_weight=importance_weight,
        weight_bound=weight_bound,
        groups=groups,
        max_group_size=max_group_size,
    )
    rows, units = Units.of(read)
    given = np.where(rows.codes == 1, rows.scores, 1.0 - rows.scores)
    if clip is not None:
        clip = _CLIP.check("clip", clip)
        given = np.clip(given, clip, 1.0 - clip)
    with np.errstate(divide="ignore"):
        losses = -np.log(given)
    value = units.mean(losses)
    lower = 0.0
    upper = math.inf
    if clip is not None:
        lower, upper = units.limits(losses, alpha, ends=(-math.log1p(-clip), -math.log(clip)))
    elif math.isfinite(value) and losses.size > 1:
        radius = float(-ndtri(alpha / 2.0)) * units.standard_error(losses)
        lower = max(0.0, value - radius)
        upper = value + radius
    return Estimate(
        name="log loss",
        value=value,
        lower=lower,
        upper=upper,
        confidence_level=float(confidence_level),
        heuristic=clip is None or not units.bounded,
        target=(
            "the expected log"
            f" loss{'' if clip is None else ' of the clipped scores'}{units.population}"
        ),
        basis=f"{_NORMAL if clip is None else _BOUNDED}{units.stated_cap}",
    )
