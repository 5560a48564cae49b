"""The impossibility result as a plot: true errors, errors in a reliability diagram, and guarantees."""

from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.assess.adversary.confrontation import Confrontation
from calibrant.draw.diagram import new_axes, without_frame
from calibrant.draw.style import style_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_confrontation(result: Confrontation, ax: "Axes | None" = None) -> "Axes":
    """Draw real errors as solid lines, errors in a reliability diagram as dotted and guarantees as
    dashed lines.

    Parameters
    ----------
    result : Confrontation
        From `calibrant.adversary.confront`.
    ax : matplotlib Axes, default=None
        Axes to draw on; None makes a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from calibrant import PlattCalibrator
    >>> from calibrant.adversary import confront
    >>> from calibrant.draw.impossibility import plot_confrontation
    >>> result = confront(PlattCalibrator(), sample_sizes=(100, 1_000))
    >>> plot_confrontation(result, Figure().add_subplot()).get_xlabel()
    'calibration rows'
    """
    ax = new_axes(6.4, 4.8) if ax is None else ax
    for row, method in enumerate(result.methods):
        colour = style_of(row).color
        for values, line, what in (
            (result.real[row], "o-", "real error"),
            (result.shown[row], ":", "shown by 10 bins"),
            (result.claimed[row], "--", "guaranteed"),
        ):
            if not np.isnan(values).all():
                how: dict[str, Any] = {"color": colour, "linewidth": 1.8, "markersize": 4}
                ax.plot(result.sample_sizes, values, line, **how, label=f"{method}: {what}")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("calibration rows")
    ax.set_ylabel("calibration error")
    without_frame(ax)
    ax.grid(True, which="major", color="0.9", linewidth=0.8)
    ax.legend(frameon=False, fontsize="small")
    return ax
