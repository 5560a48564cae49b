"""What validators of a model put into one table."""
