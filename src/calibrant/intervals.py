"""Simultaneous confidence intervals for the mean of each region.

Examples
--------
>>> from calibrant import Tally
>>> from calibrant.intervals import get_method
>>> get_method("clopper-pearson")(Tally.from_counts([10], [5]), alpha=0.05).lower.round(4)
array([0.1871])
"""

from calibrant.assess.monotone.monotone_band import MonotoneBand
from calibrant.limits.blaker import blaker
from calibrant.limits.clopper_pearson import clopper_pearson
from calibrant.limits.empirical_bernstein import empirical_bernstein
from calibrant.limits.hoeffding import hoeffding
from calibrant.limits.interval import Interval, Method
from calibrant.limits.kl import kl
from calibrant.limits.methods import METHODS, get_method

__all__ = [
    "METHODS",
    "Interval",
    "Method",
    "MonotoneBand",
    "blaker",
    "clopper_pearson",
    "empirical_bernstein",
    "get_method",
    "hoeffding",
    "kl",
]
