"""Thresholds with a proved precision, recall, negative predictive value or specificity."""
