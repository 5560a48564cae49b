"""Thresholds with a guaranteed precision, recall, negative predictive value or specificity."""
