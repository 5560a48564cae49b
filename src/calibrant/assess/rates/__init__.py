"""Rates with valid limits, from few labels and many scores."""

from calibrant.assess.rates.label_counts import RatePlan, plan_rate
from calibrant.assess.rates.rate_of_items import rate
from calibrant.assess.rates.result import Rate, SegmentRate

__all__ = ["Rate", "RatePlan", "SegmentRate", "plan_rate", "rate"]
