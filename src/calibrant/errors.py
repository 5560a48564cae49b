"""The errors calibrant raises on purpose: each names the parameter, the rule, what was got, and what to do."""


class CalibrantError(Exception):
    """Base of every error that calibrant raises on purpose."""


class InvalidValueError(CalibrantError, ValueError):
    """A value breaks a stated rule."""


class InvalidTypeError(CalibrantError, TypeError):
    """An object is of a kind that can not be used here."""
