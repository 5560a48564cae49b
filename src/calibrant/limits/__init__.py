"""Confidence limits for all regions at once, one method a file.

Their door is `calibrant.intervals`.
"""
