"""Least-squares fit of a density ratio, and its leave-one-out score in closed form."""

from dataclasses import dataclass

import numpy as np

from calibrant._typing import FloatArray
from calibrant.shift.ratios.gaussian import Basis, batches

_LEAVE_ONE_OUT_ROWS = (
    512  # times 100 centres is 400 KB per array, and a handful of arrays are in use at once
)


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
        eigendecomposition M = Q D Q' serves every penalty and every i: with g = 1 / (D + penalty),
        the inverse changes by a multiple of Q g Q's (Q g Q's)', which follows from the number
        s'Q g Q's by the formula of Sherman and Morrison. Such numbers are matrix products for all
        penalties at once.

        If no coefficient can be negative, the loss follows from those numbers alone. The
        coefficients are those with nothing left out plus Q g (a Q's + b Q't), so each changes by at
        most the length of its row of Q g times that of a Q's + b Q't. This proves nonnegativity for
        large penalties and wide bumps. Otherwise coefficients are computed row by row.
        """
        n_source = len(self.source)
        n_target = len(self.target)
        matrix, vector = self._moments(bandwidth, left_out=1)
        spectrum, rotation = np.linalg.eigh(matrix)
        shrink = 1.0 / (np.maximum(spectrum, 0.0)[:, None] + penalties)
        vector = rotation.T @ vector
        reach = (
            rotation @ (vector[:, None] * shrink) / np.sqrt(np.square(rotation) @ np.square(shrink))
        ).min(axis=0)
        n_pairs = min(n_source, n_target)
        scores = np.zeros(penalties.size)
        for part in batches(n_pairs, _LEAVE_ONE_OUT_ROWS):
            at_source = self.basis.values(self.source[part], bandwidth)
            at_target = self.basis.values(self.target[part], bandwidth)
            s = at_source @ rotation
            t = at_target @ rotation
            ss = (s * s) @ shrink
            st = (s * t) @ shrink
            tt = (t * t) @ shrink
            sv = s @ (vector[:, None] * shrink) - st / (n_target - 1)
            tv = t @ (vector[:, None] * shrink) - tt / (n_target - 1)
            a = sv / (n_source - 1 - ss)
            ratio_source = sv + a * ss
            ratio_target = tv + a * st
            without_target = vector - t / (n_target - 1)
            for k in np.flatnonzero(_longest(a, -1.0 / (n_target - 1), s, t) > reach).tolist():
                coefficients = (a[:, k, None] * s + without_target) @ (rotation * shrink[:, k]).T
                np.maximum(coefficients, 0.0, out=coefficients)
                ratio_source[:, k] = np.einsum("ij,ij->i", coefficients, at_source)
                ratio_target[:, k] = np.einsum("ij,ij->i", coefficients, at_target)
            scores += 0.5 * np.square(ratio_source).sum(axis=0) - ratio_target.sum(axis=0)
        return scores / n_pairs


def _longest(a: FloatArray, b: float, s: FloatArray, t: FloatArray) -> FloatArray:
    """Largest length of a s + b t over the rows, for every column of a."""
    squares = [
        np.einsum("ij,ij->i", left, right)[:, None] for left, right in ((s, s), (s, t), (t, t))
    ]
    lengths = a * a * squares[0] + 2.0 * a * b * squares[1] + b * b * squares[2]
    return np.asarray(np.sqrt(np.maximum(lengths, 0.0).max(axis=0)))
