"""What was counted: finite partitions of the inputs, and the sums of each region."""
