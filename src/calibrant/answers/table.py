"""A fitted calibrator as the table that all exports read."""

from __future__ import annotations

from typing import Any, Protocol

from calibrant.calibrators.table import Table
from calibrant.errors import no_table
from calibrant.params.rules import OPEN_UNIT


class Exportable(Protocol):
    """An object with its own table: every score calibrator, a Threshold, a MonotoneBand."""

    def _table(self, coverage: float) -> Table:
        """The outputs as a table, with sets of that coverage; raise an error if there is no table."""


def export_table(calibrator: Exportable, *, coverage: float = 0.95) -> Table:
    """Return a fitted calibrator as cuts and columns, or raise an error that says why it cannot be
    exported.

    A calibrator can be exported if it predicts one of finitely many values, chosen by comparing the
    score with cuts. Comparisons do not round, so every engine finds the same value. A curve can be
    exported too, if it is linear between knots, or if it needs exp and log, which engines round
    differently in the last bits.

    Parameters
    ----------
    calibrator : calibrator of scores, Threshold or MonotoneBand
        A fitted calibrator on bins of the score, with or without segments, or one that is a curve.
        For a threshold, the output is called selected: 1.0 for rows that are selected, 0.0 for
        those that are not, and nothing (NULL) for rows that are referred to a person. For a band,
        the outputs are lower and upper, the limits at each score.
    coverage : float, default=0.95
        Coverage of the prediction sets.

    Examples
    --------
    >>> from calibrant import BinningCalibrator, Partition, Tally
    >>> bins = Partition.fixed_width(2)
    >>> tally = Tally.from_counts([1000, 1000], [100, 800], partition=bins)
    >>> table = export_table(BinningCalibrator.from_tally(bins, tally))
    >>> table.steps[0].cuts, table.calibrated, table.set_names
    (array([0.5]), array([0.1003996, 0.7997003]), ['{0, 1}', '{0, 1}'])
    """
    coverage = OPEN_UNIT.check("coverage", coverage)
    if isinstance(calibrator, type) or not hasattr(calibrator, "_table"):
        raise no_table(type(calibrator).__name__, _instead_of(calibrator))
    return calibrator._table(coverage)


def _instead_of(classifier: Any) -> str | None:
    """What to export instead of a classifier; None if nothing is known about the object."""
    if hasattr(classifier, "estimators_"):
        return (
            "fit it with cv=None and export its calibrator_, which takes the score of the one model;"
            " with several models, calibrator_ takes averages of values of curves, not a score"
        )
    return "export its calibrator_" if hasattr(classifier, "calibrator_") else None
