"""Confidence limits that hold for all regions at once; one method per file.

They are public as `calibrant.intervals`.
"""
