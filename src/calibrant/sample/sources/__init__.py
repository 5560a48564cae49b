"""One file for each source of rows, which carries batches to one function and adds up the results."""
