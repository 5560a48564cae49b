"""Confidence limits that hold for all regions simultaneously; one method per file.

They are public as `calibrant.intervals`.
"""
