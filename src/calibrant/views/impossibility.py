"""The impossibility result as a picture: what is shown and claimed against what is real, drawn by matplotlib."""

from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.adversary import Confrontation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Vermilion for the injective map, then blue, green, purple of the Okabe-Ito palette.
_COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00")


def plot_confrontation(result: Confrontation, ax: "Axes | None" = None) -> "Axes":
    """Draw real errors as solid lines, what a reliability diagram shows as dotted, guarantees as dashed ones.

    Parameters
    ----------
    result : Confrontation
        From `calibrant.adversary.confront`.
    ax : matplotlib Axes, default=None
        What to draw on; None makes a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from calibrant import PlattCalibrator
    >>> from calibrant.adversary import confront
    >>> from calibrant.views.impossibility import plot_confrontation
    >>> result = confront(PlattCalibrator(), sample_sizes=(100, 1_000))
    >>> plot_confrontation(result, Figure().add_subplot()).get_xlabel()
    'calibration rows'
    """
    ax = _new_axes() if ax is None else ax
    for row, method in enumerate(result.methods):
        style: dict[str, Any] = {"color": _COLOURS[row % len(_COLOURS)], "linewidth": 1.8}
        ax.plot(result.sample_sizes, result.real[row], marker="o", markersize=4, label=f"{method}: real error", **style)
        ax.plot(result.sample_sizes, result.shown[row], linestyle=":", label=f"{method}: shown by 10 bins", **style)
        if not np.isnan(result.claimed[row]).all():
            ax.plot(result.sample_sizes, result.claimed[row], linestyle="--", label=f"{method}: guaranteed", **style)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("calibration rows")
    ax.set_ylabel("calibration error")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, which="major", color="0.9", linewidth=0.8)
    ax.legend(frameon=False, fontsize="small")
    return ax


def _new_axes() -> "Axes":
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "plot_confrontation draws with matplotlib, which is not installed: install calibrant[plot]"
        ) from error
    return plt.subplots(figsize=(6.4, 4.8), layout="constrained")[1]
