"""The report: one HTML file that loads nothing from other places."""
