"""The constants of one hash of 64-bit integers, for every random draw or order that must be the same
everywhere: with numpy (`calibrant.params.random`) and on a GPU (`calibrant.gpu.draws`).
"""

GOLDEN = 0x9E3779B97F4A7C15
ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))
"""Pairs of a shift and a multiplier, one per round."""
FEWER_ROUNDS = ((29, 0xD6E8FEB86659FD93), (32, 1))
"""The rounds for sums over rows: each row is scrambled, so that sums of different rows differ."""
DROPPED_BITS = 33
"""Low bits of a double that are dropped to round it to 20 significant binary digits: steps of one
to two millionths of a value.
"""
