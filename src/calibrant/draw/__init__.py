"""Figures and reports: they receive numbers and draw them, and compute nothing."""
