"""One file for each source of rows, which passes batches to one function and adds up the results."""
