"""Calibration of overlapping subgroups: is any off, which, by how much, and by how much at most."""
