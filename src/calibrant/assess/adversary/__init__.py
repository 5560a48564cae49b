"""The impossibility result in numbers; public as `calibrant.adversary`."""
