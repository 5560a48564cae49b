"""Exact coverage by enumeration: the binomial miss probability at the worst means, for every N up
to 200.

Between neighbouring endpoints the counts whose interval misses are a lower and an upper tail,
always the same, and their probability falls and then rises as the mean grows. So its maxima lie at
the endpoints, and to both sides of each is where a method that is not valid is caught.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import gammaln

from calibrant.intervals import METHODS, get_method

LARGEST = 200
"""The methods whose limits of a region do not depend on other regions."""


def all_intervals(method, alpha):
    """The interval of every (N, k) up to the largest N, each at the full alpha, as for a single
    region.
    """
    counts = np.concatenate([np.full(n + 1, n) for n in range(1, LARGEST + 1)])
    positives = np.concatenate([np.arange(n + 1) for n in range(1, LARGEST + 1)])
    tally = SimpleNamespace(
        counts=counts, positives=positives, rates=positives / counts, n_regions=1
    )
    interval = method(tally, alpha)
    for n in range(1, LARGEST + 1):
        part = slice((n + 2) * (n - 1) // 2, (n + 3) * n // 2)
        yield n, interval.lower[part], interval.upper[part]


def miss_probability(n, lower, upper, mean):
    """P(mean lies outside the interval of X), X ~ Binomial(n, mean), for every mean."""
    k = np.arange(n + 1)
    log_choose = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    mean = mean[:, None]
    probability = np.exp(log_choose + k * np.log(mean) + (n - k) * np.log1p(-mean))
    return np.sum(probability * ((mean < lower) | (mean > upper)), axis=1)


@pytest.mark.broad
@pytest.mark.parametrize("alpha", [0.1, 0.01])
@pytest.mark.parametrize("name", METHODS)
def test_no_mean_is_missed_more_often_than_alpha(name, alpha):
    worst = 0.0
    for n, lower, upper in all_intervals(get_method(name), alpha):
        ends = np.concatenate([lower, upper])
        means = np.concatenate([ends - 1e-9, ends, ends + 1e-9])
        means = means[(means > 0) & (means < 1)]
        worst = max(worst, miss_probability(n, lower, upper, means).max())
    assert worst <= alpha
    # Not vacuous: somewhere the whole budget, or for two separate tails most of it, is spent; a
    # bound spends some.
    assert worst > (0.999 if name == "blaker" else 0.9 if get_method(name).exact else 0) * alpha
