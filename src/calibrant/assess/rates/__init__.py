"""Rates with valid limits, from few labels and many scores."""
