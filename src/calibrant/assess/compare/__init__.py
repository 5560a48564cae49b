"""Calibrators side by side."""
