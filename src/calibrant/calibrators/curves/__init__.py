"""Common parts of calibrators that are curves."""
