"""Is this score calibrated? `audit`, and what it finds."""
