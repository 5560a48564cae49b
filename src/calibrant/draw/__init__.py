"""Figures and reports: they receive numbers and draw them; they compute nothing."""
