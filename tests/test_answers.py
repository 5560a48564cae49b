"""Answers that nobody meant to change have not changed.

`tests/worlds/answers.py` says how to write them anew.
"""

import json
from typing import Any

import numpy as np
import pytest

from worlds.answers import FILE, QUESTIONS, answer_of

ANSWERS = json.loads(FILE.read_text(encoding="utf-8"))
COSTLY = (  # names that begin so belong to questions of a tenth of a second and more
    "audited_weights",
    "bets_towards",
    "checks_",
    "compared_units",
    "comparisons_",
    "conformal",
    "curves_",
    "graded_units",
    "groups_",
    "many_rows",
    "pairs",
    "paths_of",
    "planned",
    "sizes_of_samples",
    "state",
    "tables",
    "thresholds_",
    "validated_units",
)


def marked(name: str) -> Any:
    """A question as a parameter; daily work leaves out the costly ones."""
    return pytest.param(name, marks=pytest.mark.broad) if name.startswith(COSTLY) else name


def test_each_question_has_an_answer() -> None:
    assert list(ANSWERS) == list(QUESTIONS)


@pytest.mark.parametrize("name", [marked(name) for name in QUESTIONS])
def test_the_answer_is_what_it_was(name: str) -> None:
    found = answer_of(name)
    expected = ANSWERS[name]
    texts = [[one for one in answer if isinstance(one, str)] for answer in (found, expected)]
    assert texts[0] == texts[1]
    values = [
        np.array([one for one in answer if not isinstance(one, str)], dtype=float)
        for answer in (found, expected)
    ]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-6, atol=1e-9)
