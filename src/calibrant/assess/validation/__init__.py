"""What model validators put into one table."""
