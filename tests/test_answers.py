"""Answers that nobody meant to change have not changed.

`tests/worlds/answers.py` says how to write them anew.
"""

import json

import numpy as np
import pytest

from worlds.answers import FILE, QUESTIONS, answer_of

ANSWERS = json.loads(FILE.read_text(encoding="utf-8"))


def test_each_question_has_an_answer() -> None:
    assert list(ANSWERS) == list(QUESTIONS)


@pytest.mark.parametrize("name", QUESTIONS)
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
