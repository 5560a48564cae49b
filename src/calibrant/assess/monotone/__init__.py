"""The rate at one score, if it does not fall as the score rises."""
