"""Do the assumptions hold? Exchangeable rows, and rows that belong together."""
