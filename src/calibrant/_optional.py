"""Optional libraries: imported where they are used, and named in the error where they are missing."""

from importlib import import_module
from typing import Any


class Lazy:
    """A library that is imported when one of its names is first used."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._module), name)


pa: Any = Lazy("pyarrow")
pc: Any = Lazy("pyarrow.compute")
pq: Any = Lazy("pyarrow.parquet")


def pandas() -> Any:
    """Return pandas, or raise with what to do without it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "to_frame needs pandas, which is not installed: install pandas, or read the fields, which are plain arrays"
        ) from error
    return pandas


def needed(module: str, extra: str, what: str) -> Any:
    """Return an optional library, or raise with what it is needed for and which extra installs it."""
    library = module.partition(".")[0]
    try:
        return import_module(module)
    except ImportError as error:
        if (error.name or "").partition(".")[0] != library:
            raise  # the library is there, but something that it needs is not
        raise ImportError(f"{what} with {library}, which is not installed: pip install 'calibrant[{extra}]'") from error
