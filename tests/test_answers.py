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
    expected = np.array(ANSWERS[name], dtype=float)
    np.testing.assert_allclose(
        np.array(answer_of(name), dtype=float), expected, rtol=1e-6, atol=1e-9
    )
