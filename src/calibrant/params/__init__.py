"""Inputs from callers: the rules for parameters, arrays, labels, saved states and random numbers."""
