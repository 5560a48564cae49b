"""A rate with an honest interval from few labels and many scores."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike, IntArray, Seed
from calibrant.assess.rates.drawn import check_draw, check_order
from calibrant.assess.rates.items import Items, read_items
from calibrant.assess.rates.methods import METHODS, CountLimits, check_method, count_limits
from calibrant.assess.rates.population import (
    group_population_limits,
    population_limits,
    population_share,
)
from calibrant.assess.rates.result import Rate, SegmentRate
from calibrant.cells.segmented_partition import segment_kinds
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.arrays import as_column
from calibrant.params.labels import of_one_kind
from calibrant.params.random import seed_number
from calibrant.params.rules import Choice, Flag, RandomState, error_budget
from calibrant.text.sentences import Setting

TARGETS = ("items", "population")


def rate(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    confidence_level: float = 0.95,
    target: str = "items",
    method: str = "auto",
    groups: ArrayLike | None = None,
    segments: ArrayLike | None = None,
    sequential: bool | ArrayLike = False,
    pos_label: Hashable = None,
    random_state: Seed = 0,
) -> Rate:
    """Return the rate of the positive class among items, from labels on some of them and scores on
    all.

    A language model's judge has scored 10,000 answers, and people have checked 200 of them: what
    share is good? The limits are valid for every judge, and a good judge makes them narrower.

    Claimed: with probability at least `confidence_level` over the draw of the labelled items, the
    limits hold, for all segments simultaneously. Assumed: the labelled items were drawn at random
    from all of them. Nothing is assumed about scores and labels, or about how items depend on each
    other. The draw is tested at no cost, using only the scores, and so is the order with
    `sequential`; if a test rejects, the sentence says so first.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of two classes; None, NaN or an empty text for items without a label. All labels may
        be equal.
    scores : array-like of shape (n,) or (n, 2)
        The score of every item: a verdict in words or numbers, a probability, or a number on any
        scale.
    confidence_level : float, default=0.95
        1 - alpha.
    target : {"items", "population"}, default="items"
        Which rate is estimated: that of these items, or that of the population from which they are
        i.i.d. draws.
    method : {"auto", "exact", "labels", "bets"}, default="auto"
        "exact": exact tails in two strata of scores. "labels": exact tails from labels alone;
        scores are not used. "bets": bets without replacement, with scores as a control variate.
        "auto" is "exact" for up to 2,000 labels, "labels" if the smaller of the two strata would
        have fewer than two labels on average, and "bets" otherwise, with groups, and with
        `sequential`. The choice depends only on the scores and the numbers of labels and items.
    groups : array-like of shape (n,), optional
        Which items were drawn together, such as several answers to one question. A group is
        labelled whole or not at all. Items of a group may depend on each other in any way. Leave it
        out if individual items were drawn.
    segments : array-like of shape (n,), optional
        The segment of each item. Each segment gets its own limits, and they share alpha.
    sequential : bool or array-like of shape (n,), default=False
        For limits that hold at every look while labels come in. True: labelled items are in the
        order in which they were drawn. An array: when each item was drawn, such as a day or a
        number. The order must not change between looks. In any other order, such as that of a file
        sorted by label, the limits do not hold.
    pos_label : object, optional
        The positive class, if the classes are not 0 and 1.
    random_state : int, generator or None, default=0
        Seed for the order of the bets.

    Returns
    -------
    Rate

    Notes
    -----
    With N items, n of them labelled, the number of positives among the labels is hypergeometric.
    `method="exact"` follows Buehler, with a box of Berger and Boos, in two strata. Two verdicts are
    the strata; other scores are cut in two where the variance between the two sides is largest,
    from scores alone. `method="bets"` bets on each label minus a guess from earlier labels. For the
    population, the limits for the items take 90% of alpha, and Clopper-Pearson limits from items to
    population take the rest; with many labels, more than that.

    Labels chosen with known probabilities, several judges together and differences between two
    rates are not covered.

    References
    ----------
    Buehler (1957), "Confidence intervals for the product of two binomial parameters", JASA 52.
    Berger and Boos (1994), "P values maximized over a confidence set for the nuisance parameter",
    JASA 89. Kabaila and Lloyd (1997), "Tight upper confidence limits from discrete data",
    Australian Journal of Statistics 39. Waudby-Smith and Ramdas (2024), "Estimating means of
    bounded random variables by betting", JRSS B 86.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import rate
    >>> rng = np.random.default_rng(0)
    >>> good = rng.random(4_000) < 0.9
    >>> judge = np.where(rng.random(4_000) < 0.95, good, ~good)
    >>> human = np.full(4_000, np.nan)
    >>> checked = rng.choice(4_000, 200, replace=False)
    >>> human[checked] = good[checked]
    >>> found = rate(human, judge)
    >>> print(found.sentence)  # doctest: +NORMALIZE_WHITESPACE
    With 95% confidence, 0.873 to 0.931 of these 4,000 items have the label 1 (estimate 0.902), from 200 labels on
    items drawn at random.
    """  # noqa: E501
    alpha = error_budget(confidence_level)
    Choice(TARGETS).check("target", target)
    Choice(METHODS).check("method", method)
    RandomState().check("random_state", random_state)
    items, positive = read_items(y, scores, groups, pos_label)
    items = replace(items, order=_order(sequential, items))
    one_by_one = items.order is not None
    check_method(items, method, sequential=one_by_one)
    names, number = _segments(segments, len(items))
    if target == "population":
        _check_sizes(items)
        for place in range(len(names)):
            _check_sizes(items.take(number == place))
    seed = seed_number(random_state)
    budgets = (alpha / (1 + len(names)), alpha)
    whole = _rate_of(items, budgets, target, method, seed)
    parts = tuple(
        replace(_rate_of(items.take(number == place), budgets, target, method, seed), segment=name)
        for place, name in enumerate(names)
    )
    n_groups = 0
    labelled_groups = 0
    if items.groups is not None:
        n_groups = int(items.groups.max()) + 1
        labelled_groups = np.unique(items.groups[items.labelled]).size
    return Rate(
        estimate=whole.estimate,
        lower=whole.lower,
        upper=whole.upper,
        confidence_level=float(confidence_level),
        n_labels=items.n_labels,
        n_items=len(items),
        target=target,
        method=whole.method,
        positive_label=positive,
        sequential=one_by_one,
        n_groups=n_groups,
        n_labelled_groups=labelled_groups,
        segments=parts,
        draw=check_draw(items),
        order=check_order(items),
        lower_alone=whole.lower_alone,
        upper_alone=whole.upper_alone,
        crossed=whole.crossed,
    )


def _rate_of(
    items: Items, budgets: tuple[float, float], target: str, method: str, seed: int
) -> SegmentRate:
    """The rate among items, or in their population.

    `budgets` are the error probabilities of its limits among all limits, and on their own.
    """
    counts, lower, upper = _limits_of(items, budgets[0], target, method, seed)
    alone = counts, lower, upper
    if budgets[1] != budgets[0]:
        alone = _limits_of(items, budgets[1], target, method, seed)
    return SegmentRate(
        segment=None,
        estimate=min(max(counts.estimate, lower), upper),
        lower=lower,
        upper=upper,
        n_labels=items.n_labels,
        n_items=len(items),
        method=counts.method,
        lower_alone=alone[1],
        upper_alone=alone[2],
        crossed=counts.crossed,
    )


def _limits_of(
    items: Items, alpha: float, target: str, method: str, seed: int
) -> tuple[CountLimits, float, float]:
    """Limits on the number of positives, and on the rate, which hold with probability at least 1 -
    alpha.
    """
    n_items = len(items)
    sequential = items.order is not None
    further = 0.0
    if target == "population":
        further = population_share(items.n_labels, n_items, sequential=sequential)
    counts = count_limits(
        items,
        max(alpha * (1.0 - further), 1e-300),
        method,
        sequential=sequential,
        random_state=seed,
    )
    fewest = counts.fewest
    most = counts.most
    if target == "items":
        return counts, fewest / n_items, most / n_items
    if items.groups is None:
        return counts, *population_limits(fewest, most, n_items, alpha * further)
    n_groups = int(items.groups.max()) + 1
    return counts, *group_population_limits(fewest, most, n_items, n_groups, alpha * further)


def _order(sequential: bool | ArrayLike, items: Items) -> IntArray | None:
    """When each item was labelled, as ranks; None if all labels are already there."""
    if isinstance(sequential, bool | np.bool_):
        Flag().check("sequential", sequential)
        if not sequential:
            return None
        when = np.arange(len(items))
    else:
        times = _times(sequential)
        if times.size != len(items):
            raise InvalidValueError(
                "sequential", f"have one entry per score, {len(items)}", got=f"{times.size}"
            )
        labelled = items.labelled
        when = np.zeros(len(items), dtype=np.int64)
        given = (
            of_one_kind(times[labelled], "sequential")
            if times.dtype.kind == "O"
            else times[labelled]
        )
        when[labelled] = np.unique(given, return_inverse=True)[1]
    if items.groups is None:
        return when
    last = np.zeros(int(items.groups.max()) + 1, dtype=np.int64)
    np.maximum.at(last, items.groups, when)
    return last[items.groups]


def _times(values: Any) -> NDArray[Any]:
    """When items were labelled; those without a label may have no time."""
    if not isinstance(values, list | tuple):
        return as_column(values, "sequential")
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def _check_sizes(items: Items) -> None:
    """Raise an error for groups of different sizes if the population's rate is requested.

    Limits count each group once. A segment may cut groups of one size into parts of several.
    """
    if items.groups is None:
        return
    sizes = np.bincount(items.groups)
    if sizes.min() < sizes.max():
        rule = ("all have the same size with ", Setting("target", "population"))
        advice = (
            "ask for ",
            Setting("target", "items"),
            ", or keep the same number of items from each group",
        )
        raise InvalidValueError(
            "groups", rule, got=f"{sizes.min()} to {sizes.max()} items", advice=advice
        )


def _segments(segments: ArrayLike | None, n_items: int) -> tuple[list[Hashable], IntArray]:
    """The names of the segments, and the index of each item's segment."""
    if segments is None:
        return [], np.zeros(n_items, dtype=np.int64)
    names, number = segment_kinds(segments)
    if number.size != n_items:
        raise InvalidValueError(
            "segments", f"have one entry per score, {n_items}", got=f"{number.size} entries"
        )
    if len(names) > n_items // 2 and n_items > 2:
        raise InvalidTypeError(
            "segments", "have several items each", got=f"{len(names):,} segments"
        )
    return list(names), np.asarray(number, dtype=np.int64)
