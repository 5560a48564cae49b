"""Proper scores: the Brier score with its parts, and the log loss."""

import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from calibrant._params import check_real, error_budget
from calibrant._typing import ArrayLike
from calibrant.errors import InvalidValueError
from calibrant.intervals.bounded_mean import bounded_mean
from calibrant.metrics._rows import Rows, gather, mean_radius
from calibrant.metrics.ece import debiased_square
from calibrant.metrics.estimate import Estimate

_BOUNDED = "Chernoff's and the empirical Bernstein bound for the mean of a bounded loss"


@dataclass(frozen=True, slots=True)
class BrierScore(Estimate):
    """The Brier score, a valid interval for its expectation, and its split.

    value = calibration + refinement + within_bins.

    Attributes
    ----------
    calibration : float
        Mean of (mean score - rate)^2 over bins: what calibrating could remove.
    refinement : float
        Mean of rate (1 - rate) over bins: what is left to a calibrated score in these bins.
    within_bins : float
        What the other two miss by treating a bin's scores as one; 0 where every bin holds one score value.
    uncertainty : float
        Brier score of the overall rate.
    resolution : float
        uncertainty - refinement: how far rates differ from bin to bin.
    debiased_calibration : float
        The calibration part without its upward bias (Bröcker 2012; Ferro and Fricker 2012); may be negative.
    """

    calibration: float = math.nan
    refinement: float = math.nan
    within_bins: float = math.nan
    uncertainty: float = math.nan
    resolution: float = math.nan
    debiased_calibration: float = math.nan


def brier_score(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    n_bins: int = 10,
    strategy: str = "auto",
    confidence_level: float = 0.95,
    pos_label: Hashable | None = None,
    classes: ArrayLike | None = None,
) -> BrierScore:
    """Return the mean squared error of probabilities, split into calibration and refinement.

    Claimed: the expected Brier score lies in [lower, upper] with probability at least `confidence_level`, for every
    distribution. The interval is for the score itself; its parts are plain estimates. Assumed: rows are independent
    draws from one distribution, and the model behind the scores was not trained on them.

    Parameters
    ----------
    y, scores, n_bins, strategy, confidence_level, pos_label, classes
        As in `calibrant.metrics.ece`; the bins serve the split only.

    Returns
    -------
    BrierScore

    Notes
    -----
    With MP_b, FP_b and p_b a bin's mean score, rate and share of rows: calibration = sum p_b (MP_b - FP_b)^2,
    refinement = sum p_b FP_b (1 - FP_b), within_bins = mean of (s - MP_b)^2 minus twice that of (s - MP_b)(y - FP_b).

    References
    ----------
    Murphy (1973), "A new vector partition of the probability score". DeGroot and Fienberg (1983), "The comparison and
    evaluation of forecasters". Stephenson, Coelho and Jolliffe (2008), "Two extra components in the Brier score
    decomposition".

    Examples
    --------
    >>> from calibrant.metrics import brier_score
    >>> score = brier_score([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9], strategy="values")
    >>> round(score.value, 4), round(score.calibration, 4), round(score.refinement, 4), score.within_bins
    (0.135, 0.01, 0.125, 0.0)
    """
    alpha = error_budget(confidence_level)
    rows = Rows.of(y, scores, pos_label, classes)
    bins = gather(rows, n_bins, strategy)
    losses = (rows.labels - rows.scores) ** 2
    lower, upper = bounded_mean(losses, alpha)
    overall = float(rows.labels.mean())
    refinement = float(bins.mass @ (bins.rate * (1.0 - bins.rate)))
    return BrierScore(
        name="Brier score",
        value=float(losses.mean()),
        lower=lower,
        upper=upper,
        confidence_level=float(confidence_level),
        heuristic=False,
        target="the expected Brier score",
        basis=_BOUNDED,
        exact=bool(bins.is_value.all()),
        calibration=float(bins.mass @ bins.gap**2),
        refinement=refinement,
        within_bins=float((bins.score_spread - 2.0 * bins.cross_spread).sum()) / rows.scores.size,
        uncertainty=overall * (1.0 - overall),
        resolution=overall * (1.0 - overall) - refinement,
        debiased_calibration=debiased_square(bins),
    )


def log_loss(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    clip: float | None = None,
    confidence_level: float = 0.95,
    pos_label: Hashable | None = None,
    classes: ArrayLike | None = None,
) -> Estimate:
    """Return the mean of -log of the probability given to the label that came.

    Claimed, where `clip` is given: the expected loss of the clipped scores lies in [lower, upper] with probability at
    least `confidence_level`, for every distribution. Without it the loss has no bound, no valid interval exists for
    all distributions, and the normal one that is returned is labelled heuristic.

    Parameters
    ----------
    y, scores, confidence_level, pos_label, classes
        As in `calibrant.metrics.ece`.
    clip : float, default=None
        Scores are moved into [clip, 1 - clip] first. None leaves them as they are: a label that was given probability
        0 makes the loss infinite, as it should.

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
    rows = Rows.of(y, scores, pos_label, classes)
    scored = rows.scores
    if clip is not None:
        clip = check_real("clip", clip, rule="a number strictly between 0 and 0.5, or None")
        if not 0.0 < clip < 0.5:
            raise InvalidValueError(f"clip must be a number strictly between 0 and 0.5, or None; got {clip!r}")
        scored = np.clip(scored, clip, 1.0 - clip)
    given = np.where(rows.labels == 1.0, scored, 1.0 - scored)
    losses = np.full(given.size, np.inf)
    np.log(given, out=losses, where=given > 0.0)
    losses = np.where(given > 0.0, -losses, np.inf)
    value = float(losses.mean())
    if clip is not None:
        least, span = -math.log1p(-clip), math.log1p(-clip) - math.log(clip)
        lower, upper = (
            least + span * limit for limit in bounded_mean(np.clip((losses - least) / span, 0.0, 1.0), alpha)
        )
    else:
        radius = mean_radius(losses, alpha) if math.isfinite(value) else math.inf
        lower, upper = (max(0.0, value - radius), value + radius) if math.isfinite(value) else (0.0, math.inf)
    return Estimate(
        name="log loss",
        value=value,
        lower=lower,
        upper=upper,
        confidence_level=float(confidence_level),
        heuristic=clip is None,
        target="the expected log loss" if clip is None else "the expected log loss of the clipped scores",
        basis="the normal approximation for a mean" if clip is None else _BOUNDED,
    )
