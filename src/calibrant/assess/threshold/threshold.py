"""Thresholds with a guaranteed precision, recall, negative predictive value or specificity."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from calibrant._typing import ArrayLike, FloatArray, Seed
from calibrant.assess.metrics.independent_units import Units
from calibrant.assess.threshold.counted_rows import regions
from calibrant.assess.threshold.cut import Cut
from calibrant.assess.threshold.finder import Search
from calibrant.assess.threshold.proved_threshold import KEPT_BY_WEIGHT, Threshold
from calibrant.calibrators.regions.weighted_rows import kept_rows
from calibrant.errors import GroupCapWarning, InvalidTypeError, InvalidValueError, warn_caller
from calibrant.params.arrays import as_numbers
from calibrant.params.random import seed_number
from calibrant.params.rules import FRACTION_OR_COUNT, OPEN_UNIT, Choice, Number, Only, error_budget
from calibrant.sample.bounds import DataBounds
from calibrant.sample.reader import bound_of, read_judged
from calibrant.sample.rows import Rows
from calibrant.sample.sample import Sample
from calibrant.text.numbers import nearest
from calibrant.text.numbers import rows as rows_text
from calibrant.text.sentences import Setting, words

METHODS = ("auto", "ranks", "look")
_BY_SIDE = {"precision", "npv"}
"""Targets about the rows on one side of the threshold, not about all rows of one class."""
_MOST_RANKED = 10**6  # rows: with more of them, pilot rows are as good and need no sorting


def threshold(
    y: ArrayLike | Sample,
    scores: ArrayLike | None = None,
    *,
    precision: float | None = None,
    recall: float | None = None,
    npv: float | None = None,
    specificity: float | None = None,
    confidence_level: float = 0.9,
    segments: ArrayLike | None = None,
    importance_weight: ArrayLike | None = None,
    weight_bound: float | None = None,
    groups: ArrayLike | None = None,
    max_group_size: int | None = None,
    method: str = "auto",
    start: float | None = None,
    pilot: float | str = "auto",
    unlabelled_scores: ArrayLike | None = None,
    pos_label: Hashable = None,
    classes: ArrayLike | None = None,
    random_state: Seed = 0,
) -> Threshold:
    """Find a threshold with a guaranteed precision, recall, negative predictive value or specificity.

    Rows with score >= threshold are selected. For precision, the result is the lowest guaranteed
    threshold, which selects the most rows; for recall, the highest. For npv, the share of negatives
    among rows that are not selected, it is the highest; for specificity, the lowest. With both
    `precision` and `npv`, rows between the two thresholds should be referred to a person, and both
    hold simultaneously.

    Guarantee: with probability at least `confidence_level` over the draw of the rows, every target
    holds in the population, in every segment simultaneously. Assumptions: rows, or with groups
    whole groups, are independent draws from one population. They may be sorted in any way. Nothing
    is assumed about scores, ties or the shape of the rate.

    Parameters
    ----------
    y : array-like of shape (n,), or Sample
        Labels of two classes; or data of any size, which include the scores: see
        `calibrant.scored`.
    scores : array-like of shape (n,), (n, 1) or (n, 2)
        Scores; higher scores mean that the positive class is more likely.
    precision, recall, npv, specificity : float, optional
        The target: one of them, or precision and npv together.
    confidence_level : float, default=0.9
        1 - alpha.
    segments : array-like of shape (n,), optional
        The segment of each row. Each segment gets its own threshold, and they share alpha.
    importance_weight, weight_bound : array-like of shape (n,), float, optional
        How much each row counts, such as a survey weight, and an upper bound on the weights, which
        is required. Each row is kept with probability weight / bound, drawn with `random_state`.
        The result is then about the weighted population.
    groups : array-like of shape (n,), optional
        The group of each row, such as its customer. Whole groups are drawn, and the result is about
        rows of new groups. Rows of a group may depend on each other in any way.
    max_group_size : int, optional
        A group counts as at most this many rows in each share. The default is the size of the
        largest group among those drawn as a pilot, which are a tenth of the groups or more. If a
        target is then guaranteed that fails among all rows, a warning says so. With weights, only the
        rows that are kept count towards the size of a group.
    method : {"auto", "ranks", "look"}, default="auto"
        For precision and npv. "ranks" tests every score of the rows themselves, without pilot rows.
        "look" draws pilot rows at random, which choose the thresholds to test and are not counted.
        Both are exact for every curve. "auto" is "ranks", but "look" with groups or with more than
        a million rows.
    start : float, optional
        For precision or npv: a threshold that was fixed before you looked at the rows. The tests
        start there and continue over every score, and no pilot rows are drawn.
    pilot : float, int or "auto", default="auto"
        For "look", the fraction or number of pilot rows to draw; "auto" is 15% of the rows, and at
        most a million.
    unlabelled_scores : array-like of shape (m,), optional
        Scores of further rows from the same population, without labels. The share of selected rows
        is then counted among them: with many, it is known nearly exactly. Not available with
        segments, groups or weights.
    pos_label, classes
        The positive class, and both classes if one of them may be missing from the data.
    random_state : int, generator or None, default=0
        Seed of the random draws: rows kept by their weight, pilot rows, or the order in which rows
        with the same score are tested. The draws also depend on the rows: the same rows with the
        same seed give the same result. None takes a fresh seed, which the result records.

    Returns
    -------
    Threshold
        Its `threshold` is None if nothing can be guaranteed; `reason` says why.

    Notes
    -----
    Precision by ranks: let T be the target, and k fixed beforehand. Given the score that k rows
    exceed, these rows are independent draws, and the number of positives among them is Bin(k,
    precision). From there on, every score is tested by an exact binomial tail, until the first test
    fails. Let the scores that fail the target lie between b_1 < f_1, b_2 < f_2 and so on, from the
    top, so that the precision is T at each end. A wrong result must begin in one of these
    stretches, with probability at most alpha since the first test is exact; or begin between
    b_(j-1) and f_j and pass f_j. Because the precision is T both above b_(j-1) and between it and
    f_j, the number of positives above f_j is Bin(N, T) given the number of rows in each of these
    stretches, and so given whether the k-th score lies between the two. So the test at f_j passes
    with probability at most alpha as well, given where the tests begin. In total, this is alpha.
    Several k share alpha by the fallback procedure (Wiens 2003): tests that reach the next start
    pass on their part of alpha. The same proof holds for each part. Rows with the same score are
    tested in a random order, as if the scores had further digits, and the result lies between
    scores. With `start` there is one start, which does not depend on the rows.

    Precision with pilot rows ("look"): the pilot rows, including their labels, fix the thresholds.
    These are tested in decreasing order until the first test fails. If any threshold that fails the
    target passes its test, so does the first of them.

    Importance weights: rows kept with probability w / bound are independent draws from the
    population in which each row counts by its weight, and all proofs hold for them. Kept rows of a
    group may depend on each other, and the groups with kept rows are independent draws.

    Recall rho: with n positives, let r be the largest number with P(Bin(n, 1 - rho) <= r - 1) <=
    alpha. The threshold is the r-th smallest score of a positive. This is exact, with or without
    ties.

    Rows without labels are independent of the labelled rows, and so of the threshold. The number of
    them that it selects is binomial. Its exact limits take a tenth of the error budget of the
    limits other than the targets.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import threshold
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=5_000)
    >>> y = rng.uniform(size=5_000) < scores
    >>> found = threshold(y, scores, precision=0.8)
    >>> print(found.sentence)  # doctest: +NORMALIZE_WHITESPACE
    At least 80% of the rows with a score >= about 0.6364 are positive (90% confidence, if new rows
    are like these).
    >>> found.threshold
    0.6363778754449418
    >>> found.predict([0.5, 0.7])
    array([False,  True])
    """
    targets = _checked_targets(precision=precision, recall=recall, npv=npv, specificity=specificity)
    alpha = error_budget(confidence_level)
    _check_search(method, pilot, start, targets)
    seed = seed_number(random_state)
    weight_bound = bound_of(y, "weight_bound", weight_bound)
    max_group_size = bound_of(y, "max_group_size", max_group_size)
    data = read_judged(
        y,
        scores,
        classes=classes,
        pos_label=pos_label,
        segments=segments,
        groups=groups,
        importance_weight=importance_weight,
    )
    unlabelled = _unlabelled(unlabelled_scores, data, weight_bound)
    data = _kept_by_weight(data, weight_bound, seed)
    grouped = data.columns.group is not None
    data, n_rows, positive = _counted(data)
    method = _chosen_method(method, grouped, n_rows, start)
    if grouped or method == "ranks":
        data = data.collect()
    search = Search(data, targets, alpha, n_rows, pilot, seed, max_group_size, unlabelled)
    begin = float(start) if start is not None and n_rows > 0 else None
    cuts = _found_cuts(search, method, begin)
    _warn_of_cap(search, max_group_size)
    return Threshold(
        cuts,
        float(confidence_level),
        method if begin is None else "start",
        search.n_rows,
        search.n_drawn,
        positive,
        _assumptions(search, weight_bound, begin, unlabelled),
        search.max_group_size if grouped else None,
        search.above_cap if grouped else None,
        seed,
    )


def _checked_targets(**asked: float | None) -> dict[str, float]:
    """The given targets: one of them, or precision and npv together."""
    targets = {
        name: OPEN_UNIT.check(name, level) for name, level in asked.items() if level is not None
    }
    if len(targets) != 1 and set(targets) != _BY_SIDE:
        rule = "be one of precision, recall, npv and specificity, or precision and npv together"
        raise InvalidTypeError("the target", rule, got=" and ".join(targets) or "none")
    return targets


def _counted(data: Rows) -> tuple[Rows, int, Hashable]:
    """The rows with their classes, their number, and the positive class."""
    try:
        known = data.known_classes()
    except InvalidValueError:
        data.tally(regions({name: np.empty(0) for name in data.sizes()}))  # names the wrong labels
        raise
    n_rows = sum(data.sizes().values())
    return data.with_classes(known.labels, known.positive), n_rows, known.positive


def _check_search(
    method: str, pilot: float | str, start: float | None, targets: dict[str, float]
) -> None:
    """Raise an error for search settings that do not exist, or do not apply to these targets."""
    Choice(METHODS).check("method", method)
    (FRACTION_OR_COUNT | Only("auto")).check("pilot", pilot)
    if start is None:
        return
    Number().check("start", start)
    if len(targets) > 1 or method == "look" or not targets.keys() <= _BY_SIDE:
        alone = (
            "be used with one target, precision or npv, and without ",
            Setting("method", "look"),
        )
        raise InvalidTypeError("start", alone, got=repr(start))


def _kept_by_weight(data: Rows, weight_bound: float | None, seed: int) -> Rows:
    """Rows kept by their weight: draws from the weighted population, so that everything guaranteed
    holds for it.

    Weights need a bound, and a bound needs weights: after this, rows were kept by weight if there
    is a bound.
    """
    if data.columns.weight is None and weight_bound is None:
        return data
    rows = data.collect()
    alone = replace(rows.without_groups(), bounds=DataBounds(weight_bound=weight_bound))
    return kept_rows(rows, Units.bounded_of(alone)[1].bound, seed)


def _chosen_method(method: str, grouped: bool, n_rows: int, start: float | None) -> str:
    if grouped and (method == "ranks" or start is not None):
        look = ("be used with ", Setting("method", "look"), ", without ", Setting("start"))
        raise InvalidTypeError("groups", look, advice="keep one row of each group")
    if method != "auto":
        return method
    return "look" if grouped or n_rows > _MOST_RANKED else "ranks"


def _found_cuts(search: Search, method: str, begin: float | None) -> tuple[Cut, ...]:
    """Search in the way that suits the rows and the targets."""
    if search.n_rows == 0 or begin is not None:
        return search.by_ranks(begin)  # which finds nothing without rows
    by_side = search.targets.keys() <= _BY_SIDE
    if search.grouped or (method == "look" and by_side):
        return search.by_look()
    return search.by_ranks(None) if by_side else search.by_order_statistic()


def _assumptions(
    search: Search, weight_bound: float | None, begin: float | None, unlabelled: FloatArray | None
) -> tuple[str, ...]:
    """What must be true; called after the search, which may have learned the cap on group sizes."""
    weighted = weight_bound is not None
    drawn = "groups" if search.grouped else "rows"
    assumed = [f"{drawn} are independent draws from one population"]
    if weighted:
        assumed.append(KEPT_BY_WEIGHT)
        assumed.append(f"no importance weight exceeds {weight_bound:g}")
    if unlabelled is not None:
        assumed.append("rows without labels are independent draws from the same population")
    if begin is not None:
        assumed.append("the start was fixed before the rows were looked at")
    if search.grouped and weighted:
        cap = rows_text(search.max_group_size or 1)
        assumed.append(f"a group counts as at most {cap} that were kept")
    return tuple(assumed)


def _unlabelled(
    scores: ArrayLike | None, data: Rows, weight_bound: float | None
) -> FloatArray | None:
    """Scores of rows without labels, which go with plain rows only."""
    if scores is None:
        return None
    others = {
        "segments": data.columns.segment,
        "groups": data.columns.group,
        "importance_weight": data.columns.weight,
        "weight_bound": weight_bound,
    }
    for name, given in others.items():
        if given is not None:
            rule = "be used without segments, groups and weights"
            got = f"{name} with them"
            raise InvalidTypeError("unlabelled_scores", rule, got, advice="leave them out")
    found = as_numbers(scores, "unlabelled_scores")
    if found.size == 0:
        raise InvalidValueError("unlabelled_scores", "have at least one row", got="none")
    return found


def _warn_of_cap(search: Search, given_cap: int | None) -> None:
    """Warn if a target is guaranteed for groups that count up to a learned cap, but missed if all rows
    count.
    """
    if given_cap is not None or not search.broken:
        return
    target, level, found = min(search.broken, key=lambda one: one[2] - one[1])
    cap = rows_text(search.max_group_size or 1)
    said = (
        f"{target} {level:g} is guaranteed with a group counting as at most {cap}; among all counted"
        " rows"
        f" it is {nearest(found)}. If you want the {target} among all rows, set "
    )
    warn_caller(words((said, Setting("max_group_size"))), GroupCapWarning)
