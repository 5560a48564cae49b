"""Words and numbers for people: sentences, numbers rounded outwards, and the common parts of all
results.
"""
