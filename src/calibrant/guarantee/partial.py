"""A guarantee for some of the regions."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._typing import BoolArray, FloatArray
from calibrant.limits.mass import MassLimits


@dataclass(frozen=True, slots=True, eq=False)
class PartialGuarantee:
    """A guarantee for the regions that are kept, which hold at least `mass` of the population.

    Attributes
    ----------
    mass : float
        Certified share of the population in the kept regions. Rows in no region do not count: those
        of segments that were never seen, and those whose score equals an edge that was seen once.
        NaN if nothing is proved about it.
    epsilon : float
        Largest distance between value and true rate in the kept regions.
    kept : bool array of shape (n_regions,)
        Which regions the guarantee is about.
    """

    mass: float
    epsilon: float
    kept: BoolArray

    @classmethod
    def of_regions(cls, radius: FloatArray, limits: MassLimits, mass: float) -> Self:
        """Leave out the regions of largest radius, as long as `mass` of the population is certainly
        kept.
        """
        order = np.argsort(-radius, kind="stable")
        certified = 1.0 - limits.outside - np.cumsum(limits.regions[order])
        n_left_out = min(int(np.count_nonzero(certified >= mass)), radius.size - 1)
        epsilon = float(radius[order[n_left_out]])
        kept = radius <= epsilon  # a region no worse than those kept costs nothing to keep
        left_out = float(limits.regions[~kept].sum())
        return cls(max(0.0, 1.0 - limits.outside - left_out), epsilon, kept)
