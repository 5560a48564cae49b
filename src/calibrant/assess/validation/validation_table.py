"""What model validators put into one table: slope, ratio, an exact test, the parts of the Brier
score, grades.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from calibrant._typing import ArrayLike, Seed
from calibrant.assess.audit.audit import audit
from calibrant.assess.metrics.bin_sums import read_forecasts
from calibrant.assess.metrics.independent_units import Units
from calibrant.assess.validation import measures
from calibrant.assess.validation.calibration_index import calibration_index, isotonic_rates
from calibrant.assess.validation.result import (
    ASYMPTOTIC,
    EXACT_TEST,
    Measure,
    Validation,
)
from calibrant.params.rules import Integer, Only, error_budget
from calibrant.sample.sample import Sample

_DRAWS = 999
_FEWEST_DRAWS = 99
_MOST_WORK = 1e8


def validation_table(
    y: ArrayLike | Sample,
    scores: ArrayLike | None = None,
    *,
    grades: ArrayLike | None = None,
    assigned: Mapping[Hashable, float] | None = None,
    confidence_level: float = 0.95,
    n_draws: int | str = "auto",
    random_state: Seed = 0,
    importance_weight: ArrayLike | None = None,
    weight_bound: float | None = None,
    groups: ArrayLike | None = None,
    max_group_size: int | None = None,
    pos_label: Hashable = None,
    classes: ArrayLike | None = None,
) -> Validation:
    """Return the table that model validators ask for, with what is exact, approximate or only
    measured.

    Whether the scores are calibrated is answered by `audit` at this confidence level, without
    grades; the table quotes its verdict. The p-value of Kuiper's test is one of the figures.

    Guarantee: the limits for expected / observed hold for every distribution of labels given the
    scores; the limits for the Brier score, for every distribution; the limits for grades, for all
    grades simultaneously; the limits for ICI, E50 and E90, as long as the rate does not fall as the
    score rises, for all three simultaneously. If the score is calibrated, the p-value is at most u
    with probability at most u, for every u and number of rows, over random seeds. Slope, intercepts
    and AUC have asymptotic limits; the parts of the Brier score have none. Assumptions: rows are
    independent, and the model was not trained on them. For the Brier score, the rows, or with
    groups whole groups, are draws from one distribution. They may be sorted in any way.

    Parameters
    ----------
    y : array-like of shape (n,), or Sample
        Labels of two classes; or the result of `calibrant.scored`. Its segments are the grades.
    scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`
        Predicted probabilities of the positive class.
    grades : array-like of shape (n,), default=None
        The rating grade of each row.
    assigned : mapping from grade to probability, default=None
        The probability assigned to each grade. None takes the mean score of the grade's rows.
    confidence_level : float, default=0.95
        Confidence in each interval.
    n_draws : int or "auto", default="auto"
        Number of simulated sets of labels for the exact test. "auto" is 999, decreasing to 99 for a
        million rows or more.
    random_state : int, Generator, RandomState or None, default=0
        Seed for the simulated labels of the test, which also depend on the rows: the same rows in
        the same order give the same p-value. Choose it before you look at results: the probability
        is also over these draws, and the claim does not hold for the best of several seeds.
    importance_weight, weight_bound : array-like of shape (n,), float, optional
        How much each row counts, such as a survey weight, and an upper bound on the weights, which
        is required. The results are then about the weighted population, and the test is asymptotic.
    groups, max_group_size : array-like of shape (n,), int, optional
        The group of each row, such as its customer, and the largest number of rows that a group
        counts as, which is required. The results are then about rows of new groups, and the test is
        asymptotic.
    pos_label, classes
        As in `BinningCalibrator`.

    Returns
    -------
    Validation

    Notes
    -----
    *Slope and intercept*: maximum likelihood for logit P(Y = 1) = intercept + slope logit(score),
    with Wald limits. *Intercept, slope 1*: the same with the slope fixed (calibration in the
    large). Scores are clipped to [1e-6, 1 - 1e-6]. If labels are separated, or all scores are
    equal, there is no estimate.

    *Expected / observed*: mean score over mean label. Given the scores, the mean of E[Y | score]
    over the rows lies within binomial limits (`calibrant.limits.non_identical`), which give limits
    on the ratio of the mean score to that mean.

    *Kuiper's test*: the statistic is the range of the cumulative sums of (label - score) / n in the
    order of the scores; tied scores are one step. If the score is calibrated, the labels given the
    scores are Bernoulli draws with known rates. M sets of labels are drawn, and p = (1 + the number
    of sets with a range at least as large) / (1 + M). The draws depend on the seed and on the rows:
    with one fixed set of draws for all data, the p-value for n rows would always be off in the same
    direction.

    *Weights and groups*: expected / observed is E[score] / E[label] in the population. With T and S
    the weighted sums of labels and scores of a row or group, E[T] / E[T + S] is a mean in which T +
    S is the weight, and its limits are found by bets. The same holds for the rates of grades, by
    Bonferroni's rule; with groups, every grade must be among the rows or in `assigned`. The
    variance of slopes comes from sums over rows or groups (the sandwich), and that of AUC from
    Obuchowski (1997). Labels are not independent given the scores, so there is no exact test: the
    differences of each row or group are multiplied by random signs (the wild bootstrap).

    *CORP*: with r the isotonic regression of labels on scores, miscalibration = Brier(score) -
    Brier(r), discrimination = Brier(mean label) - Brier(r), uncertainty = Brier(mean label); Brier
    score = miscalibration - discrimination + uncertainty.

    *ICI, E50, E90*: the mean, the median and the 0.9 quantile of |score - rate at that score| over
    these rows. The value uses r as the rate, as CORP does, less what r shows of a calibrated score's
    noise (without groups; see `calibration_index`). The limits are over all rates within a
    `MonotoneBand` for the same rows: at a score s with the band [L, U] the distance is at least
    that of s from [L, U], and at most max(|s - L|, |s - U|). The lower limit is reached by a rate
    that does not fall; the upper one may not be. With weights or groups, or if the rows refute that
    the rate does not fall, there are no limits.

    References
    ----------
    Austin and Steyerberg (2019), "The Integrated Calibration Index (ICI) and related metrics for
    quantifying the calibration of logistic regression models", Statistics in Medicine 38.
    Cox (1958), "Two further applications of a model for binary regression". Arrieta-Ibarra, Gujral,
    Tannen, Tygert and Xu (2022), "Metrics of calibration for probabilistic predictions", JMLR 23.
    Dimitriadis, Gneiting and Jordan (2021), "Stable reliability diagrams for probabilistic
    classifiers", PNAS 118. Van Calster et al. (2019), "Calibration: the Achilles heel of predictive
    analytics".

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import validation_table
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=4_000)
    >>> table = validation_table(rng.uniform(size=4_000) < scores**2, scores)
    >>> table.verdict
    'problem'
    >>> table.p_value
    0.001
    >>> print(table["expected / observed"])
    expected / observed: 1.512 (exact: 1.446 to 1.582)
    """
    alpha = error_budget(confidence_level)
    draws = (Integer(19) | Only("auto")).check("n_draws", n_draws)
    read = read_forecasts(
        y,
        scores,
        pos_label,
        classes,
        segments=grades,
        importance_weight=importance_weight,
        groups=groups,
        weight_bound=weight_bound,
        max_group_size=max_group_size,
    )
    rows, units = Units.bounded_of(read)
    weighted = units.row_weights is not None
    if isinstance(draws, str):  # fewer for very many rows
        draws = int(np.clip(_MOST_WORK / len(rows), _FEWEST_DRAWS, _DRAWS))
    generator = rows.ordered_source(random_state, "labels of a calibrated score").generator()
    brier = measures.brier(rows.codes, rows.scores, alpha, units)
    order = np.argsort(rows.scores, kind="stable")
    judged = (rows.codes[order], rows.scores[order])
    in_order = units.part(order)
    kuiper, p_value = measures.kuiper_test(*judged, draws, generator, in_order)
    fitted = isotonic_rates(*judged, in_order)
    found = (
        measures.ratio(*judged, alpha, in_order),
        *measures.cox(*judged, alpha, in_order),
        Measure("Kuiper statistic", kuiper, ideal=0.0),
        Measure("p-value of calibration", p_value, basis=ASYMPTOTIC if weighted else EXACT_TEST),
        brier,
        *measures.corp(*judged, fitted, in_order),
        *calibration_index(*judged, fitted, alpha, in_order, generator),
        measures.area(*judged, alpha, in_order),
    )
    return Validation(
        measures=found,
        p_value=p_value,
        audit=audit(Sample(read.without_segments()), confidence_level=confidence_level),
        n_draws=draws,
        grades=measures.grade_table(rows, assigned, alpha, units),
        confidence_level=float(confidence_level),
        n_rows=len(rows),
        n_clipped=measures.n_clipped(rows.scores),
        population=units.stated_population,
    )
