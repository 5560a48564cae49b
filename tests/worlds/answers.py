"""Many small questions, and their answers as flat lists of numbers and as words.

The questions are in `tests/worlds/questions`. Their numbers of today are in
`tests/data/answers.json`, a line for each question; their words in `tests/data/texts.json`, a line
for each clause, with the questions whose answers have it. After a change that is meant to change
some of them, look at which ones have changed, and write them anew:

    PYTHONPATH=src .venv/bin/python tests/worlds/answers.py
    PYTHONPATH=src .venv/bin/python tests/worlds/answers.py threshold    # of questions named so
    PYTHONPATH=src .venv/bin/python tests/worlds/answers.py --words      # words only, no numbers
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from worlds.questions import boundaries as boundaries
from worlds.questions import calibrators as calibrators
from worlds.questions import cells as cells
from worlds.questions import contracts as contracts
from worlds.questions import corners as corners
from worlds.questions import curves as curves
from worlds.questions import decisions as decisions
from worlds.questions import judgement as judgement
from worlds.questions import limits as limits
from worlds.questions import misuse as misuse
from worlds.questions import monitors as monitors
from worlds.questions import pairs as pairs
from worlds.questions import ratios as ratios
from worlds.questions import samples as samples
from worlds.questions import settings as settings
from worlds.questions import shifts as shifts
from worlds.questions import states as states
from worlds.questions import streams as streams
from worlds.questions import thresholds as thresholds
from worlds.questions.base import QUESTIONS as QUESTIONS
from worlds.questions.base import answer_of as answer_of

DATA = Path(__file__).parents[1] / "data"
FILE = DATA / "answers.json"
WORDS = DATA / "texts.json"
Answers = dict[str, list[float | str | None]]


def words_by_question() -> dict[str, set[str]]:
    """The clauses of each answer, as they were written."""
    found: dict[str, set[str]] = {name: set() for name in QUESTIONS}
    if WORDS.exists():
        for clause, names in json.loads(WORDS.read_text(encoding="utf-8")).items():
            for name in names:
                found.setdefault(name, set()).add(clause)
    return found


def write(wanted: str = "", *, words_only: bool = False) -> None:
    """Write the answers of questions whose name contains a text; say which have changed."""
    before: Answers = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    words_before = words_by_question()
    answers: Answers = {}
    words: dict[str, set[str]] = {}
    for name in QUESTIONS:
        answers[name] = before.get(name, [])
        words[name] = words_before[name]
        if wanted in name or name not in before:
            numbers, words[name] = answer_of(name)
            if not words_only or name not in before:
                answers[name] = numbers
    _write_lines(FILE, answers)
    _write_lines(WORDS, _by_clause(words))
    _tell("numbers", [name for name in answers if answers[name] != before.get(name)])
    _tell("words", [name for name in words if words[name] != words_before[name]])


def _by_clause(words: dict[str, set[str]]) -> dict[str, list[str]]:
    """The questions whose answers have a clause, for all clauses; both are sorted."""
    every = sorted({clause for found in words.values() for clause in found})
    found: dict[str, list[str]] = {clause: [] for clause in every}
    for name in sorted(words):
        for clause in words[name]:
            found[clause].append(name)
    return found


def _write_lines(file: Path, content: Mapping[str, object]) -> None:
    lines = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in content.items())
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _tell(what: str, changed: list[str]) -> None:
    print(f"{len(changed)} of {len(QUESTIONS)} have other {what}:", *changed, sep="\n  ")


if __name__ == "__main__":
    given = sys.argv[1:]
    write(*[one for one in given if not one.startswith("--")][:1], words_only="--words" in given)
