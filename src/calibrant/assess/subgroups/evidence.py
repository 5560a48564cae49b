"""How far the labels of each subgroup are from its scores, and how surprising that is."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._typing import CodeArray, FloatArray
from calibrant.cells.subgroup_family import SubgroupFamily

_SMALL_SKEW = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """The distribution of the label sum of each subgroup if every row's rate is its score.

    Attributes
    ----------
    total : float array of shape (n_subgroups,)
        Sums of scores, the expected sums of labels.
    variance : float array of shape (n_subgroups,)
        Sums of s (1 - s), the variances of the sums of labels.
    skew : float array of shape (n_subgroups,)
        Sums of s (1 - s) (1 - 2 s) over the variances: third over second cumulants, from -1 to 1.
    """

    total: FloatArray
    variance: FloatArray
    skew: FloatArray

    @classmethod
    def of(cls, family: SubgroupFamily, scores: FloatArray) -> Self:
        """The sums over the rows of each subgroup."""
        spread = scores * (1.0 - scores)
        variance = family.sums(spread)
        third = family.sums(spread * (1.0 - 2.0 * scores))
        skew = np.divide(third, variance, out=np.zeros(variance.size), where=variance > 0.0)
        return cls(family.sums(scores), variance, np.clip(skew, -1.0, 1.0))

    def surprise(self, positives: FloatArray) -> FloatArray:
        """About -log P of this many positive labels or more, or of this few or fewer, for each
        subgroup (the last axis).

        It uses a Poisson variable with the same variance and skewness: (v / b^2) h(b x / v), h(u) =
        (1 + u) log(1 + u) - u, with x the distance from the expected sum, and x^2 / (2 v) as b goes
        to 0. For rare labels, plain x^2 / (2 v) would let the smallest subgroups mask all others.
        It is a statistic; no proof relies on its shape. Infinite if scores that are all 0 or 1 are
        contradicted.
        """
        distance = positives - self.total
        variance = np.where(self.variance > 0.0, self.variance, 1.0)
        skew = np.where(np.abs(self.skew) < _SMALL_SKEW, _SMALL_SKEW, self.skew)
        with np.errstate(over="ignore", invalid="ignore"):  # scores as small as 1e-310
            shift = np.maximum(skew * distance / variance, -1.0 + 1e-12)
            entropy = (1.0 + shift) * np.log1p(shift) - shift
            # for small shifts the difference above loses all digits
            series = shift * shift * (0.5 - shift * (1.0 / 6.0 - shift / 12.0))
            curved = np.where(np.abs(shift) < 1e-3, series, entropy)
            found = variance / (skew * skew) * np.where(np.isnan(curved), np.inf, curved)
        certain = np.where(distance != 0.0, np.inf, 0.0)
        return np.where(self.variance > 0.0, found, certain)


def positives_of(family: SubgroupFamily, codes: CodeArray) -> FloatArray:
    """Number of positive labels in each subgroup."""
    return family.sums(codes.astype(np.float64))
