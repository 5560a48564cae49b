"""What calibrators that are a curve share."""
