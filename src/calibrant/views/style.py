"""Colours, dashes and markers of every figure: one style for each model, told apart in colour and in grey."""

from typing import Any, NamedTuple

QUIET = "0.55"


class Style(NamedTuple):
    """How one model is drawn."""

    color: str
    dash: Any
    marker: str


# Colours of the Okabe-Ito palette, which differ for every kind of colour vision, from dark to light.
STYLES = (
    Style("#0072B2", "-", "o"),
    Style("#D55E00", (0, (5, 2)), "^"),
    Style("#009E73", (0, (1, 1.5)), "s"),
    Style("#CC79A7", (0, (5, 1.5, 1, 1.5)), "D"),
    Style("#E69F00", (0, (8, 2)), "v"),
    Style("#56B4E9", (0, (3, 1, 1, 1, 1, 1)), "P"),
)
PROMISED, OBSERVED, BAND = (style.color for style in STYLES[:3])


def style_of(number: int) -> Style:
    """The style of the model with this number, counted from 0."""
    return STYLES[number % len(STYLES)]
