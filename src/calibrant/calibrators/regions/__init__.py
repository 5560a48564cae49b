"""What calibrators with regions share: bins, counts, and what these prove."""
