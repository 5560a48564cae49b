"""The paper's own bound for streams, as printed."""

from __future__ import annotations

import numpy as np

from calibrant._typing import FloatArray
from calibrant.errors import InvalidValueError
from calibrant.limits.sequences.sequence import HalfWidthSequence
from calibrant.text.sentences import Setting

_LARGEST_LOG_SHARE = float(np.log(2.5e25))


class Paper(HalfWidthSequence):
    """The confidence sequence of Theorem 6 of the paper, exactly as stated there.

    Claimed: with probability at least 1 - alpha, the limits hold after every label and in every
    region, for B / alpha < 2.5e25; for smaller alpha, the statement as printed fails, so an error
    is raised. Assumed: within a region, labels are independent draws with one rate.

    Notes
    -----
    The half-width is (7 sqrt(V ln(1 + ln V)) + 5.3 ln(6.3 B / alpha)) / N with V = max(1, sum (Y_i
    - mean before i)²) and a mean of 1/2 before the first label. The middle line of the printed
    proof drops a pair of parentheses; the interval it shows misses 3% of the time at a nominal 1%.
    The theorem itself is correct, and it is computed here.

    References
    ----------
    Gupta, Podkopaev and Ramdas (2020), Theorem 6.

    Examples
    --------
    >>> import numpy as np
    >>> sequence = Paper(n_regions=1, alpha=0.1)
    >>> sequence.update(np.zeros(1000, dtype=np.intp), (np.arange(1000) % 2).astype(np.uint8))
    >>> sequence.limits().radius.round(3)
    array([0.174])
    """

    name = "paper"
    theorem = "Theorem 6 of Gupta, Podkopaev and Ramdas (2020)"

    def __init__(self, n_regions: int, alpha: float) -> None:
        super().__init__(n_regions, alpha)
        if self.log_share >= _LARGEST_LOG_SHARE:
            rule = (
                "leave (number of regions) / alpha below 2.5e25 for ",
                Setting("sequence", "paper"),
            )
            advice = ("use ", Setting("sequence", "beta-binomial"))
            raise InvalidValueError(
                "confidence_level", rule, got=f"{n_regions} / {alpha:g}", advice=advice
            )

    @staticmethod
    def half_width(counts: FloatArray, surprise: FloatArray, log_share: float) -> FloatArray:
        """Return the half-width for given counts, V, and log(B / alpha)."""
        spread = 7.0 * np.sqrt(surprise * np.log1p(np.log(surprise)))
        return np.asarray((spread + 5.3 * (np.log(6.3) + log_share)) / counts)
