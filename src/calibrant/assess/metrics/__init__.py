"""How well scores agree with labels, one metric a file; their door is `calibrant.metrics`."""
