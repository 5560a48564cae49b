"""Text that a spreadsheet would run as a formula gets a ' before it."""

import re

_BLANKS = "[ \\f\\v\u00a0\u3000]*"
_SIGNS = (
    "=+\\-@＝＋－＠"  # the last four are the full-width signs of Chinese and Japanese keyboards
)
_BEGINS = rf"{_BLANKS}[{_SIGNS}]|\{{{_BLANKS}="

AT_START = rf"^({_BEGINS}|[\t\r])"
"""Where a cell begins as a formula. Some programs strip a tab or a carriage return first."""

AFTER_SEPARATOR = rf"([;\t\r\n])({_BEGINS})"
"""The same inside a cell: where the decimal sign is a comma, spreadsheets split at semicolons."""

ESCAPED_AT_START = r"'\1"
ESCAPED_AFTER_SEPARATOR = r"\1'\2"

NUMBER = rf"^{_BLANKS}[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?{_BLANKS}$"
"""A number as text: it starts like a formula if it has a sign, and is none."""


def escaped(text: str) -> str:
    """The text, with a ' before whatever a spreadsheet would run as a formula.

    >>> escaped("=1+1"), escaped("a;=1+1"), escaped("-0.5")
    ("'=1+1", "a;'=1+1", '-0.5')
    """
    if re.search(NUMBER, text):
        return text
    inside = re.sub(AFTER_SEPARATOR, ESCAPED_AFTER_SEPARATOR, text)
    return re.sub(AT_START, ESCAPED_AT_START, inside)
