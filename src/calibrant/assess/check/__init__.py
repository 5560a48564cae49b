"""Do the assumptions hold? Exchangeable rows, and grouped rows."""
