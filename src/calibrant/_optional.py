"""Libraries that are used where they are installed, and named where they are missed."""

from typing import Any


def pandas() -> Any:
    """Return pandas, or say how to do without."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "a frame is made with pandas, which is not installed: install pandas, or read the fields, which are plain "
            "arrays"
        ) from error
    return pandas
