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
from calibrant.draw.report.names import FINDINGS, name_of, region_name
from calibrant.draw.report.page import Page
from calibrant.text.numbers import counted, limits, lower, nearest, percent, upper
from calibrant.text.sentences import PlainText, in_python, render, sentence

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


def rendered_page(page: Page, words: PlainText = in_python) -> str:
    """The text of a page; `words` is how settings are written in it.

    Lone surrogates, as in file names that are not UTF-8, are written as escapes.
    """
    environment = _environment(needed("jinja2", "report", "reports are made"))
    text = environment.get_template("report.html.jinja").render(page=page, words=words)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


@cache
def _environment(jinja2: Any) -> "Environment":
    """Return the environment, which compiles each template once."""
    environment: Environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=jinja2.pass_context(_in_words),
    )
    script = _asset("report.js")
    environment.filters |= _FILTERS
    environment.globals |= {
        "findings": FINDINGS,
        "limits": limits,
        "name_of": name_of,
        "region_name": region_name,
        "style": _asset("style.css"),
        "script": script,
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "version": __version__,
        "versions": (
            f"calibrant {__version__}, Python {platform.python_version()}, numpy {np.__version__}"
        ),
    }
    return environment


def _in_words(context: Any, value: Any) -> Any:
    """A text that names settings, in the reader's terms."""
    return render(value, context.get("words", in_python)) if isinstance(value, str) else value


def _asset(name: str) -> str:
    return resources.files("calibrant.draw.report").joinpath(name).read_text(encoding="utf-8")
