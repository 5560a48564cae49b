"""How many labels are needed? `plan`, and what it answers."""
