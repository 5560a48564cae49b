"""A guarantee for some of the regions."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._typing import BoolArray, FloatArray
from calibrant.limits.mass import MassLimits


@dataclass(frozen=True, slots=True, eq=False)
class PartialGuarantee:
    """A guarantee for the kept regions, which hold at least `mass` of the population.

    Attributes
    ----------
    mass : float
        Lower limit on the share of the population in the kept regions. It excludes rows in no
        region: rows of unseen segments, and rows whose score equals an edge that was seen once. NaN
        if nothing is proved about the share.
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
        """Leave out the regions of largest radius, as long as at least `mass` of the population is
        kept for certain.
        """
        order = np.argsort(-radius, kind="stable")
        certified = 1.0 - limits.outside - np.cumsum(limits.regions[order])
        n_left_out = min(int(np.count_nonzero(certified >= mass)), radius.size - 1)
        epsilon = float(radius[order[n_left_out]])
        kept = radius <= epsilon  # keeping a region that is no worse than those kept costs nothing
        left_out = float(limits.regions[~kept].sum())
        return cls(max(0.0, 1.0 - limits.outside - left_out), epsilon, kept)
