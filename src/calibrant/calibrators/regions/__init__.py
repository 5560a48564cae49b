"""Common parts of calibrators with regions: bins, counts, and the limits that follow."""
