"""By how much can any subgroup be off? Limits for all subgroups simultaneously."""

import numpy as np

from calibrant._typing import CodeArray, FloatArray
from calibrant.assess.subgroups.evidence import Expected, positives_of
from calibrant.cells.subgroup_family import SubgroupFamily
from calibrant.limits.error_budget import even_width_tails
from calibrant.limits.interval import Interval
from calibrant.limits.non_identical import non_identical


def subgroup_tails(family: SubgroupFamily, expected: Expected, alpha: float) -> FloatArray:
    """The tail of each limit: largest for subgroups whose limits are widest, judging by scores, not
    labels.
    """
    return even_width_tails(
        np.sqrt(np.maximum(expected.variance, 1.0)) / np.maximum(family.counts, 1), alpha
    )


def all_limits(
    family: SubgroupFamily, scores: FloatArray, codes: CodeArray, alpha: float
) -> Interval:
    """Limits on the mean rate of the rows at hand, in every subgroup simultaneously, with
    probability 1 - alpha.

    Labels are independent given scores and attributes, with different rates: see
    `calibrant.limits.non_identical`.
    """
    expected = Expected.of(family, scores)
    return non_identical(
        family.counts, positives_of(family, codes), subgroup_tails(family, expected, alpha)
    )
