"""Decision curves of several models in one matplotlib figure, with simultaneous bands over all
thresholds.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Self

from calibrant._typing import ArrayLike
from calibrant.assess.net_benefit import NetBenefit, net_benefit
from calibrant.draw.diagram import Display
from calibrant.draw.style import QUIET
from calibrant.text.numbers import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class NetBenefitDisplay(Display):
    """Decision curves: net benefit against threshold probability, with simultaneous bands.

    Make one with `from_predictions`; the constructor takes the numbers.

    Parameters
    ----------
    curves : NetBenefit
        The result of `calibrant.net_benefit`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the plot.
    figure_ : matplotlib Figure
        The figure of the axes.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from calibrant import NetBenefitDisplay
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=2_000)
    >>> y = rng.uniform(size=2_000) < scores
    >>> models = {"sharp": scores, "blunt": 0.3 + 0.4 * scores}
    >>> display = NetBenefitDisplay.from_predictions(y, models, ax=Figure().add_subplot())
    >>> display.ax_.get_ylabel()
    'net benefit'
    """

    def __init__(self, curves: NetBenefit) -> None:
        self.curves = curves

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        scores: ArrayLike | Mapping[str, ArrayLike],
        *,
        thresholds: ArrayLike | None = None,
        confidence_level: float = 0.9,
        pos_label: Hashable = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the decision curves of one or more models.

        Parameters
        ----------
        y, scores, thresholds, confidence_level, pos_label
            As in `calibrant.net_benefit`.
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes a new figure.

        Returns
        -------
        NetBenefitDisplay
        """
        curves = net_benefit(
            y, scores, thresholds=thresholds, confidence_level=confidence_level, pos_label=pos_label
        )
        return cls(curves).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the numbers.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes a new figure.

        Returns
        -------
        NetBenefitDisplay
            The display itself.
        """
        found = self.curves
        ax = self._begin(ax, 6.4, 4.6)
        found.pictures()[0].plot(ax)
        # acting on all rows costs far more at high thresholds than any model gains
        top = max(float(found.upper.max()), float(found.act_on_all.max()), 0.0) or 0.1
        ax.set_ylim(-0.25 * top, 1.05 * top)
        ax.set_xlim(min(0.0, float(found.thresholds[0])), float(found.thresholds[-1]))
        level = percent(found.confidence_level)
        title = f"bands: {level}, all thresholds and models simultaneously"
        ax.set_title(title, fontsize="small", color=QUIET, loc="left")
        return self
