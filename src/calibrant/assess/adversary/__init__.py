"""The impossibility result in numbers; its door is `calibrant.adversary`."""
