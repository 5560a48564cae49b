"""Many small questions, and their answers as flat lists of numbers.

The questions are in `tests/worlds/questions`. Their numbers of today are in
`tests/data/answers.json`, a line for each question. After a change that is meant to change some of
them, look at which ones have changed, and write them anew:

    PYTHONPATH=src .venv/bin/python tests/worlds/answers.py
    PYTHONPATH=src .venv/bin/python tests/worlds/answers.py threshold    # of questions named so
"""

import json
import sys
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

FILE = Path(__file__).parents[1] / "data" / "answers.json"
Answers = dict[str, list[float | str | None]]


def write(wanted: str = "") -> None:
    """Write the answers of questions whose name contains a text; say which have changed."""
    before: Answers = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    answers: Answers = {
        name: answer_of(name) if wanted in name or name not in before else before[name]
        for name in QUESTIONS
    }
    lines = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in answers.items())
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    changed = [name for name in answers if answers[name] != before.get(name)]
    print(f"{len(changed)} of {len(QUESTIONS)} have changed:", *changed, sep="\n  ")


if __name__ == "__main__":
    write(*sys.argv[1:2])
