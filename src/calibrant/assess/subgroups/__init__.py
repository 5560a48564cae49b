"""Calibration of overlapping subgroups: whether any is miscalibrated, which ones, and by how much."""
