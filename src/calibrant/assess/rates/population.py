"""From the rate among the items to the rate of the population from which they were drawn."""

import math

from scipy.optimize import brentq

from calibrant.limits.binomial import lower_limit, upper_limit

_LEAST_SHARE = 0.1


def population_share(n_labels: int, n_items: int, *, sequential: bool) -> float:
    """The share of alpha for the step from items to population: a tenth, and more if many items are
    labelled.

    It depends only on the numbers of labels and items. If labels arrive one by one it is a tenth at
    every look, because shares that grow from look to look would add up to more than alpha.

    >>> population_share(200, 4000, sequential=False), population_share(3000, 4000, sequential=False)
    (0.1, 0.75)
    >>> population_share(3000, 4000, sequential=True)
    0.1
    """
    return _LEAST_SHARE if sequential else max(_LEAST_SHARE, n_labels / n_items)


def population_limits(fewest: int, most: int, n_items: int, alpha: float) -> tuple[float, float]:
    """Limits for the population, from limits on the number of positives among the items (Clopper
    and Pearson).

    If the items are i.i.d. draws, their number of positives K is Bin(n_items, rate). The exact
    lower limit on the rate increases with K. So the limit for `fewest` is below the limit for K
    whenever fewest <= K, and fails with an additional probability of at most alpha / 2. The upper
    limit follows by symmetry.

    >>> [round(limit, 4) for limit in population_limits(3200, 3400, 4000, 0.005)]
    [0.7817, 0.8655]
    """
    lower = float(lower_limit(fewest, n_items, alpha / 2.0))
    upper = float(upper_limit(most, n_items, alpha / 2.0))
    return lower, upper


def group_population_limits(
    fewest: int, most: int, n_items: int, n_groups: int, alpha: float
) -> tuple[float, float]:
    """Limits for the population if items come in groups of equal size, which are i.i.d. draws.

    The mean of the groups' rates, each in [0, 1], exceeds x > rate with probability at most
    exp(-n_groups kl(x, rate)) (Chernoff and Hoeffding), whatever the dependence within a group.
    """
    lower = _chernoff(fewest / n_items, n_groups, alpha / 2.0)
    upper = 1.0 - _chernoff(1.0 - most / n_items, n_groups, alpha / 2.0)
    return lower, upper


def _chernoff(seen: float, n: int, tail: float) -> float:
    """The smallest rate with n kl(seen, rate) <= ln(1 / tail), rounded down."""
    goal = math.log(1.0 / tail) / n
    if seen <= 0.0:
        return 0.0
    if seen >= 1.0:
        return math.exp(-goal) * (1.0 - 1e-12)

    def excess(rate: float) -> float:
        return (
            seen * math.log(seen / rate)
            + (1.0 - seen) * math.log((1.0 - seen) / (1.0 - rate))
            - goal
        )

    tiny = seen * math.exp(-(goal + 2.0) / seen)
    if tiny <= 1e-300:
        return 0.0
    return float(brentq(excess, tiny, seen, xtol=1e-14)) * (1.0 - 1e-9)
