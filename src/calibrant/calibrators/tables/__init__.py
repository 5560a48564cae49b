"""A fitted calibrator as a table of plain numbers, which is all that an export needs."""
