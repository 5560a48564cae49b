"""A smaller run of the experiment on repeated looks, by its own code."""

from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from calibrant.sequences import SEQUENCES
from worlds.guarantees import assert_kept

SCRIPT = Path(__file__).parents[2] / "experiments" / "online_coverage.py"


@pytest.fixture(scope="module")
def experiment():
    spec = spec_from_file_location("online_coverage", SCRIPT)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.5, 0.2, 0.05, 0.01])
def test_a_look_after_every_label_misses_no_more_than_alpha(experiment, rate: float) -> None:
    n_labels = 2000
    naive = []

    def simulate() -> Iterator[dict[str, np.ndarray]]:
        for seed in count(7):
            found = experiment.first_misses(
                rate, 50, n_labels, seed=seed, console=Console(quiet=True)
            )
            naive.extend(found["fixed-sample"] <= n_labels)
            yield {name: found[name] <= n_labels for name in SEQUENCES}

    assert_kept(simulate(), experiment.ALPHA, caught=1.8 * experiment.ALPHA)
    # the exact interval for one look, looked at every time, breaks its guarantee
    assert (
        stats.binomtest(sum(naive), len(naive), experiment.ALPHA, alternative="greater").pvalue
        < 1e-6
    )


@pytest.mark.broad
def test_the_picture_is_drawn(experiment, tmp_path) -> None:
    found = experiment.first_misses(0.5, 5, 200, seed=0, console=Console(quiet=True))
    experiment.draw(found, 200, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000
