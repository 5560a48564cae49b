"""Calibration of subgroups that overlap: is any off, which, by how much, and by how much at most."""
