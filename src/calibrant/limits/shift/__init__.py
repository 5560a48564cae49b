"""Limits for a target population, from weighted rows of another; their door is `calibrant.shift`."""
