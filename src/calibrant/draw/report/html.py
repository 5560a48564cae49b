"""Render a template and results as one self-contained HTML page."""

import base64
import hashlib
import platform
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._optional import needed
from calibrant._version import __version__
from calibrant.draw.report.figures import FINDINGS
from calibrant.text.numbers import counted, limits, lower, nearest, percent, upper
from calibrant.text.sentences import in_python, name_of, render, sentence

if TYPE_CHECKING:
    from jinja2 import Environment

_FILTERS = {
    "at_least": lower,
    "at_most": upper,
    "nearest": nearest,
    "percent": percent,
    "counted": counted,
    "sentence": sentence,
    "name": name_of,
}


def filled_template(template: str, **shown: Any) -> str:
    """The text of a template; the entry `words` is how settings are written in it.

    Lone surrogates, as in file names that are not UTF-8, are written as escapes.
    """
    environment = _environment(needed("jinja2", "report", "reports are made"))
    text = environment.get_template(template).render(**shown)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


@cache
def _environment(jinja2: Any) -> "Environment":
    """Return the environment, which compiles each template once."""
    environment: Environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(asset),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=jinja2.pass_context(_in_words),
    )
    script = asset("report.js")
    environment.filters |= _FILTERS
    environment.globals |= {
        "findings": FINDINGS,
        "limits": limits,
        "style": asset("style.css"),
        "script": script,
        "script_hash": hash_of(script),
        "live_script": asset("live/live.js"),
        "live_style": asset("live/live.css"),
        "version": __version__,
        "versions": (
            f"calibrant {__version__}, Python {platform.python_version()}, numpy {np.__version__}"
        ),
    }
    return environment


def _in_words(context: Any, value: Any) -> Any:
    """A text that names settings, in the reader's terms."""
    return render(value, context.get("words", in_python)) if isinstance(value, str) else value


def hash_of(text: str) -> str:
    """The hash by which a security policy allows a script or a style."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def asset(name: str) -> str:
    """The text of a file of the report."""
    return resources.files("calibrant.draw.report").joinpath(name).read_text(encoding="utf-8")
