"""Is this score calibrated? What is shown to be wrong, what is shown to be right, and what no
method can know.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import asdict, replace

from calibrant._typing import ArrayLike, AttributeRows
from calibrant.assess.audit.findings import AVERAGE_SHARE, UNSEEN_SHARE, AuditTable, Resolutions
from calibrant.assess.audit.plain_evidence import PlainEvidence
from calibrant.assess.audit.result import Audit, Bounds
from calibrant.assess.audit.unit_evidence import UnitEvidence
from calibrant.assess.metrics.bin_sums import MOST_VALUES, forecasts_of
from calibrant.assess.subgroups.audit_attributes import audit_attributes, checked_question
from calibrant.params.rules import Flag, Integer, Number, Only, error_budget
from calibrant.sample.reader import in_memory, read_judged, rows_in
from calibrant.sample.rows import Rows
from calibrant.sample.sample import Sample
from calibrant.text.numbers import counted
from calibrant.text.sentences import shown

_TOLERANCE = Number("a number from 0 to below 1", 0.0, 1.0, open_high=True)
_NOT_TRAINED = "the scores come from a model that was not trained on these rows"
_SKIPPED = (
    "at every score, whether a row's label is missing does not depend on the label; averages and"
    " shares are over rows with a label"
)


def audit(
    y: ArrayLike | Sample,
    scores: ArrayLike | None = None,
    *,
    confidence_level: float = 0.95,
    segments: ArrayLike | None = None,
    n_bins: int | str = "auto",
    tolerance: float = 0.0,
    importance_weight: ArrayLike | None = None,
    weight_bound: float | None = None,
    groups: ArrayLike | None = None,
    max_group_size: int | None = None,
    monotone: bool = False,
    attributes: AttributeRows | None = None,
    order: int = 2,
    min_share: float = 0.05,
    target: str = "rows",
    pos_label: Hashable = None,
    classes: ArrayLike | None = None,
) -> Audit:
    """Report what the data show about a score's calibration, for every distribution of scores and
    labels.

    Guarantee: with probability at least `confidence_level`, all of the following hold
    simultaneously. The largest calibration error, sup |E[Y | score] - score|, is at least
    `lower_bound`. The average error, E |E[Y | score] - score|, is at least `average_lower_bound`.
    Every row of `table` is right. For a score with finitely many values, no observed value is off
    by more than `upper_bound`. So a calibrated score is called miscalibrated with probability at
    most 1 - confidence_level. With `segments`, these bounds are still about E[Y | score]. The
    bounds in `within_segments` are about E[Y | score, segment]: they can be positive for a
    calibrated score whose errors in the segments cancel. Assumptions: the rows, or with groups
    whole groups, are independent draws from one distribution, and the model was not trained on
    them.

    Parameters
    ----------
    y : array-like of shape (n,), or Sample
        Labels of two classes; or the result of `calibrant.scored`, for labels, scores and segments
        in files, a frame or a cluster. For these data, at most 1,000 distinct scores are counted.
    scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`
        Predicted probabilities of the positive class, in [0, 1].
    confidence_level : float, default=0.95
        Confidence that all statements of the audit are right.
    segments : array-like of shape (n,), default=None
        The segment of each row. If given, calibration within each segment, E[Y | score, segment],
        is audited too; see `Audit.within_segments`. All statements share one error budget.
    n_bins : int or "auto", default="auto"
        Number of bins at the finest resolution; "auto" is about the cube root of the number of
        rows.
    tolerance : float, default=0
        Errors up to this size do not matter: the score is called miscalibrated only if it is shown
        to be off by more. The bounds themselves stay the same. Useful with many rows, where even
        errors far too small to matter can be shown.
    importance_weight, weight_bound : array-like of shape (n,), float, optional
        How much each row counts, such as a survey weight, and an upper bound on the weights, which
        is required. The results are then about the weighted population.
    groups, max_group_size : array-like of shape (n,), int, optional
        The group of each row, such as its customer, and the largest number of rows that a group
        counts as; None takes the size of the largest group among those that are only used to cut
        the regions. The results are then about rows of new groups. Rows of a group may depend on
        each other in any way.
    monotone : bool, default=False
        Whether to report also what is known about the rate at single scores, under the assumption
        that the rate does not decrease as the score increases; see `Audit.monotone`. This holds at
        `confidence_level` on its own.
    attributes : frame, mapping from names to columns, or list of names, default=None
        Attributes of the rows, such as sex and age: the subgroups that they define are audited too;
        see `Audit.subgroups` and `Audit.subgroups_upper_bound`. Each of the two holds at
        `confidence_level` on its own. Numbers are cut at quartiles; text, booleans and categories
        are taken by value; a missing entry counts as a value. For `calibrant.scored` data, names of
        columns.
    order : int, default=2
        The largest number of attributes that define a subgroup, 1 to 3.
    min_share : float, default=0.05
        The smallest share of the rows that a subgroup must have.
    target : {"rows", "population"}, default="rows"
        Whether the errors of subgroups, and their upper bound, are about the rows at hand or the
        population. With groups or weights, always the population.
    pos_label : object, default=None
        The positive class. Required unless the labels are 0 and 1, -1 and 1, or bools.
    classes : pair of labels, default=None
        Both labels. Required if the data may contain only one of them.

    Returns
    -------
    Audit

    Notes
    -----
    *Jensen.* Write D(s) = E[Y | score = s] - s. Take the rows of any region that was chosen from
    the scores alone. Then |mean of D(s_i)| <= mean of |D(s_i)| <= sup |D|: averaging over a
    region can only reduce calibration error. The mean of the scores s_i is known, so only an
    interval for the mean of E[Y | s_i] is needed.

    *Limits.* Given all scores, the labels are independent, and their rates E[Y | s_i] differ within
    a region. By Hoeffding (1956) binomial limits hold for the mean of the rates (see
    `calibrant.limits.non_identical`). At a single score value the rates are equal, and the limits
    are those of Clopper and Pearson. Conditioning on the scores costs nothing. It allows any cuts
    between scores, and the spread of scores within a region does not widen the interval.

    *Resolutions.* The scores are cut into n_bins bins of about equal mass. Then neighbouring bins
    are merged in pairs until all rows form one region. Each resolution gets an equal share of
    alpha. A small error everywhere shows in the coarse regions, a large error in a narrow range in
    the fine ones. `lower_bound` is the largest error shown of any region or of the spread, below.
    For the average, the errors of regions that do not overlap add up, weighted by their rows. All
    limits hold simultaneously, so the best such sum over regions of all resolutions is shown too;
    call it A. It bounds the average of |D| over the scores seen, which is an average of independent
    draws from [0, 1]. Chernoff's bound extends it to the population: n kl(A, q) <= ln(20 / alpha).

    *Tightness.* Where E[Y | score] is continuous, both lower bounds converge to the truth as n
    grows.

    *Upper bound.* A score with a continuum of values has no upper bound: between the scores seen,
    labels could be anything (Corollary 2 of Gupta, Podkopaev and Ramdas 2020). With at most n / 20
    (and 1000) distinct values, every value is a region, and the bound is the largest error that is
    not ruled out. Values that were never seen have at most a share `unseen_mass` of the population.
    By McAllester and Ortiz (2003) and McDiarmid's inequality this is N1 / n + (1 + sqrt 2)
    sqrt(ln(2 / tail) / n), where N1 is the number of values seen once.

    *Weights and groups.* Labels are then not independent given the scores. A tenth of the rows, or
    of whole groups, is drawn at random to cut the regions. In each region, the limits are found by
    bets on the other rows: on the weighted mean of label minus score, for a row or for the rows of
    a group, with 85% of alpha and Bonferroni's rule. For the average, the pilot rows give each
    region a sign, and the bets are on the mean of label minus score with these signs: it is at most
    the average error. If the pilot rows have few score values, each value is a region too, and the
    largest error that is not ruled out for any of them is an upper bound; bets bound the mass of
    other values. Nothing is reported for segments without pilot rows.

    *Spread.* Scores that are too extreme are too high at one end and too low at the other, and a
    slope slightly below 1 shows in no region. So one more test is about the lowest and the highest
    third of the scores together, by their information s (1 - s): the positives among the highest
    and the negatives among the lowest. If no score is off by more than t, the tail of their number
    is at most a known Poisson-binomial tail, which increases with t. The largest t that it rules
    out is a lower bound on sup |D|. Scores are counted in cells of 0.5 in log odds. With weights
    and groups, the pilot rows choose the thirds, and the bets are on label minus score in the
    highest and score minus label in the lowest.

    Of alpha, 85% is for the limits, 5% for the spread, 5% for the step from the scores seen to the
    population, and 5% for the unseen mass. With segments, the first two shares are divided equally
    among the segments and all rows together, and the other two are halved: one half for the score,
    one for the score within its segment.

    *Subgroups.* Given scores and attributes, labels are independent. *Is any subgroup off?* Labels
    are simulated from the scores many times; the largest surprise over all subgroups is compared
    with those of the simulated labels. If every row's rate is its score, this test, at the full
    alpha, rejects with probability at most alpha, however large the search. Only if it rejects are
    two more questions asked, which share alpha. *Which?* has 0.4 of it: the sum of labels of a
    subgroup against the Poisson-binomial distribution that its scores give. *By how much?* has 0.6:
    five subgroups found in one half of the rows are tested in the other, and the other way round.
    The *upper bound* over all subgroups of the family is a separate statement. See
    `calibrant.assess.subgroups`.

    References
    ----------
    Hoeffding (1956), "On the distribution of the number of successes in independent trials".
    McAllester and Ortiz (2003), "Concentration inequalities for the missing mass and for histogram
    rule error", JMLR 4. Gupta, Podkopaev and Ramdas (2020), "Distribution-free binary
    classification". Kumar, Liang and Ma (2019), "Verified uncertainty calibration", Proposition
    3.3: binning underestimates calibration error.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import audit
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=20_000)
    >>> y = rng.uniform(size=20_000) < scores**2
    >>> report = audit(y, scores)
    >>> print(report.sentence.partition(" (")[0])
    Scores are too high by at least 21.8 points for some; the average error is at least 14.8 points
    >>> report.worst.direction
    'scores too high'
    >>> audit(rng.uniform(size=20_000) < scores, scores).verdict
    'ok'
    """
    alpha = error_budget(confidence_level)
    n_bins = (Integer(1) | Only("auto")).check("n_bins", n_bins)
    tolerance = _TOLERANCE.check("tolerance", tolerance)
    monotone = Flag().check("monotone", monotone)
    question = checked_question(order, min_share, target, confidence_level)
    judged = read_judged(
        y,
        scores,
        classes=classes,
        pos_label=pos_label,
        segments=segments,
        importance_weight=importance_weight,
        weight_bound=weight_bound,
        groups=groups,
        max_group_size=max_group_size,
    )
    evidence = _evidence(judged, n_bins)
    parts, (of_score, *within) = _bounds(evidence, alpha, tolerance)
    by_attributes = None
    if attributes is not None:
        by_attributes = audit_attributes(
            y, judged, attributes, question, pos_label=pos_label, classes=classes
        )
    worst = [part.worst for part in parts if part.worst.error > tolerance]
    n_skipped = 0 if rows_in(y) is None else judged.skipped_rows()
    return Audit(
        **asdict(of_score),
        within_segments=within[0] if within else None,
        table=AuditTable.joined([part.table for part in parts]),
        findings=tuple(sorted(worst, key=lambda finding: -finding.error)),
        confidence_level=float(confidence_level),
        n_rows=parts[0].n_rows,
        assumptions=(*evidence.assumptions, _NOT_TRAINED, *((_SKIPPED,) if n_skipped else ())),
        n_skipped=n_skipped,
        monotone=evidence.band(confidence_level) if monotone else None,
        n_groups=evidence.units.n_units,
        n_set_aside=evidence.n_set_aside,
        population=evidence.units.population,
        by_attributes=by_attributes,
    )


def _evidence(rows: Rows, n_bins: int | str) -> PlainEvidence | UnitEvidence:
    """The rows to audit, with the limits that hold for them; plain rows are counted where they are."""
    bounds = rows.bounds
    columns = rows.columns
    of_units = (columns.weight, columns.group, bounds.weight_bound, bounds.max_group_size)
    if any(one is not None for one in of_units):
        return UnitEvidence.of(forecasts_of(rows), n_bins)
    return PlainEvidence.of(forecasts_of(rows) if in_memory(rows) else rows, n_bins)


def _bounds(
    evidence: PlainEvidence | UnitEvidence, alpha: float, tolerance: float
) -> tuple[list[Resolutions], list[Bounds]]:
    """What is shown about all rows, and then about each segment, with probability 1 - alpha; and the
    bounds: of the score and then, with segments, of the score within its segment.

    A lower bound is from all parts that are shown to be off, an upper bound from those within
    which every error lies.
    """
    n_segments = len(evidence.segments)
    found = [evidence.resolutions(segment, alpha / n_segments) for segment in range(n_segments)]
    parts = [part for part in found if part is not None]
    if len(parts) < n_segments:  # a segment without counted rows: nothing bounds its errors
        parts[1:] = [replace(part, largest_possible=1.0) for part in parts[1:]]
    each = alpha / min(n_segments, 2)
    bounds: list[Bounds] = []
    average = 0.0
    for is_within, off, known in ((False, parts[:1], parts[:1]), (True, parts, parts[1:])):
        if not known:
            break
        # an error of E[Y | score] is an average of errors of E[Y | score, segment]
        shown_off = evidence.average_error(parts, each * AVERAGE_SHARE, within_segments=is_within)
        average = max(average, shown_off)
        reason = next((_no_upper_bound(part) for part in known if not part.finite), None)
        unseen = evidence.unseen_mass(each * UNSEEN_SHARE, within_segments=is_within)
        bounds.append(
            Bounds(
                max(part.worst.error for part in off),
                average,
                None if reason else max(part.largest_possible for part in known),
                reason,
                None if reason else unseen,
                tolerance=tolerance,
            )
        )
    return parts, bounds


def _no_upper_bound(part: Resolutions) -> str:
    segment = part.table.segment[0]
    group = "" if segment is None else f" of {shown(segment)}"
    values = f"more than {MOST_VALUES:,}" if part.n_values is None else f"{part.n_values:,}"
    return (
        f"the {counted(part.n_rows, 'row')}{group} have {values} distinct scores. An upper bound"
        " exists only for a score with finitely many values, each seen often, such as a binned"
        " score. No method has one for a continuous score (Gupta, Podkopaev and Ramdas 2020,"
        " Corollary 2)"
    )
