"""RuLSIF: a bounded ratio, relative to a mixture of both populations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from calibrant.params.rules import Number, RuleTable
from calibrant.shift.ratios.ulsif import ULSIF


@dataclass(eq=False, repr=False)
class RuLSIF(ULSIF):
    """Relative density ratio p_target / (mixing p_target + (1 - mixing) p_source), tuned by
    leave-one-out.

    For shifts so large that the plain ratio is unbounded: the relative ratio never exceeds 1 /
    mixing, so a few rows cannot carry all of the weight. The price is bias: rows weighted by it
    represent a population between the two, which is closer to the target if `mixing` is smaller.
    With mixing = 0, it is `ULSIF`.

    Parameters
    ----------
    mixing : float in [0, 1), default=0.1
        Share of the target population in the denominator (the alpha of the paper by Yamada et al.).
    centers, bandwidth, penalty, standardize, random_state, n_jobs
        As for `ULSIF`.

    Attributes
    ----------
    bandwidth_, penalty_, scores_, coef_, diagnostics_, n_features_in_
        As for `ULSIF`.

    Notes
    -----
    As in `ULSIF`, where H is now `mixing` times the mean over target rows plus 1 - `mixing` times
    the mean over source rows. The leave-one-out score has a closed form here too: leaving out one
    row of each population changes H by rank two.

    References
    ----------
    Yamada, Suzuki, Kanamori, Hachiya & Sugiyama (2013), "Relative density-ratio estimation for
    robust distribution comparison", Neural Computation 25, 1324-1370.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> ratio = RuLSIF(mixing=0.5).fit(rng.uniform(size=(2000, 1)), rng.beta(2, 1, size=(2000, 1)))
    >>> ratio.predict([[0.25], [0.5], [0.75]]).round(1)  # the truth is 2x / (x + 1/2)
    array([0.6, 1. , 1.2])
    """

    _rules: ClassVar[RuleTable] = {
        "mixing": Number("a number in [0, 1)", 0.0, 1.0, open_high=True),
    }

    mixing: float = 0.1

    def _mixing(self) -> float:
        return float(self.mixing)
