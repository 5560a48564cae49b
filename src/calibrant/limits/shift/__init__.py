"""Limits for a target population from weighted rows of another; public as `calibrant.shift`."""
