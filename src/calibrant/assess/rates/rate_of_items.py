"""A rate with valid limits, from few labels and many scores."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from calibrant._typing import ArrayLike, IntArray, Seed
from calibrant.assess.rates.drawn import check_draw, check_order
from calibrant.assess.rates.exact import positives_within
from calibrant.assess.rates.gate import tails
from calibrant.assess.rates.items import Items, check_entries, read_items
from calibrant.assess.rates.methods import (
    LEAST_SHARE,
    METHODS,
    check_method,
    count_limits,
    direct_limits,
    population_limits,
)
from calibrant.assess.rates.result import PartRate, Rate, SegmentRate
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

    Guarantee: with probability at least `confidence_level` over the draw of the labelled items, the
    limits hold, for all segments simultaneously. Assumptions: the labelled items were drawn at
    random from all of them. Nothing is assumed about scores and labels, or about how items depend
    on each other. The draw is tested at no cost, using only the scores and the segments, and so is
    the order with `sequential`; if a test rejects, the sentence says so first.

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
        The segment of each item. Each segment gets its own limits, and they share alpha. If labels
        were drawn in each segment separately, ask for the rate of one segment at a time.
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
    population, the guess is compared with its mean over a block of unlabelled items that belong to
    this label alone; a tenth of the unlabelled items fix the cells of scores. With few labels, "auto"
    takes exact limits for the items, with 90% of alpha and Clopper-Pearson limits from items to
    population for the rest, or Clopper-Pearson limits from labels alone. The scores and the numbers
    of labels and items decide which.

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
    87.3 to 93.1% of these 4,000 items are positive (95% confidence; estimate 90.2%; 200 labels on
    items drawn at random).
    """
    alpha = error_budget(confidence_level)
    Choice(TARGETS).check("target", target)
    Choice(METHODS).check("method", method)
    RandomState().check("random_state", random_state)
    items, positive = read_items(y, scores, groups, pos_label)
    items = replace(items, order=_order(sequential, items), seed=seed_number(random_state))
    check_method(items, method)
    names, number = _segments(segments, len(items))
    parts = [items, *(items.take(number == place) for place in range(len(names)))]
    if target == "population":
        for part in parts:
            sizes = part.unit_sizes
            if sizes.min() < sizes.max():  # limits count each group once
                rule = ("all have the same size with ", Setting("target", "population"))
                got = f"{sizes.min()} to {sizes.max()} items"
                keep = ", or keep the same number of items from each group"
                advice = ("ask for ", Setting("target", "items"), keep)
                raise InvalidValueError("groups", rule, got=got, advice=advice)
    both = tails(alpha, len(names))
    whole, *of_segments = (asdict(_rate_of(part, both, target, method)) for part in parts)
    alone: dict[str, Any] = _of_one_source(items, both, target)
    grouped = items.groups is not None
    return Rate(
        **whole,
        **alone,
        confidence_level=float(confidence_level),
        target=target,
        positive_label=positive,
        sequential=items.sequential,
        n_groups=items.unit_sizes.size if grouped else 0,
        n_labelled_groups=np.unique(items.units[items.labelled]).size if grouped else 0,
        segments=tuple(
            SegmentRate(**part, segment=name) for part, name in zip(of_segments, names, strict=True)
        ),
        draw=check_draw(items, names, number),
        order=check_order(items),
    )


def _of_one_source(items: Items, both: tuple[float, float], target: str) -> dict[str, float]:
    """What the scores alone say, and what the labels alone say, beside the limits from both."""
    found: dict[str, float] = {}
    scores = items.scores.values
    if not items.scores.words and ((scores >= 0.0) & (scores <= 1.0)).all():
        found["judge_alone"] = float(scores.mean())
    if target == "items" and items.groups is None and not items.sequential:
        n_items = len(items)
        for tail, how in zip(both, ("", "_alone"), strict=True):
            low, high = positives_within(n_items, items.n_labels, items.positives, tail)
            found[f"labels_lower{how}"] = low / n_items
            found[f"labels_upper{how}"] = high / n_items
    return found


def _rate_of(items: Items, both: tuple[float, float], target: str, method: str) -> PartRate:
    """The rate among items, or in their population.

    `both` are the error probabilities of each limit among all limits, and on its own.
    """
    limits = None
    share = 0.0
    if target == "population":
        limits = direct_limits(items, both, method)
        # if labels arrive one by one it is the same at every look: shares that grow from look to
        # look would add up to more than alpha
        share = LEAST_SHARE if items.sequential else max(LEAST_SHARE, items.n_labels / len(items))
    if limits is None:
        limits = []
        of_counts = [max(tail * (1.0 - share), 1e-300) for tail in both]
        for tail, found in zip(both, count_limits(items, of_counts, method), strict=True):
            ends = found.lower / len(items), found.upper / len(items)
            if target == "population":
                ends = population_limits(items, found.lower, found.upper, tail * share)
            limits.append(replace(found, lower=ends[0], upper=ends[1]))
    found, alone = limits
    return PartRate(
        estimate=min(max(found.estimate, found.lower), found.upper),
        lower=found.lower,
        upper=found.upper,
        n_labels=items.n_labels,
        n_items=len(items),
        method=found.method,
        lower_alone=alone.lower,
        upper_alone=alone.upper,
        crossed=found.crossed,
    )


def _order(sequential: bool | ArrayLike, items: Items) -> IntArray | None:
    """When each item was labelled, as ranks; None if all labels are already there."""
    if isinstance(sequential, bool | np.bool_):
        Flag().check("sequential", sequential)
        if not sequential:
            return None
        when = np.arange(len(items))
    else:
        if isinstance(sequential, list | tuple):  # items without a label may have no time
            times = np.empty(len(sequential), dtype=object)
            times[:] = sequential
        else:
            times = as_column(sequential, "sequential")
        check_entries("sequential", times, len(items))
        labelled = items.labelled
        when = np.zeros(len(items), dtype=np.int64)
        given = (
            of_one_kind(times[labelled], "sequential")
            if times.dtype.kind == "O"
            else times[labelled]
        )
        when[labelled] = np.unique(given, return_inverse=True)[1]
    last = np.zeros(items.unit_sizes.size, dtype=np.int64)
    np.maximum.at(last, items.units, when)
    return last[items.units]


def _segments(segments: ArrayLike | None, n_items: int) -> tuple[list[Hashable], IntArray]:
    """The names of the segments, and the index of each item's segment."""
    if segments is None:
        return [], np.zeros(n_items, dtype=np.int64)
    names, number = segment_kinds(segments)
    check_entries("segments", number, n_items)
    if len(names) > n_items // 2 and n_items > 2:
        raise InvalidTypeError(
            "segments", "have several items each", got=f"{len(names):,} segments"
        )
    return list(names), np.asarray(number, dtype=np.int64)
