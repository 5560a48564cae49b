"""How many labels are needed? `plan` and its result."""
