"""What follows from the limits, in numbers and in words."""
