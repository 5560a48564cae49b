"""A picture of a result as a figure on the page."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from calibrant.draw.report.figures import QUIET_STYLE, Figure, Series, path_of
from calibrant.draw.report.scales import Axis, Frame, Limits, MarkLine, Tick, axes_in, limits_of
from calibrant.text.numbers import limits as limits_text
from calibrant.text.numbers import nearest
from calibrant.text.picture import STYLES, Drawn, Picture
from calibrant.text.sentences import name_of

WIDE = Frame(480, 376, 50, 468, 34, 330, margin=6.0)
"""The frame of a stand-alone figure."""
_ROW = 34  # height of a row with its name
_EPOCH = date(1970, 1, 1)
_LEVEL = -1  # the number of a level line, which has a style of its own


@dataclass(frozen=True, slots=True)
class TimeAxis(Axis):
    """An axis of days since 1970-01-01."""

    def ticks(self, wanted: int = 5) -> tuple[Tick, ...]:
        """Return whole days, about as many as wanted."""
        days = max(1, math.ceil((self.high - self.low) / wanted))
        places = range(math.ceil(self.low), math.floor(self.high) + 1, days)
        return tuple(Tick(self(at), str(_EPOCH + timedelta(days=at))) for at in places)


def picture_figures(pictures: Iterable[Picture], name: str = "picture") -> list[Figure]:
    """A figure for each picture; their names are unique on a page."""
    return [_figure(f"{name}-{number}", one) for number, one in enumerate(pictures, start=1)]


def _figure(identifier: str, picture: Picture) -> Figure:
    frame = WIDE
    if picture.rows:
        height = _ROW * (len(picture.rows) + 1)
        frame = Frame(440, height + 48, 14, 428, 6, height + 6, margin=6.0, n_ticks=4)
    axes = _axes(picture, frame)
    series = tuple(_series(one, number, axes, picture) for number, one in enumerate(picture.drawn))
    band = "".join(_band(one, axes) for one in picture.drawn if one.kind == "band")
    rules = tuple(_rule(picture, number, axes) for number in range(len(picture.rules)))
    return Figure(
        identifier,
        picture.title,
        picture.description,
        frame,
        axes,
        picture.x_label,
        "" if picture.rows else picture.y_label,
        picture.is_square,
        series,
        band=band,
        rules=rules,
        row_names=tuple(
            Tick(axes[1](-float(place)) - 12.0, name_of(name))
            for place, name in enumerate(picture.rows)
        ),
    )


def _axes(picture: Picture, frame: Frame) -> tuple[Axis, Axis]:
    across = [at for one in picture.drawn for at in _reach(one, one.x, bool(picture.rows))]
    upwards = [at for one in picture.drawn for at in _reach(one, one.y, not picture.rows)]
    for rule in picture.rules:
        (across if rule.is_upright else upwards).append(rule.at)
    if picture.is_square:
        both = _ends([*across, *upwards])
        return axes_in(frame, both, both)  # in per cent
    y_ends = (-len(picture.rows) + 0.5, 0.9) if picture.rows else _ends(upwards)
    x_axis, y_axis = axes_in(frame, _ends(across), y_ends, units=picture.units)
    if picture.is_time:
        x_ends = (min(across), max(max(across), min(across) + 1.0))
        x_axis = TimeAxis(*x_ends, x_axis.start, x_axis.end)
    return x_axis, y_axis


def _reach(one: Drawn, values: Sequence[float], with_limits: bool) -> list[float]:
    """The finite numbers that an axis must show."""
    both = (one.low or (), one.high or ()) if with_limits else ()
    return [at for part in (values, *both) for at in part if math.isfinite(at)]


def _ends(values: Sequence[float]) -> Limits:
    """The ends of an axis: round within [0, 1], with a margin elsewhere."""
    low = min(values, default=0.0)
    high = max(values, default=1.0)
    if low >= 0.0 and high <= 1.0:
        return limits_of(values)
    margin = 0.05 * (high - low) or 0.5
    return low - margin, high + margin


def _series(one: Drawn, number: int, axes: tuple[Axis, Axis], picture: Picture) -> Series:
    number = number if one.style is None else one.style
    style = QUIET_STYLE if one.quiet else number % len(STYLES)
    if one.kind == "band":
        return Series(one.name, style)
    if one.kind in ("line", "steps"):
        return Series(one.name, style, _path(one, axes))
    points = tuple(
        (axes[0](x), axes[1](y), _title(one, place, picture))
        for place, (x, y) in enumerate(zip(one.x, one.y, strict=True))
    )
    return Series(one.name, style, "", _whiskers(one, axes, bool(picture.rows)), points)


def _path(one: Drawn, axes: tuple[Axis, Axis]) -> str:
    x = list(one.x)
    y = list(one.y)
    if one.kind == "steps":
        x = np.repeat(x, 2)[1:].tolist()
        y = np.repeat(y, 2)[:-1].tolist()
    return path_of(x, y, axes)


def _whiskers(one: Drawn, axes: tuple[Axis, Axis], across: bool) -> str:
    if one.low is None or one.high is None:
        return ""
    found = []
    for x, y, low, high in zip(one.x, one.y, one.low, one.high, strict=True):
        if not (math.isfinite(low) and math.isfinite(high)):
            continue
        if across:
            found.append(f"M{axes[0](low)} {axes[1](y)}H{axes[0](high)}")
        else:
            found.append(f"M{axes[0](x)} {axes[1](low)}V{axes[1](high)}")
    return "".join(found)


def _title(one: Drawn, place: int, picture: Picture) -> str:
    """The numbers of a point, in words."""
    name = one.titles[place] if one.titles else picture.rows[place] if picture.rows else one.name
    value = nearest((one.x if picture.rows else one.y)[place])
    if one.low is None or one.high is None:
        return f"{name}: {value}"
    return f"{name}: {value}, limits {limits_text(one.low[place], one.high[place])}"


def _band(one: Drawn, axes: tuple[Axis, Axis]) -> str:
    forth = zip(one.x, one.high or (), strict=True)
    back = zip(reversed(one.x), reversed(one.low or ()), strict=True)
    return " ".join(f"{axes[0](x)},{axes[1](y)}" for part in (forth, back) for x, y in part)


def _rule(picture: Picture, number: int, axes: tuple[Axis, Axis]) -> MarkLine:
    rule = picture.rules[number]
    x_axis, y_axis = axes
    path = f"M{x_axis.start} {y_axis(rule.at)}H{x_axis.end}"
    if rule.is_upright:
        path = f"M{x_axis(rule.at)} {y_axis.end}V{y_axis.start}"
        uprights = sum(earlier.is_upright for earlier in picture.rules[:number])
        return MarkLine(rule.name, path, uprights + 1)  # dashed first
    return MarkLine(rule.name, path, _LEVEL)
