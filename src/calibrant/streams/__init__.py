"""Calibration for labels that arrive one by one, valid at every moment."""
