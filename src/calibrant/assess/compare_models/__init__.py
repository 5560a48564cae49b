"""Models side by side, on the same rows."""
