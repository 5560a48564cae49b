"""Simultaneous confidence intervals for the mean of each region: one fixed-n method per module.

Examples
--------
>>> from calibrant import Tally
>>> get_method("clopper-pearson")(Tally.from_counts([10], [5]), alpha=0.05).lower.round(4)
array([0.1871])
"""

from __future__ import annotations

from calibrant.limits.blaker import blaker
from calibrant.limits.clopper_pearson import clopper_pearson, largest_binomial
from calibrant.limits.empirical_bernstein import empirical_bernstein, largest_bernstein
from calibrant.limits.hoeffding import hoeffding, largest_hoeffding
from calibrant.limits.interval import Method
from calibrant.limits.kl import kl, largest_kl
from calibrant.params.rules import Choice

_TAILS = "binomial tails inverted (Clopper and Pearson 1934)"
_ACCEPTABILITY = "binomial acceptability inverted (Blaker 2000, Theorem 1)"
_BERNSTEIN = "the empirical Bernstein bound of Gupta, Podkopaev and Ramdas (2020, Theorem 4)"
_CHERNOFF = "Chernoff's bound in relative-entropy form (Hoeffding 1963, Theorem 1)"

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "clopper-pearson",
            clopper_pearson,
            f"{_TAILS}, at the Sidak level",
            largest_radius=largest_binomial,
            exact=True,
        ),
        Method(
            "blaker",
            blaker,
            f"{_ACCEPTABILITY}, at the Sidak level",
            largest_radius=largest_binomial,
            exact=True,
        ),
        Method(
            "hoeffding",
            hoeffding,
            "Hoeffding's inequality (1963, Theorem 2), by Bonferroni",
            largest_radius=largest_hoeffding,
        ),
        Method(
            "empirical-bernstein",
            empirical_bernstein,
            f"{_BERNSTEIN}, by Bonferroni",
            largest_radius=largest_bernstein,
        ),
        Method("kl", kl, f"{_CHERNOFF}, by Bonferroni", largest_radius=largest_kl),
    )
}
"""Every method, by the name that the parameter ``interval`` takes."""


def get_method(name: str) -> Method:
    """Return the method called `name`.

    Raises
    ------
    ValueError
        If no method has that name.

    Examples
    --------
    >>> get_method("clopper-pearson").exact
    True
    """
    return METHODS[Choice(METHODS).check("interval", name)]
