"""SQL for one question: which bin is this score in? Exports and engines write it here, for every dialect."""
