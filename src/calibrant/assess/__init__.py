"""Questions about scores and labels, one file each, exported from `calibrant` itself."""
