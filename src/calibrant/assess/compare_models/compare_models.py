"""Is one model better than another? Paired differences on the same rows, with limits that hold for
all pairs.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from calibrant._typing import ArrayLike, CodeArray, FloatArray, Seed
from calibrant.assess.compare_models.model_comparison import (
    AUC,
    BRIER,
    LOG_LOSS,
    ModelComparison,
    PairedDifference,
)
from calibrant.assess.metrics.auc import delong, normal_limits
from calibrant.assess.metrics.bin_sums import read_forecasts
from calibrant.assess.metrics.ece import ece
from calibrant.assess.metrics.independent_units import Units
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.random import RandomSource, fingerprint_of, seed_number
from calibrant.params.rules import CLIP, error_budget
from calibrant.sample.sample import Sample
from calibrant.sample.sources.memory import MemoryRows
from calibrant.text.sentences import shown

PROVED = (BRIER, LOG_LOSS)
TRAINED_BEFORE = "the models were chosen and trained before these rows were looked at"
MOST_STAKED = 0.9  # models are often similar, which large bets can show


def compare_models(
    y: ArrayLike,
    models: Mapping[str, ArrayLike],
    *,
    confidence_level: float = 0.95,
    clip: float = 0.001,
    importance_weight: ArrayLike | None = None,
    weight_bound: float | None = None,
    groups: ArrayLike | None = None,
    max_group_size: int | None = None,
    pos_label: Hashable = None,
    classes: ArrayLike | None = None,
    random_state: Seed = 0,
) -> ModelComparison:
    """Say which of several models is better, by paired differences in loss on the same rows.

    Guarantee: with probability at least `confidence_level` the expected differences in Brier score
    and in clipped log loss lie within their limits, for all pairs of models and both losses
    simultaneously, for every distribution. So you can pick the best model after looking at all of
    them. Assumptions: rows are independent draws from one distribution, and the models were chosen
    and trained before these rows were looked at. Grouped rows, such as several rows per customer,
    are not independent: pass `groups`. Limits for AUC are asymptotic and marked as such. ECE is
    shown without limits.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of two classes.
    models : mapping from name to array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`
        Predicted probabilities of each model for the same rows, in the same order. At least two
        models.
    confidence_level : float, default=0.95
        Confidence that all exact limits hold simultaneously.
    clip : float, default=0.001
        For the log loss, probabilities are clipped to [clip, 1 - clip]. Without a clip the loss has
        no bound, and no limits hold for every distribution. A smaller clip makes wider limits.
    importance_weight, weight_bound : array-like of shape (n,), float, optional
        How much each row counts, such as a survey weight, and an upper bound on the weights, which
        is required. The limits are then for the weighted population.
    groups, max_group_size : array-like of shape (n,), int, optional
        The group of each row, such as its customer, and the largest number of rows that a group
        counts as, which is required. The limits are then for rows of new groups.
    pos_label, classes
        As in `BinningCalibrator`.
    random_state : int, Generator, RandomState or None, default=0
        Seed for the order of the rows, or groups, in which bets are made. The order also depends on
        the rows, so they may be sorted in any way, and the same rows with the same seed give the
        same result. None takes a fresh seed, which the result records.

    Returns
    -------
    ModelComparison

    Notes
    -----
    For K models there are K (K - 1) / 2 pairs. Each pair and loss gets alpha / (K (K - 1)), by
    Bonferroni. A difference in Brier scores lies in [-1, 1], one in clipped log losses in [-m, m]
    with m = log((1 - clip) / clip). Its mean is bounded by bets that aim at the required capital
    (`calibrant.limits.bet_limits`), on rows in a random order; each of the two limits
    gets half of the share. With alpha' the share of a pair and loss, a difference below about 1.1 m
    log(2 / alpha') / n is not found, however similar the models are: rows that were not seen may
    have the largest difference. With weights or groups, the bets are on weighted rows or on sums
    over groups, as in `calibrant.metrics.brier_score`. AUC has its own limits: DeLong's, or limits
    from sums of its influence function over groups (Obuchowski 1997), with Bonferroni over the
    pairs.

    References
    ----------
    Kulldorff (1993), "Optimal control of favorable games with a time limit", SIAM J. Control Optim.
    31. Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting",
    JRSS B 86. DeLong, DeLong and Clarke-Pearson (1988), Biometrics 44. Obuchowski (1997),
    "Nonparametric analysis of clustered ROC curve data", Biometrics 53.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import compare_models
    >>> rng = np.random.default_rng(0)
    >>> rate = rng.uniform(size=5_000)
    >>> y = rng.uniform(size=5_000) < rate
    >>> result = compare_models(y, {"sharp": rate, "dull": 0.25 + 0.5 * rate}, random_state=0)
    >>> result.best
    'sharp'
    >>> print(result.differences[0])
    Brier score of 'sharp' minus that of 'dull': -0.025 to -0.017
    """
    alpha = error_budget(confidence_level)
    clip = CLIP.check("clip", clip)
    if not isinstance(models, Mapping):
        raise InvalidTypeError("models", "be a mapping from name to scores", got=shown(models))
    called = names(models)
    given: dict[str, Any] = {
        "importance_weight": importance_weight,
        "groups": groups,
        "weight_bound": weight_bound,
        "max_group_size": max_group_size,
    }
    rows, probabilities = read(y, models, pos_label, classes, **given)
    rows, units = Units.bounded_of(rows)
    losses = [losses_of(rows.codes, one, clip) for one in probabilities]
    seed = seed_number(random_state)
    # the order of bets must not depend on that of the models
    of_models = sorted(fingerprint_of(one, labels=rows.codes) for one in probabilities)
    units = replace(units, rows=RandomSource.of(seed, "order of bets", *of_models).key)
    pairs = list(combinations(range(len(called)), 2))
    auc, covariance = delong(rows.codes, probabilities, units)
    share = alpha / len(pairs)
    differences: list[PairedDifference] = []
    for one, other in pairs:
        pair = (called[one], called[other])
        differences += _loss_differences(pair, (losses[one], losses[other]), clip, share, units)
        variance = covariance[one, one] + covariance[other, other] - 2.0 * covariance[one, other]
        gap = float(auc[one] - auc[other])
        limits = normal_limits(gap, float(variance), share)
        differences.append(PairedDifference(*pair, AUC, gap, *limits, is_proved=False))
    areas = zip(auc.tolist(), np.diag(covariance).tolist(), strict=True)
    auc_limits = np.clip([normal_limits(*area, alpha) for area in areas], 0.0, 1.0)
    return ModelComparison(
        models=called,
        differences=tuple(differences),
        confidence_level=float(confidence_level),
        clip=clip,
        n_rows=len(rows),
        population=units.stated_population,
        assumptions=(units.assumption, TRAINED_BEFORE),
        brier=np.array([units.mean(loss[BRIER]) for loss in losses]),
        log_loss=np.array([units.mean(loss[LOG_LOSS]) for loss in losses]),
        ece=_eces(rows, probabilities, units),
        auc=auc,
        auc_lower=auc_limits[:, 0],
        auc_upper=auc_limits[:, 1],
        seed=seed,
    )


def _eces(rows: MemoryRows, probabilities: Sequence[FloatArray], units: Units) -> FloatArray:
    """The ECE of each model, in bins of equal width."""
    weights: dict[str, Any] = {"importance_weight": units.row_weights, "classes": (0, 1)}
    found = [ece(rows.codes, one, strategy="uniform", **weights).value for one in probabilities]
    return np.array(found)


def _loss_differences(
    pair: tuple[str, str],
    losses: tuple[Mapping[str, FloatArray], Mapping[str, FloatArray]],
    clip: float,
    alpha: float,
    units: Units,
) -> list[PairedDifference]:
    """The differences between two models in each loss; their limits share alpha."""
    found = []
    for measure in PROVED:
        values = losses[0][measure] - losses[1][measure]
        span = largest_difference(measure, clip)
        limits = units.limits(values, alpha / 2, ends=(-span, span))
        mean = units.mean(values)
        found.append(PairedDifference(*pair, measure, mean, *limits, is_proved=True))
    return found


def losses_of(codes: CodeArray, probabilities: FloatArray, clip: float) -> dict[str, FloatArray]:
    """Brier score and clipped log loss of each row."""
    given = np.where(codes == 1, probabilities, 1.0 - probabilities)
    return {
        BRIER: (1.0 - given) ** 2,
        LOG_LOSS: -np.log(np.clip(given, clip, 1.0 - clip)),
    }


def scaled(values: FloatArray, span: float) -> FloatArray:
    """Differences in [-span, span], rescaled to [0, 1]."""
    return np.clip((values / span + 1.0) / 2.0, 0.0, 1.0)  # beyond by rounding alone


def largest_difference(measure: str, clip: float) -> float:
    """Largest possible difference in a loss between two models."""
    return 1.0 if measure == BRIER else math.log1p(-clip) - math.log(clip)


def names(models: Iterable[Any]) -> tuple[str, ...]:
    """The names of at least two models; they must be distinct."""
    names = tuple(map(str, models))
    if len(names) < 2:
        raise InvalidValueError("models", "be at least two", got=str(len(names)))
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidValueError(
            "models", "have different names", got=f"{repeated[0]!r} more than once"
        )
    return names


def read(
    y: ArrayLike | Sample,
    models: Mapping[str, ArrayLike],
    pos_label: Hashable | None,
    classes: ArrayLike | None,
    **beside: Any,
) -> tuple[MemoryRows, list[FloatArray]]:
    """The rows, and the probabilities from each model; errors name the model."""
    probabilities = []
    for name, scores in models.items():
        try:
            rows = read_forecasts(y, scores, pos_label, classes, **beside)
        except (InvalidValueError, InvalidTypeError) as error:
            if error.parameter in ("scores", "scores and y"):
                error.parameter = f"{error.parameter} of model {str(name)!r}"
            raise
        probabilities.append(np.asarray(rows.scores, dtype=np.float64))
    return rows, probabilities
