"""Pages and scripts of the documentation as notebooks: a cell for each piece of text and of code."""

from __future__ import annotations

import ast
import doctest
import json
import re

FENCE = re.compile(r"^```(python|pycon)\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"^!\[[^\]]*\]\([\w-]+\.png\)\n?", re.MULTILINE)  # the code draws it


def of_page(text: str) -> str:
    """A page of Markdown as a notebook; prompts become code, and what they print is left out."""
    cells = []
    start = 0
    for fence in FENCE.finditer(text):
        cells.append(_words(text[start : fence.start()]))
        kind, code = fence.groups()
        cells.append(_code(code if kind == "python" else _without_prompts(code)))
        start = fence.end()
    cells.append(_words(text[start:]))
    return _notebook([cell for cell in cells if cell is not None])


def of_script(text: str) -> str:
    """A script of the gallery as a notebook: its docstring is text, the rest one piece of code."""
    docstring = ast.get_docstring(ast.parse(text)) or ""
    title, explanation, *_ = docstring.split("\n\n")
    code = text.split('"""', 2)[2].lstrip("\n")
    return _notebook([_words(f"# {title}\n\n{explanation}"), _code(code)])


def _without_prompts(code: str) -> str:
    return "".join(example.source for example in doctest.DocTestParser().get_examples(code))


def _words(text: str) -> dict[str, object] | None:
    text = PICTURE.sub("", text).strip()
    if not text:
        return None
    return {"cell_type": "markdown", "metadata": {}, "source": _lines(text)}


def _code(code: str) -> dict[str, object]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": _lines(code.rstrip("\n")),
    }


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _notebook(cells: list[dict[str, object] | None]) -> str:
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": [{**cell, "id": f"cell-{number}"} for number, cell in enumerate(cells) if cell],
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
