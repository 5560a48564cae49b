"""Send our own code to workers that lack it: a zip of the package, and functions that call into it."""

import atexit
import hashlib
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # so that the same source always gives the same bytes


@cache
def package_zip() -> Path:
    """A zip of the package's source, to be put on a worker's import path.

    It exists as long as this process.
    """
    root = Path(__file__).parents[2]
    sources = {
        path.relative_to(root.parent).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*.py"))
    }
    digest = hashlib.sha256(
        b"\0".join(name.encode() + b"\0" + text for name, text in sources.items())
    ).hexdigest()
    folder = Path(tempfile.mkdtemp(prefix="calibrant-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / f"calibrant-{digest[:16]}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in sources.items():
            packed.writestr(zipfile.ZipInfo(name, _LONG_AGO), text, zipfile.ZIP_DEFLATED)
    return path


def by_value(module: str, name: str, *settings: Any) -> Callable[..., Any]:
    """A function that calls one of ours by name, with further arguments at the end.

    A nested function is pickled by value. So whoever passes it on, such as a scheduler, needs none
    of our code, and the worker that calls it imports the code that was sent to it.
    """

    def call(*given: Any) -> Any:
        from importlib import import_module

        return getattr(import_module(module), name)(*given, *settings)

    call.__name__ = name  # shown in a dashboard
    return call


def tell_missing(error: Exception, where: str) -> None:
    """If `error` is caused by a library that workers lack, say so; otherwise do nothing."""
    told = ""
    cause: BaseException | None = error
    while cause is not None:
        told = f"{told}\n{cause}"
        cause = cause.__cause__
    found = re.search(
        r"No module named '(\w+)|(PyArrow|NumPy|Pandas)[^\n]* must be installed", told
    )
    if found is None:
        return
    library = (found[1] or found[2]).lower()
    raise ImportError(
        f"the workers of {where} need {library}, which is not installed there: install numpy and"
        " pyarrow on each of them, in the versions of this process; calibrant itself is sent to"
        " them"
    ) from error
