"""Is this score calibrated? What is proved wrong, what is proved right, and what no method can know."""

import math
from collections.abc import Hashable
from typing import Any

import numpy as np

from calibrant._audit.cells import Cells, cells_of_data, finest_bins
from calibrant._audit.report import Audit, AuditTable, Finding
from calibrant._audit.resolutions import Resolutions, resolve
from calibrant._input import shown
from calibrant._params import Integer, Only, error_budget
from calibrant._typing import ArrayLike
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.intervals.bounded_mean import lower_mean
from calibrant.metrics._rows import MOST_VALUES, Rows
from calibrant.partition.segments import segment_kinds
from calibrant.rows import ScoredData
from calibrant.rows.base import check_nothing_beside

__all__ = ["Audit", "AuditTable", "Finding", "audit"]

# Shares of alpha: the limits of all regions; from the rows seen to the population; the mass of values not seen.
_INTERVALS, _POPULATION, _UNSEEN = 0.9, 0.05, 0.05


def audit(
    y: ArrayLike | ScoredData,
    scores: ArrayLike | None = None,
    *,
    confidence_level: float = 0.95,
    segments: ArrayLike | None = None,
    n_bins: int | str = "auto",
    pos_label: Hashable | None = None,
    classes: ArrayLike | None = None,
) -> Audit:
    """Say what is proved of a score's calibration, for every distribution of scores and labels.

    Claimed: with probability at least `confidence_level`, all of the following hold at once. The largest calibration
    error, sup |E[Y | score] - score|, is at least `lower_bound`; the average one, E |E[Y | score] - score|, at least
    `average_lower_bound`; every row of `table` is right; and, for a score with finitely many values, no value that
    was seen is off by more than `upper_bound`. So a calibrated score is called miscalibrated with probability at most
    1 - confidence_level. Assumed: the rows are independent draws from one distribution, and the model behind the
    scores was not trained on them.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoredData
        Labels, of two kinds; or files, a frame or a cluster that hold labels, scores and segments, see
        `calibrant.scored`. For those, n_values beyond 1,000 are not counted.
    scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`
        Predicted probabilities of the positive label, in [0, 1].
    confidence_level : float, default=0.95
        Confidence in everything the audit states, taken together.
    segments : array-like of shape (n,), default=None
        A group per row. Then calibration within each group, E[Y | score, group], is audited, all within one error
        budget, besides that of all rows together.
    n_bins : int or "auto", default="auto"
        Bins of the finest resolution; "auto" is about the cube root of the number of rows.
    pos_label : object, default=None
        The label that a high score speaks for; needed unless the labels are 0 and 1, -1 and 1, or bools.
    classes : pair of labels, default=None
        Both labels, needed where the data may hold one of them only.

    Returns
    -------
    Audit

    Notes
    -----
    *Jensen.* Write D(s) = E[Y | score = s] - s. Over the rows of any region b chosen by looking at the scores alone,
    |mean of D(s_i)| <= mean of |D(s_i)| <= sup |D|: averaging over a region can only shrink calibration error. The
    mean of the scores s_i is known, so what is left is an interval for the mean of E[Y | s_i].

    *Limits.* Given all scores, the labels are independent, with rates E[Y | s_i] that differ within a region. By
    Hoeffding (1956) binomial limits hold for their mean (see `calibrant.intervals.non_identical`); at a single score
    value, where rates do not differ, they are Clopper-Pearson's. Conditioning on the scores costs nothing, makes any
    cuts between scores admissible, and keeps the spread of scores within a region out of the interval.

    *Resolutions.* The scores are cut into n_bins bins of about equal mass, then pairs of neighbours are merged until
    all rows are one region; each resolution has an equal share of alpha. A small error everywhere shows in the coarse
    regions, a large error in a narrow range in the fine ones. `lower_bound` is the largest certified error of any
    region. For the average, errors of regions that do not overlap add up, weighted by their rows; since all limits
    hold at once, the best such sum over regions of all resolutions is certified, A. It bounds the average of |D| over
    the scores seen, an average of independent draws from [0, 1]. Chernoff's bound leads from there to the
    population: n kl(A, q) <= ln(20 / alpha).

    *Tightness.* Where E[Y | score] is continuous, both lower bounds tend to the truth as n grows.

    *Upper bound.* For a score with a continuum of values none exists: between the scores seen, labels could be
    anything (`cor:CI-PS-diameter`). With at most n / 20 (and 1000) distinct values every value is a region, and the
    bound is the largest error not ruled out. Values never seen hold at most `unseen_mass` of the population: by
    McAllester and Ortiz (2003) and McDiarmid's inequality, N1 / n + (1 + sqrt 2) sqrt(ln(2 / tail) / n) with N1 the
    values seen once.

    Of alpha, 90 % goes to the limits, 5 % to the step from the scores seen to the population, and 5 % to the unseen
    mass. With segments, the limits of each segment and those of all rows together have equal parts.

    References
    ----------
    Hoeffding (1956), "On the distribution of the number of successes in independent trials". McAllester and Ortiz
    (2003), "Concentration inequalities for the missing mass and for histogram rule error", JMLR 4. Gupta, Podkopaev
    and Ramdas (2020), "Distribution-free binary classification". Kumar, Liang and Ma (2019), "Verified uncertainty
    calibration", Proposition 3.3: binning underestimates calibration error.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import audit
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=20_000)
    >>> y = rng.uniform(size=20_000) < scores**2
    >>> report = audit(y, scores)
    >>> report.verdict
    'proved miscalibrated by at least 0.21'
    >>> report.worst.direction
    'scores too high'
    >>> audit(rng.uniform(size=20_000) < scores, scores).verdict
    'no evidence'
    """
    alpha = error_budget(confidence_level)
    n_bins = (Integer(1) | Only("auto")).check("n_bins", n_bins)
    if isinstance(y, ScoredData):
        check_nothing_beside(scores=scores, segments=segments)
        groups = cells_of_data(y, n_bins, classes=classes, pos_label=pos_label)
    elif scores is None:
        raise InvalidTypeError("scores", "be an array", got="None (NoneType)")
    else:
        groups = _groups(Rows.of(y, scores, pos_label, classes), segments)
    n_rows = groups[0][1].n_rows
    share = alpha * _INTERVALS / len(groups)
    parts = [resolve(cells, finest_bins(cells.n_rows, n_bins), share) for _, cells in groups]
    table = _table([segment for segment, _ in groups], parts)
    findings = _findings(table)
    within = parts[1:] if len(parts) > 1 else parts
    average = max(parts[0].average_error(), _weighted_average(within))
    upper_bound, reason, unseen = _upper_bound(groups[-len(within) :], within, alpha * _UNSEEN)
    return Audit(
        lower_bound=float(table.error.max()),
        average_lower_bound=lower_mean(average, n_rows, alpha * _POPULATION),
        upper_bound=upper_bound,
        upper_bound_reason=reason,
        unseen_mass=unseen,
        table=table,
        findings=findings,
        confidence_level=float(confidence_level),
        n_rows=n_rows,
        by_segment=len(groups) > 1,
        assumptions=(
            "the rows are independent draws from one distribution",
            "the scores come from a model that was not trained on these rows",
        ),
    )


def _groups(rows: Rows, segments: ArrayLike | None) -> list[tuple[Any, Cells]]:
    """All rows first, then the rows of each segment."""
    groups: list[tuple[Any, Cells]] = [(None, Cells.of_rows(rows))]
    if segments is None:
        return groups
    kinds, inverse = segment_kinds(segments)
    if inverse.size != rows.scores.size:
        raise InvalidValueError(f"segments must have one entry per score, {rows.scores.size}; got {inverse.size}")
    order = np.argsort(inverse, kind="stable")
    parts = np.split(order, np.searchsorted(inverse[order], np.arange(1, len(kinds))))
    return groups + [
        (kind, Cells.of_rows(Rows(rows.scores[chosen], rows.labels[chosen])))
        for kind, chosen in zip(kinds, parts, strict=True)
    ]


def _table(segments: list[Any], parts: list[Resolutions]) -> AuditTable:
    names = ("level", "low", "high", "counts", "mean_score", "positives", "lower", "upper", "error")
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    labels = np.empty(columns["level"].size, dtype=object)
    labels[:] = [segment for segment, part in zip(segments, parts, strict=True) for _ in range(part.level.size)]
    return AuditTable(
        segment=labels,
        resolution=columns.pop("level"),
        rate=columns.pop("positives") / columns["counts"],
        **columns,
    )


def _findings(table: AuditTable) -> tuple[Finding, ...]:
    """The strongest finding of every segment."""
    best: dict[Any, int] = {}
    for row in np.flatnonzero(table.error > 0.0).tolist():
        segment = table.segment[row]
        if segment not in best or table.error[row] > table.error[best[segment]]:
            best[segment] = row
    order = sorted(best.values(), key=lambda row: (-table.error[row], row))
    return tuple(table.finding(row) for row in order)


def _weighted_average(parts: list[Resolutions]) -> float:
    rows = np.array([part.counts[0] for part in parts])
    return float(rows @ np.array([part.average_error() for part in parts]) / rows.sum())


def _many(n_values: int | None) -> str:
    return f"more than {MOST_VALUES:,}" if n_values is None else f"{n_values:,}"


def _upper_bound(
    groups: list[tuple[Any, Any]], parts: list[Resolutions], tail: float
) -> tuple[float | None, str | None, float | None]:
    """The largest error not ruled out at any score value, or why there is none; and the mass of values not seen."""
    for (segment, _), part in zip(groups, parts, strict=True):
        if not part.finite:
            where = "" if segment is None else f" of segment {shown(segment)}"
            rows = int(part.counts[0])
            return (
                None,
                (
                    f"the {rows:,} rows{where} hold {_many(part.n_values)} distinct scores, and such a bound exists "
                    "only for finitely many score values, each seen often enough; for a continuous score no method has "
                    "one (cor:CI-PS-diameter). A binned score, as of BinningCalibrator, has one"
                ),
                None,
            )
    bound = max(float(part.largest_possible[part.level == part.level[-1]].max()) for part in parts)
    n_rows = sum(int(part.counts[0]) for part in parts)
    singletons = sum(part.n_singletons for part in parts)
    unseen = singletons / n_rows + (1.0 + math.sqrt(2.0)) * math.sqrt(math.log(2.0 / tail) / n_rows)
    return bound, None, min(1.0, unseen)
