"""Write what examples print into the pages and docstrings that show it.

Called by `examples.py --renew`. Code is never changed; what follows a prompt or a command is, where
it has changed. Of a command's output, figures are replaced word by word, so that what a page leaves
out stays left out. Look at the difference: prose beside a figure is not rewritten, only listed.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import os
import re
import shutil
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from examples import FENCE, ROOT, commands_of, is_shown, place_of, run_command, twice

FIGURE = re.compile(r"\d+(?:[.,]\d+)*")
FEWEST_WORDS = 4  # in a row that agree, so that a figure is not taken for another one
WORD = re.compile(r"\S+")
Change = tuple[int, int, str]
"""Where a text changes, from and to, and what stands there then."""


class Noting(doctest.DocTestRunner):
    """Runs examples and notes what they print in place of what they should."""

    def __init__(self) -> None:
        super().__init__(optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False)
        self.printed: list[tuple[doctest.Example, str]] = []

    def report_failure(self, out: Any, test: Any, example: doctest.Example, got: str) -> None:
        """Note it."""
        self.printed.append((example, got))

    def report_unexpected_exception(self, out: Any, test: Any, example: Any, exc_info: Any) -> None:
        """An error is no new output."""
        raise exc_info[1]


def renew(example: Path, folder: Path) -> str:
    """Renew one page or module; return what was done."""
    os.environ["MPLBACKEND"] = "agg"
    place = folder / place_of(example)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    os.chdir(place)
    text = example.read_text(encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()), twice():
        changes = sorted((of_page if example.suffix == ".md" else of_module)(example, text))
    if not changes:
        return ""
    new = text
    for start, end, said in reversed(changes):
        new = new[:start] + said + new[end:]
    example.write_text(new, encoding="utf-8")
    left = list(stale_prose(text, new)) if example.suffix == ".md" else []
    return "\n".join([f"renewed {example.relative_to(ROOT)}: {len(changes)} changes", *left])


def of_page(page: Path, text: str) -> Iterator[Change]:
    """What changes on a page."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for fence in FENCE.finditer(text):
        kind, code = fence.groups()
        if kind == "python":
            exec(compile(code, str(page), "exec"), namespace)
        elif kind == "shell-session":
            yield from of_commands(code, fence.start(2))
        else:
            examples = doctest.DocTestParser().get_examples(code)
            test = doctest.DocTest(examples, namespace, page.name, str(page), 0, None)
            yield from of_prompts(test, code, fence.start(2))
            namespace = test.globs


def of_module(path: Path, text: str) -> Iterator[Change]:
    """What changes in the docstrings of a module."""
    name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
    module = importlib.import_module(name.removesuffix(".__init__"))
    lines = text.splitlines(keepends=True)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module):
        if test.examples and test.lineno is not None and test.filename == str(path):
            above = test.lineno + shift_of(test, lines)
            start = sum(map(len, lines[:above]))
            yield from of_prompts(test, text[start:], start)


def shift_of(test: doctest.DocTest, lines: list[str]) -> int:
    """By how many lines `doctest` misplaces a docstring: it takes the first line with a quote."""
    places = [
        (test.lineno + one.lineno, f">>> {one.source.splitlines()[0]}") for one in test.examples
    ]
    for shift in range(len(lines) - places[-1][0]):
        if all(lines[place + shift].strip() == prompt.strip() for place, prompt in places):
            return shift
    raise ValueError(f"the prompts of {test.name} are not where doctest says")


def of_prompts(test: doctest.DocTest, code: str, offset: int) -> Iterator[Change]:
    """Where what follows `>>>` is to be replaced."""
    runner = Noting()
    runner.run(test, out=lambda _: None, clear_globs=False)
    lines = code.splitlines(keepends=True)
    for example, got in runner.printed:
        first = example.lineno + example.source.count("\n")
        shown = "".join(lines[first : first + example.want.count("\n")])
        start = offset + sum(map(len, lines[:first]))
        if masked(shown.split()) == masked(got.split()):  # lines may be broken elsewhere
            for word, new in zip(WORD.finditer(shown), got.split(), strict=True):
                if word[0] != new:
                    yield start + word.start(), start + word.end(), new
        else:
            indent = " " * example.indent
            printed = [f"{indent}{line or '<BLANKLINE>'}\n" for line in got.splitlines()]
            yield start, start + len(shown), "".join(printed)


def of_commands(code: str, offset: int) -> Iterator[Change]:
    """Where figures of a command's output are to be replaced."""
    position = 0
    for command, shown in commands_of(code):
        position = code.index(shown, position)
        printed = run_command(command)
        if not is_shown(shown, printed):
            for start, end, said in figures_of(shown, printed):
                yield offset + position + start, offset + position + end, said


def masked(words: list[str]) -> list[str]:
    """Words with # for each figure."""
    return [FIGURE.sub("#", word) for word in words]


def figures_of(shown: str, printed: str) -> Iterator[Change]:
    """Words of what is shown that are printed with other figures."""
    ours = list(WORD.finditer(shown))
    theirs = printed.split()
    alike = SequenceMatcher(None, masked(shown.split()), masked(theirs), autojunk=False)
    for block in alike.get_matching_blocks():
        for place in range(block.size if block.size >= FEWEST_WORDS else 0):
            word, new = ours[block.a + place], theirs[block.b + place]
            if word[0] != new:
                yield *word.span(), new


def stale_prose(before: str, after: str) -> Iterator[str]:
    """Lines outside of code with a figure that code printed before and no longer prints."""
    code = [" ".join(fence[0] for fence in FENCE.finditer(text)) for text in (before, after)]
    gone = set(FIGURE.findall(code[0])) - set(FIGURE.findall(code[1]))
    blank = FENCE.sub(lambda found: "\n" * found[0].count("\n"), after)
    for number, line in enumerate(blank.splitlines(), 1):
        if stale := sorted(gone & set(FIGURE.findall(line))):
            yield f"  line {number}: {', '.join(stale)}: {line.strip()}"
