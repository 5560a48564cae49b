"""Density ratios between two populations, one method per file; public as `calibrant.ratios`."""
