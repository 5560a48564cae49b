"""The value of a curve as SQL, from the numbers of its region."""

from calibrant.cells.lines import MOST_LOGIT, Lines
from calibrant.sample.sql.dialects import Dialect


def on_curve(
    lines: Lines,
    dialect: Dialect,
    score: str,
    value: str,
    slope: str,
    start: str,
    offset: str | None = None,
) -> str:
    """The prediction, or a limit, given SQL for a score and for the numbers of its region."""
    z = f"{value} + {slope} * ({score} - {start})"
    if lines.beta is not None:
        z = _with_logarithms(lines.beta, lines.ends, dialect, score, value)
    if lines.logit:
        z = clipped(dialect, z, dialect.number(-MOST_LOGIT), dialect.number(MOST_LOGIT))
        z = f"{dialect.number(1.0)} / ({dialect.number(1.0)} + EXP(-({z})))"
    if offset is None:
        return z
    return clipped(dialect, f"{z} + ({offset})", dialect.number(0.0), dialect.number(1.0))


def _with_logarithms(
    factors: tuple[float, float],
    ends: tuple[float, float],
    dialect: Dialect,
    score: str,
    value: str,
) -> str:
    low, high = (dialect.number(end) for end in ends)
    p = clipped(dialect, score, low, high)
    a, b = (dialect.number(factor) for factor in factors)
    return (
        f"{a} * {dialect.logarithm}({p}) - {b} * {dialect.logarithm}({dialect.number(1.0)} - {p}) +"
        f" {value}"
    )


def clipped(dialect: Dialect, text: str, low: str, high: str) -> str:
    """A value clipped to two limits; engines disagree about the result for NULL."""
    least, most = dialect.extremes
    return f"{most}({least}({text}, {high}), {low})"
