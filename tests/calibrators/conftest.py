"""Grouped rows, for all tests of groups."""

import numpy as np
import pytest


@pytest.fixture
def rows():
    """Scores and labels of 400 groups of five rows."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(400), 5)
    scores = rng.uniform(size=2000)
    return scores, (rng.uniform(size=2000) < scores).astype(int), groups
