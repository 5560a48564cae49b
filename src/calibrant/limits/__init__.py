"""Confidence limits for all regions at once, one method a file; their door is `calibrant.intervals`."""
