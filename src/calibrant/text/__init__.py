"""Words and numbers for people: sentences, numbers rounded outwards, and what every answer has in
common.
"""
