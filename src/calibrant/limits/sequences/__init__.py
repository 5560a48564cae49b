"""Limits that hold at every moment, one method a file; their door is `calibrant.sequences`."""
