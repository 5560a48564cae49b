"""What the plots have in common: matplotlib's axes, made where none are given."""

from typing import TYPE_CHECKING

from calibrant._optional import needed

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def new_axes(width: float, height: float) -> "Axes":
    """Axes in a new figure of pyplot, or an error that names the extra that installs matplotlib."""
    plt = needed("matplotlib.pyplot", "plot", "plots are drawn")
    axes: Axes = plt.subplots(figsize=(width, height), layout="constrained")[1]
    return axes


def without_frame(ax: "Axes") -> None:
    """Leave only the axes at the left and at the bottom."""
    ax.spines[["top", "right"]].set_visible(False)
