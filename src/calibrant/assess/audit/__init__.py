"""Is this score calibrated? `audit` and its result."""
