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


def needed(module: str, extra: str, what: str) -> Any:
    """Return an optional library, or say what it is needed for and which extra brings it."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise  # it is there, and something else that it needs is not
        raise ImportError(f"{what} with {module}, which is not installed: pip install 'calibrant[{extra}]'") from error
