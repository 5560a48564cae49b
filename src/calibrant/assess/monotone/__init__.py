"""The rate at one score, if it is nondecreasing in the score."""
