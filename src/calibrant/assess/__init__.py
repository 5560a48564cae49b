"""Questions about scores and labels, exported from `calibrant` itself."""
