"""Map numbers to positions on the page: axes with round ticks."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from calibrant.draw.style import logit, logit_ticks
from calibrant.text.picture import Unit

Limits: TypeAlias = tuple[float, float]
"""The numbers at both ends of an axis."""

_STEPS = (1.0, 2.0, 5.0, 10.0)
_WHOLE = 0.4  # data that span more of [0, 1] than this are shown on all of it
_SMALLEST = 1e-6  # a smaller span counts as a single value
_ALIKE = 3.0  # spans that differ by less than this factor share one scale


@dataclass(frozen=True, slots=True)
class Tick:
    """A position on an axis and its number."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Axis:
    """A map from [low, high] to positions [start, end]; on the page, rates grow upwards and
    positions downwards.

    It is linear, or linear in the logit; in the latter case numbers beyond its ends are drawn at
    its ends.
    """

    low: float
    high: float
    start: float
    end: float
    logit: bool = False
    unit: Unit = ""

    def __call__(self, value: float) -> float:
        """Return the position of `value`."""
        low = self.low
        high = self.high
        if self.logit:
            low, value, high = (logit(number) for number in (low, min(max(value, low), high), high))
        share = (value - low) / (high - low)
        return round(self.start + share * (self.end - self.start), 2)

    def ticks(self, wanted: int = 5) -> tuple[Tick, ...]:
        """Return round numbers within the axis, about as many as wanted."""
        if self.logit:
            return tuple(
                Tick(self(value), self._label(value, None))
                for value in logit_ticks(self.low, self.high, 2 * wanted)
            )
        step = _round_step((self.high - self.low) / wanted)
        decimals = max(0, *(_decimals(step * multiple) for multiple in (1, 2)))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        values = (number * step for number in range(first, last + 1))
        return tuple(
            Tick(self(value), self._label(value, decimals) if value else "0") for value in values
        )

    def _label(self, value: float, decimals: int | None) -> str:
        """A number with so many decimals, or as many as it needs, in the unit of the axis."""
        if self.unit:
            value = 100.0 * value
            decimals = None if decimals is None else max(0, decimals - 2)
        text = f"{value:g}" if decimals is None else f"{value:.{decimals}f}"
        return f"{text}%" if self.unit == "share" else text


@dataclass(frozen=True, slots=True)
class Frame:
    """The positions of a figure's parts.

    The axes keep a margin from its sides, so that no mark is cut off.
    """

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    histogram_top: float = 0.0
    histogram_bottom: float = 0.0
    margin: float = 7.0
    n_ticks: int = 5


LARGE = Frame(440, 524, 50, 428, 34, 412, 426, 480)
SMALL = Frame(220, 214, 34, 212, 12, 190, margin=3.5, n_ticks=2)


@dataclass(frozen=True, slots=True)
class MarkLine:
    """A line across the figure, with its name."""

    name: str
    path: str
    number: int


def axes_in(
    frame: Frame,
    x: Limits,
    y: Limits,
    *,
    logit: bool = False,
    units: tuple[Unit, Unit] = ("share", "share"),
) -> tuple[Axis, Axis]:
    """Return both axes of a frame."""
    return (
        Axis(*x, frame.left + frame.margin, frame.right - frame.margin, logit, units[0]),
        Axis(*y, frame.bottom - frame.margin, frame.top + frame.margin, logit, units[1]),
    )


def limits_of(values: Iterable[float]) -> Limits:
    """Return round limits within [0, 1] that contain all values: all of [0, 1], or a part if all of
    it would be mostly empty.

    >>> limits_of([0.05, 0.93])
    (0.0, 1.0)
    >>> limits_of([0.0012, 0.0087])
    (0.0, 0.01)
    """
    seen = [min(max(value, 0.0), 1.0) for value in values]
    if not seen:
        return 0.0, 1.0
    low = min(seen)
    high = max(seen)
    span = high - low
    if span > _WHOLE:
        return 0.0, 1.0
    if span < _SMALLEST:
        span = max(0.05, low / 2)
        low = max(0.0, low - span)
        high = min(1.0, high + span)
    # extend a range that nearly reaches 0 or 1 up to it
    low = 0.0 if low < 1.5 * span else low
    high = 1.0 if 1.0 - high < 0.5 * span else high
    step = _round_step((high - low) / 5)
    low = math.floor(low / step + 1e-9) * step
    high = math.ceil(high / step - 1e-9) * step
    return max(0.0, round(low, 12)), min(1.0, round(high, 12))


def common_limits(across: list[float], upwards: list[float]) -> tuple[Limits, Limits]:
    """Limits for both axes: the same for both, so that the diagonal rises at 45 degrees, if that
    leaves enough to see.

    Different limits are used only if common ones would leave the figure nearly empty; they always
    overlap, so that part of the diagonal is visible.
    """
    x = limits_of(across)
    y = limits_of(upwards)
    spans = x[1] - x[0], y[1] - y[0]
    if max(spans) < _ALIKE * min(spans) or max(x[0], y[0]) >= min(x[1], y[1]):
        both = limits_of([*across, *upwards])
        return both, both
    return x, y


def _round_step(step: float) -> float:
    scale = 10.0 ** math.floor(math.log10(step))
    return next(factor * scale for factor in _STEPS if factor * scale >= step * (1 - 1e-9))


def _decimals(step: float) -> int:
    """The number of decimals that a multiple of `step` needs."""
    exponent = math.floor(math.log10(step) + 1e-12)
    leading = step / 10.0**exponent
    return max(0, -exponent + (0 if abs(leading - round(leading)) < 1e-6 else 1))
