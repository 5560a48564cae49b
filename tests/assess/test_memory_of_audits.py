"""How much memory questions about rows in memory need, over that of the rows."""

import tracemalloc

import numpy as np
import pytest

from calibrant import audit, check
from calibrant.metrics import ece


@pytest.mark.parametrize(("question", "most"), [(audit, 5.0), (check, 9.0), (ece, 6.0)])
def test_questions_need_a_few_times_the_memory_of_their_rows(question, most) -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=200_000)
    y = (rng.uniform(size=scores.size) < scores).astype(np.uint8)
    question(y[:1_000], scores[:1_000])  # imports
    tracemalloc.start()
    question(y, scores)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < most * (scores.nbytes + y.nbytes)
