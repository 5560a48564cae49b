"""SQL for one question: which bin is this score in? Sources and exports write it here, for every
dialect.
"""
