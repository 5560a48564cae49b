"""How well scores agree with labels, one metric per file; public as `calibrant.metrics`."""
