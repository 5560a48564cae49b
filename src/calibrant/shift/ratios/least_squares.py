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
    """Rows of both populations in the coordinates of a basis, and the share of the target mixed
    into the denominator.

    The fit minimises (mixing / 2) mean of g^2 over target rows + ((1 - mixing) / 2) mean of g^2
    over source rows - mean of g over target rows, plus (penalty / 2) |coefficients|^2, for g a
    combination of bumps. Without the last term, and over all functions, the minimiser is p_target /
    (mixing p_target + (1 - mixing) p_source).
    """

    basis: Basis
    source: FloatArray
    target: FloatArray
    mixing: float = 0.0

    def _moments(self, bandwidth: float, left_out: int) -> tuple[FloatArray, FloatArray]:
        """Matrix and vector of the normal equations; sums are divided by the number of rows minus
        `left_out`.
        """
        n_centers = len(self.basis.centers)
        matrix = np.zeros((n_centers, n_centers))
        vector = np.zeros(n_centers)
        if self.mixing < 1.0:
            share = (1.0 - self.mixing) / (len(self.source) - left_out)
            for part in batches(len(self.source)):
                values = self.basis.values(self.source[part], bandwidth)
                matrix += share * (values.T @ values)
        for part in batches(len(self.target)):
            values = self.basis.values(self.target[part], bandwidth)
            vector += values.sum(axis=0) / (len(self.target) - left_out)
            if self.mixing > 0.0:
                share = self.mixing / (len(self.target) - left_out)
                matrix += share * (values.T @ values)
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
        Leaving out rows subtracts s s'/(n_s - 1) and t t'/(n_t - 1), with s and t their bumps, from
        the matrix of the normal equations: a change of rank two (one for mixing = 0). One
        eigendecomposition M = Q D Q' serves every penalty and every i: with g = 1 / (D + penalty),
        the inverse changes by the solution of a 2 x 2 system in the numbers s'Q g Q's, s'Q g Q't
        and t'Q g Q't, which are matrix products for all penalties at once.

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
        take_source = (1.0 - self.mixing) / (n_source - 1)
        take_target = self.mixing / (n_target - 1)
        scores = np.zeros(penalties.size)
        for part in batches(n_pairs, _LEAVE_ONE_OUT_ROWS):
            at_source = self.basis.values(self.source[part], bandwidth)
            at_target = self.basis.values(self.target[part], bandwidth)
            s = at_source @ rotation
            t = at_target @ rotation
            ss = (s * s) @ shrink
            st = (s * t) @ shrink
            tt = (t * t) @ shrink
            # the vector of the normal equations loses t / (n_t - 1) too
            sv = s @ (vector[:, None] * shrink) - st / (n_target - 1)
            tv = t @ (vector[:, None] * shrink) - tt / (n_target - 1)
            a, b = _two_by_two(take_source, take_target, ss, st, tt, sv, tv)
            ratio_source = sv + a * ss + b * st
            ratio_target = tv + a * st + b * tt
            without_target = vector - t / (n_target - 1)
            for k in np.flatnonzero(_longest(a, b - 1.0 / (n_target - 1), s, t) > reach).tolist():
                coefficients = a[:, k, None] * s
                coefficients += without_target
                if self.mixing > 0.0:
                    coefficients += b[:, k, None] * t
                coefficients = coefficients @ (rotation * shrink[:, k]).T
                np.maximum(coefficients, 0.0, out=coefficients)
                ratio_source[:, k] = np.einsum("ij,ij->i", coefficients, at_source)
                ratio_target[:, k] = np.einsum("ij,ij->i", coefficients, at_target)
            scores += 0.5 * (1.0 - self.mixing) * np.square(ratio_source).sum(
                axis=0
            ) - ratio_target.sum(axis=0)
            scores += 0.5 * self.mixing * np.square(ratio_target).sum(axis=0)
        return scores / n_pairs


def _longest(a: FloatArray, b: FloatArray, s: FloatArray, t: FloatArray) -> FloatArray:
    """Largest length of a s + b t over the rows, for every column of a and b."""
    squares = [
        np.einsum("ij,ij->i", left, right)[:, None] for left, right in ((s, s), (s, t), (t, t))
    ]
    lengths = a * a * squares[0] + 2.0 * a * b * squares[1] + b * b * squares[2]
    return np.asarray(np.sqrt(np.maximum(lengths, 0.0).max(axis=0)))


def _two_by_two(
    a: float,
    b: float,
    ss: FloatArray,
    st: FloatArray,
    tt: FloatArray,
    sv: FloatArray,
    tv: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Solve (I - diag(a, b) [[ss, st], [st, tt]]) z = (a sv, b tv), entry by entry."""
    if b == 0.0:
        return a * sv / (1.0 - a * ss), np.zeros_like(tv)
    determinant = (1.0 - a * ss) * (1.0 - b * tt) - a * b * st * st
    first = a * (sv * (1.0 - b * tt) + b * st * tv) / determinant
    second = b * (tv * (1.0 - a * ss) + a * st * sv) / determinant
    return first, second
