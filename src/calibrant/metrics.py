"""How well scores agree with labels.

Each metric has an interval that is either valid or labelled heuristic.
"""

from calibrant.assess.metrics.auc import auc
from calibrant.assess.metrics.bin_sums import sweep_bins
from calibrant.assess.metrics.ece import debiased_ece, ece
from calibrant.assess.metrics.estimate import Estimate
from calibrant.assess.metrics.proper_scores import BrierScore, brier_score, log_loss
from calibrant.assess.metrics.reliability import ReliabilityTable, reliability_table
from calibrant.assess.metrics.smooth import smooth_ece

__all__ = [
    "BrierScore",
    "Estimate",
    "ReliabilityTable",
    "auc",
    "brier_score",
    "debiased_ece",
    "ece",
    "log_loss",
    "reliability_table",
    "smooth_ece",
    "sweep_bins",
]
