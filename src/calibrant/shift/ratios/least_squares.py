"""Least-squares fit of a density ratio by Gaussian bumps centred on target rows, and its
leave-one-out score in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant._typing import FloatArray
from calibrant.errors import InvalidValueError
from calibrant.shift.ratios.density_ratio import (
    as_matrix,
    batches,
    evenly_spread,
    squared_distances,
)

_MEDIAN_ROWS = 500
# exp(-100) is 4e-44 and is set to 0, because arithmetic with subnormal numbers is a hundred times
# slower
_FAR = -100.0
_LEAVE_ONE_OUT_ROWS = (
    512  # times 100 centres is 400 KB per array, and a handful of arrays are in use at once
)


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
        some = evenly_spread(prepared, _MEDIAN_ROWS)
        distance = float(np.sqrt(np.median(squared_distances(some, self.centers))))
        return distance if distance > 0.0 else 1.0


@dataclass(frozen=True, slots=True, eq=False)
class LeastSquares:
    """Rows of both populations in the coordinates of a basis.

    The fit minimises half the mean of g^2 over source rows - mean of g over target rows, plus
    (penalty / 2) |coefficients|^2, for g a combination of bumps. Without the last term, and over
    all functions, the minimiser is p_target / p_source.
    """

    basis: Basis
    source: FloatArray
    target: FloatArray

    def _moments(self, bandwidth: float, left_out: int) -> tuple[FloatArray, FloatArray]:
        """Matrix and vector of the normal equations; sums are divided by the number of rows minus
        `left_out`.
        """
        n_centers = len(self.basis.centers)
        matrix = np.zeros((n_centers, n_centers))
        vector = np.zeros(n_centers)
        for part in batches(len(self.source)):
            values = self.basis.values(self.source[part], bandwidth)
            matrix += (values.T @ values) / (len(self.source) - left_out)
        for part in batches(len(self.target)):
            values = self.basis.values(self.target[part], bandwidth)
            vector += values.sum(axis=0) / (len(self.target) - left_out)
        return matrix, vector

    def coefficients(self, bandwidth: float, penalty: float) -> FloatArray:
        """The minimiser's coefficients, negative ones set to zero."""
        matrix, vector = self._moments(bandwidth, left_out=0)
        matrix[np.diag_indices_from(matrix)] += penalty
        return np.asarray(np.maximum(np.linalg.solve(matrix, vector), 0.0).astype(np.float64))

    def leave_one_out(self, bandwidth: float, penalties: FloatArray) -> FloatArray:
        """Leave-one-out score of each penalty: lower is better.

        For each i up to the smaller number of rows, source row i and target row i are left out
        together, the coefficients are refitted on the rest and set to zero where negative, and the
        loss is computed on the two rows.

        Notes
        -----
        With s and t the bumps of the two rows, leaving them out subtracts s s'/(n_s - 1) from the
        matrix of the normal equations, a change of rank one, and t/(n_t - 1) from their vector. One
        eigendecomposition M = Q D Q' serves every penalty and every i: by the formula of Sherman
        and Morrison, with g = 1 / (D + penalty) and v the vector without t, the coefficients are
        Q g (Q'v + a Q's), where a = s'Q g Q'v / (n_s - 1 - s'Q g Q's).
        """
        n_source = len(self.source)
        n_target = len(self.target)
        matrix, vector = self._moments(bandwidth, left_out=1)
        spectrum, rotation = np.linalg.eigh(matrix)
        shrink = 1.0 / (np.maximum(spectrum, 0.0)[:, None] + penalties)
        n_pairs = min(n_source, n_target)
        scores = np.zeros(penalties.size)
        for part in batches(n_pairs, _LEAVE_ONE_OUT_ROWS):
            at_source = self.basis.values(self.source[part], bandwidth)
            at_target = self.basis.values(self.target[part], bandwidth)
            s = at_source @ rotation
            v = (vector - at_target / (n_target - 1)) @ rotation
            a = (s * v) @ shrink / (n_source - 1 - (s * s) @ shrink)
            for k in range(penalties.size):
                coefficients = a[:, k, None] * s
                coefficients += v
                coefficients = coefficients @ (rotation * shrink[:, k]).T
                np.maximum(coefficients, 0.0, out=coefficients)
                ratio_source = np.einsum("ij,ij->i", coefficients, at_source)
                ratio_target = np.einsum("ij,ij->i", coefficients, at_target)
                scores[k] += 0.5 * ratio_source @ ratio_source - ratio_target.sum()
        return scores / n_pairs
