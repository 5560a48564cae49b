"""Common parts of calibrators with regions: bins, counts, and what these prove."""
