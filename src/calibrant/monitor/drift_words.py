"""The wording of a monitor of rates: its assumptions, its notes, and what to do after an alarm."""

from calibrant.monitor.pooled_rates import PooledRates
from calibrant.monitor.ranked_units import RankedUnits
from calibrant.monitor.watched import Watched
from calibrant.text.numbers import counted

_ROWS = (
    "labels in a bin are independent, with one rate in calibration and stream",
    "which rows form a batch does not depend on labels",
)
AT_MATURITY = "labels count as known at the age of maturity"
_AS_IN_CALIBRATION = (
    "labels were counted in the same way in calibration, and unknown ones as negative"
)


def calm_words(watched: Watched, test: PooledRates | RankedUnits, unit: str) -> str:
    """The text if there is no alarm."""
    calm = "No sign that the rates have changed"
    if test.in_reference:
        return calm
    if unit == "row" and watched.has_counts:
        return f"{calm} since calibration"
    return f"{calm} since the reference period"


def rows_to_recalibrate(n_calibration: int, n_since: int | None) -> str:
    """What to do after an alarm: with how many rows to recalibrate, and how many of them are
    already available.

    >>> rows_to_recalibrate(0, None)
    'Recalibrate on rows from after the change; calibrant.plan says how many.'
    """
    since = "" if n_since is None else f" {counted(n_since, 'row')} have been counted since then."
    if n_calibration == 0:
        return f"Recalibrate on rows from after the change; calibrant.plan says how many.{since}"
    many = f"about {counted(n_calibration, 'row')}, the number used for calibration"
    return f"Recalibrate on {many}, from after the change.{since}"


def assumptions_of(unit: str, maturity: float | None, *, by_weekday: bool) -> tuple[str, ...]:
    """The assumptions behind the false alarm probability.

    >>> assumptions_of("day", None, by_weekday=False)
    ('days are exchangeable, with their volume and mix of scores',)
    """
    assumed: tuple[str, ...] = _ROWS
    if unit != "row":
        alike = "days of one weekday" if by_weekday else f"{unit}s"
        assumed = (f"{alike} are exchangeable, with their volume and mix of scores",)
    return assumed if maturity is None else (*assumed, AT_MATURITY, _AS_IN_CALIBRATION)


def notes_of(test: PooledRates | RankedUnits, unit: str) -> tuple[str, ...]:
    """The reference period, if there is one, and rows that wait for their batch."""
    notes = []
    if test.reference:
        noun = "row" if unit == "row" else unit
        what = f"The first {counted(test.n_reference, noun)} of the stream"
        why = "" if unit != "row" else "; calibration counted no rows between edges"
        verb = "will be" if test.in_reference else "were"
        notes.append(f"{what} {verb} the reference that later ones are compared with{why}.")
    if test.n_waiting:
        waiting = counted(test.n_waiting, "row")
        notes.append(f"{waiting} are waiting for a batch of {test.batch_rows:,}.")
    return tuple(notes)
