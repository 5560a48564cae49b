"""A picture of a result as numbers: the report draws it, and matplotlib does."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from typing import Any, Literal, NamedTuple, TypeAlias

_GREY = "#666666"
_WITHIN_PAGE = (6.4, 4.4)
_IN_NOTEBOOK = (5.2, 3.8)
_POINTS_IN_NOTEBOOK = 200  # of a line: more would only make the notebook large


class Style(NamedTuple):
    """How one model is drawn."""

    color: str
    dash: Any
    marker: str


# Colours of the Okabe-Ito palette, distinct for every kind of colour vision, from dark to light.
STYLES = (
    Style("#0072B2", "-", "o"),
    Style("#D55E00", (0, (5, 2)), "^"),
    Style("#009E73", (0, (1, 1.5)), "s"),
    Style("#CC79A7", (0, (5, 1.5, 1, 1.5)), "D"),
    Style("#E69F00", (0, (8, 2)), "v"),
    Style("#56B4E9", (0, (3, 1, 1, 1, 1, 1)), "P"),
)


Unit: TypeAlias = Literal["", "share", "points"]
"""The unit of an axis: none, per cent, or percentage points."""


def style_of(number: int) -> Style:
    """The style of the model with this index."""
    return STYLES[number % len(STYLES)]


@dataclass(frozen=True, slots=True)
class Drawn:
    """One line or set of points, with limits or without.

    Attributes
    ----------
    name : str
        Its name in the legend.
    x, y : sequence of float
        Where it lies; in a picture with `rows`, y is the position of the row.
    low, high : sequence of float, optional
        Limits: of x in a picture with `rows`, and of y in any other.
    kind : {"points", "line", "steps", "band"}
        A step function keeps each value until the next x. A band is the area between the limits.
    titles : sequence of str, optional
        A text for each point, shown when it is pointed at.
    quiet : bool
        Whether it is drawn in grey: nothing is shown or guaranteed there.
    style : int, optional
        The number of its colour, for what has the same colour in every picture. Default: its place.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    kind: Literal["points", "line", "steps", "band"] = "points"
    titles: Sequence[str] = ()
    quiet: bool = False
    style: int | None = None


@dataclass(frozen=True, slots=True)
class ReferenceLine:
    """A straight line across the picture: upright at an x, or level at a y."""

    name: str
    at: float
    is_upright: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture: what is drawn, and in words.

    Attributes
    ----------
    title, description : str
        What it shows, and how to read it.
    x_label, y_label : str
        What the axes are.
    drawn : tuple of Drawn
        The lines and points.
    rules : tuple of ReferenceLine
        Lines of reference, such as a required rate or the day of an alarm.
    rows : tuple of str
        Names of rows, from the top; then the vertical axis has no numbers.
    is_square : bool
        Whether both axes are the same, and the diagonal is drawn.
    is_time : bool
        Whether the horizontal axis is time: x counts days since 1970-01-01.
    x_unit, y_unit : {"", "share", "points"}
        "share" for an axis in per cent, "points" for one in percentage points. If the picture is
        square, both axes are in per cent.
    """

    title: str
    description: str
    x_label: str
    y_label: str
    drawn: tuple[Drawn, ...]
    rules: tuple[ReferenceLine, ...] = ()
    rows: tuple[str, ...] = ()
    is_square: bool = False
    is_time: bool = False
    x_unit: Unit = ""
    y_unit: Unit = ""

    @property
    def units(self) -> tuple[Unit, Unit]:
        """The units of both axes."""
        return ("share", "share") if self.is_square else (self.x_unit, self.y_unit)

    def plot(self, ax: Any = None) -> Any:
        """Draw with matplotlib, and return the axes."""
        if ax is None:
            pyplot = import_module("matplotlib.pyplot")
            ax = pyplot.subplots(figsize=_WITHIN_PAGE, layout="constrained")[1]
        for number, one in enumerate(self.drawn):
            # a line and its band are one entry of the legend
            name = (
                "_" if one.name in {earlier.name for earlier in self.drawn[:number]} else one.name
            )
            self._plot_one(ax, replace(one, name=name), number)
        for rule in self.rules:
            line = ax.axvline if rule.is_upright else ax.axhline
            line(rule.at, color=_GREY, linestyle="--", linewidth=1, label=rule.name)
        if self.is_square:
            ax.axline((0.0, 0.0), slope=1.0, color=_GREY, linewidth=1, linestyle=(0, (4, 3)))
        if self.rows:
            ax.set_yticks([-float(place) for place in range(len(self.rows))], self.rows)
        if self.is_time:
            ax.xaxis.axis_date()
        for axis, unit in zip((ax.xaxis, ax.yaxis), self.units, strict=True):
            if unit:
                symbol = "%" if unit == "share" else ""
                ticker = import_module("matplotlib.ticker")
                axis.set_major_formatter(ticker.PercentFormatter(1.0, symbol=symbol))
        ax.spines[["top", "right"]].set_visible(False)
        ax.set(title=self.title, xlabel=self.x_label, ylabel=self.y_label)
        if len(self.drawn) + len(self.rules) > 1:
            ax.legend(frameon=False, fontsize="small")
        return ax

    def svg(self) -> str:
        """The picture as SVG for a notebook; empty without matplotlib."""
        if find_spec("matplotlib") is None:
            return ""
        figure = import_module("matplotlib.figure").Figure(figsize=_IN_NOTEBOOK, layout="tight")
        replace(self, drawn=tuple(map(_thinned, self.drawn))).plot(figure.subplots())
        drawn = StringIO()
        with import_module("matplotlib").rc_context(
            {"svg.fonttype": "none", "svg.hashsalt": self.title}
        ):
            figure.savefig(drawn, format="svg", metadata={"Date": None})
        text = drawn.getvalue()
        return text[text.index("<svg") :]

    def _plot_one(self, ax: Any, one: Drawn, number: int) -> None:
        style = style_of(number if one.style is None else one.style)
        how: dict[str, Any] = {"color": _GREY if one.quiet else style.color, "label": one.name}
        if one.kind == "band":
            ax.fill_between(one.x, one.low, one.high, alpha=0.2, linewidth=0, **how)
        elif one.kind == "points":
            limits = None
            if one.low is not None and one.high is not None:
                middle = one.x if self.rows else one.y
                below = [max(at - low, 0.0) for at, low in zip(middle, one.low, strict=True)]
                above = [max(high - at, 0.0) for at, high in zip(middle, one.high, strict=True)]
                limits = [below, above]
            where = {"xerr": limits} if self.rows else {"yerr": limits}
            is_alone = sum(other.kind == "points" for other in self.drawn) == 1
            how |= {"marker": STYLES[0].marker if is_alone else style.marker, "markersize": 4.5}
            ax.errorbar(one.x, one.y, **where, linestyle="", elinewidth=1.1, zorder=3, **how)
        else:
            form = "steps-post" if one.kind == "steps" else "default"
            ax.plot(one.x, one.y, drawstyle=form, linestyle=style.dash, **how)


def _thinned(one: Drawn) -> Drawn:
    """A line with fewer points, including its ends; anything else as it is."""
    if one.kind != "line" or len(one.x) <= _POINTS_IN_NOTEBOOK:
        return one
    last = len(one.x) - 1
    steps = _POINTS_IN_NOTEBOOK - 1
    kept = [round(step * last / steps) for step in range(_POINTS_IN_NOTEBOOK)]
    return replace(one, x=[one.x[place] for place in kept], y=[one.y[place] for place in kept])
