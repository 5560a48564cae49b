"""SQL for one question: which bin is a score in? Sources and exports use it, for every dialect."""
