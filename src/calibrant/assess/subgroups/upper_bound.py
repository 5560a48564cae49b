"""By how much is any subgroup off at most? Limits for all subgroups at once."""

import numpy as np
from scipy.special import log_ndtr

from calibrant._typing import CodeArray, FloatArray
from calibrant.assess.subgroups.evidence import Expected, positives_of
from calibrant.cells.subgroup_family import SubgroupFamily
from calibrant.limits.interval import Interval
from calibrant.limits.non_identical import non_identical

_EVEN_SHARE = 0.1  # of alpha that all subgroups share alike
_BISECTIONS = 60


def subgroup_tails(family: SubgroupFamily, expected: Expected, alpha: float) -> FloatArray:
    """The tail of each limit: two for each subgroup, alpha in all, most for those whose limits are widest.

    With the standard error e of each subgroup's rate, as its scores have it, limits at x / e standard deviations are
    all x wide. x is chosen so that nine tenths of alpha are used; all share the rest alike. Labels play no part.
    """
    deviation = np.sqrt(np.maximum(expected.variance, 1.0)) / np.maximum(family.counts, 1)
    spread = (1.0 - _EVEN_SHARE) * alpha / 2.0
    low = 0.0
    high = 60.0 * float(deviation.max())
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        if np.exp(log_ndtr(-middle / deviation)).sum() > spread:
            low = middle
        else:
            high = middle
    shares = np.exp(log_ndtr(-high / deviation))
    return np.asarray(shares + _EVEN_SHARE * alpha / (2.0 * family.n_subgroups))


def all_limits(family: SubgroupFamily, scores: FloatArray, codes: CodeArray, alpha: float) -> Interval:
    """Limits for the mean rate of the rows at hand, in every subgroup at once, with probability 1 - alpha.

    Labels are independent given scores and attributes, with unlike rates: see `calibrant.limits.non_identical`.
    """
    expected = Expected.of(family, scores)
    return non_identical(family.counts, positives_of(family, codes), subgroup_tails(family, expected, alpha))
