"""Density ratios between two populations, one method a file; their door is `calibrant.ratios`."""
