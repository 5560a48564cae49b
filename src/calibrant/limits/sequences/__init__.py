"""Limits that hold at every moment, one method per file; public as `calibrant.sequences`."""
