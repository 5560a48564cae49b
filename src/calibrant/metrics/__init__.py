"""How well scores agree with labels. Each metric has an interval that is either valid or labelled heuristic."""

from calibrant.metrics.auc import auc
from calibrant.metrics.bins import sweep_bins
from calibrant.metrics.ece import debiased_ece, ece
from calibrant.metrics.estimate import Estimate
from calibrant.metrics.proper import BrierScore, brier_score, log_loss
from calibrant.metrics.reliability import ReliabilityTable, reliability_table
from calibrant.metrics.smooth import smooth_ece

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
