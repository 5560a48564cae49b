"""The stitched empirical-Bernstein boundary with tight constants."""

from __future__ import annotations

import numpy as np

from calibrant._typing import FloatArray
from calibrant.limits.sequences.sequence import HalfWidthSequence


class Stitched(HalfWidthSequence):
    """A stitched boundary for the summed squared surprises, with constants that are not rounded up.

    Claimed: with probability at least 1 - alpha, the limits hold after every label and in every
    region. Assumed: within a region, labels are independent draws with one rate. It is narrower
    than Theorem 6 of Gupta, Podkopaev and Ramdas (2020), whose proof rounds these constants, and
    wider than the beta-binomial mixture, which uses the fact that labels are 0 or 1.

    Notes
    -----
    With V = max(1, sum (Y_i - mean before i)²) and l = 1.4 ln(1 + ln V) + ln(6.211 B / alpha), the
    half-width is (sqrt(1.4586² V l + 1.3244² l²) + 1.3244 l) / N.

    References
    ----------
    Howard, Ramdas, McAuliffe and Sekhon (2021), "Time-uniform, nonparametric, nonasymptotic
    confidence sequences", Annals of Statistics 49, Theorem 1 and Corollary 1.

    Examples
    --------
    >>> import numpy as np
    >>> sequence = Stitched(n_regions=1, alpha=0.1)
    >>> sequence.update(np.zeros(1000, dtype=np.intp), (np.arange(1000) % 2).astype(np.uint8))
    >>> sequence.limits().radius.round(3)
    array([0.07])
    """

    name = "stitched"
    theorem = "a stitched empirical-Bernstein boundary (Howard et al. 2021), by Bonferroni"

    @staticmethod
    def half_width(counts: FloatArray, surprise: FloatArray, log_share: float) -> FloatArray:
        """Return the half-width for given counts, V, and log(B / alpha)."""
        level = 1.4 * np.log1p(np.log(surprise)) + np.log(6.211) + log_share
        spread = np.sqrt(1.4586**2 * surprise * level + 1.3244**2 * level**2)
        return np.asarray((spread + 1.3244 * level) / counts)
