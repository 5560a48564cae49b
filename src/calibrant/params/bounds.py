"""Rules for bounds that are known beforehand and that the rows cannot show."""

from calibrant.params.rules import Choice, Integer, Number

WEIGHT_BOUND = Number("a number > 0 that no importance weight can exceed", 0.0, open_low=True)
GROUP_SIZE = Integer(1)
TARGETS = ("rows", "groups")
GROUP_TARGET = Choice(TARGETS)
