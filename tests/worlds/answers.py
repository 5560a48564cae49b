"""Many small questions, and their answers as flat lists of numbers.

The questions are in `tests/worlds/questions`, their answers of today in `tests/data/answers.json`.
After a change that is meant to change some of them, look at which ones have changed, and write them
anew:

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
from worlds.questions import curves as curves
from worlds.questions import decisions as decisions
from worlds.questions import judgement as judgement
from worlds.questions import limits as limits
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


def write(wanted: str = "") -> None:
    """Write the answers of questions whose name contains a text; say which have changed."""
    before = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    answers = {
        name: answer_of(name) if wanted in name or name not in before else before[name]
        for name in QUESTIONS
    }
    changed = [name for name in answers if answers[name] != before.get(name)]
    lines = (f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in answers.items())
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{len(changed)} of {len(answers)} have changed:", *changed, sep="\n  ")


if __name__ == "__main__":
    write(*sys.argv[1:2])
