"""Gaussian bumps centred on target rows: the basis in which uLSIF expresses the ratio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant._typing import FloatArray, Seed
from calibrant.errors import InvalidValueError
from calibrant.params.random import RandomSource, fingerprint_of
from calibrant.shift.ratios.density_ratio import as_matrix, squared_distances

_MEDIAN_ROWS = 500
# exp(-100) is 4e-44 and is set to 0, because arithmetic with subnormal numbers is a hundred times
# slower
_FAR = -100.0


@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """Centres, and the shift and scale applied to rows before distances are computed."""

    centers: FloatArray
    offset: FloatArray
    scale: FloatArray

    @classmethod
    def of(
        cls,
        source: FloatArray,
        target: FloatArray,
        centers: Any,
        standardize: bool,
        generator: np.random.Generator,
    ) -> Self:
        """Use `centers` random target rows, or the given centres.

        `standardize` divides columns by their spread.
        """
        if np.ndim(centers) == 0:
            number = min(int(centers), len(target))
            chosen = target[np.sort(generator.choice(len(target), number, replace=False))]
        else:
            chosen = as_matrix(centers, "centers", least=1)
            if chosen.shape[1] != target.shape[1]:
                raise InvalidValueError(
                    "centers", f"have {target.shape[1]} columns", got=str(chosen.shape[1])
                )
        scale = np.ones(source.shape[1])
        if standardize:
            scale = np.sqrt((source.var(axis=0) + target.var(axis=0)) / 2)
            scale = np.where(scale > 0.0, scale, 1.0)
        offset = chosen.mean(axis=0)
        return cls((chosen - offset) / scale, offset, scale)

    def prepare(self, rows: FloatArray) -> FloatArray:
        """Rows in the coordinates of the centres."""
        return np.asarray((rows - self.offset) / self.scale)

    def values(self, prepared: FloatArray, bandwidth: float) -> FloatArray:
        """The values exp(-distance^2 / (2 bandwidth^2)) for each row and centre."""
        distances = squared_distances(prepared, self.centers)
        with np.errstate(over="ignore"):  # a row infinitely many bandwidths away gets 0 too
            distances *= -0.5 / bandwidth**2
        np.putmask(distances, distances < _FAR, -np.inf)
        return np.exp(distances, out=distances)

    def typical_distance(self, prepared: FloatArray) -> float:
        """Median distance between rows and centres, from at most 500 rows."""
        some = prepared[
            np.linspace(0, len(prepared) - 1, min(len(prepared), _MEDIAN_ROWS)).astype(np.intp)
        ]
        distance = float(np.sqrt(np.median(squared_distances(some, self.centers))))
        return distance if distance > 0.0 else 1.0


def random_source(random_state: Seed, source: FloatArray, target: FloatArray) -> RandomSource:
    """The random source for these rows; its key uses ranks, so the units of a column do not matter."""
    ranks = [
        np.searchsorted(np.sort(known), new) for known, new in zip(source.T, target.T, strict=True)
    ]
    return RandomSource.of(random_state, "density ratio", len(source), rows=fingerprint_of(*ranks))
