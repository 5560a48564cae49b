"""A smaller run of the experiment on repeated looks, by its own code."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from rich.console import Console
from scipy import stats

from calibrant.sequences import SEQUENCES

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
    runs, n_labels = 400, 2000
    found = experiment.first_misses(rate, runs, n_labels, seed=7, console=Console(quiet=True))
    for name in SEQUENCES:
        misses = int((found[name] <= n_labels).sum())
        p_value = stats.binomtest(misses, runs, experiment.ALPHA, alternative="greater").pvalue
        assert p_value > 1e-3, f"{name} missed in {misses} of {runs} streams"
    # the exact interval for one look, looked at every time, breaks its promise
    naive = int((found["fixed-sample"] <= n_labels).sum())
    assert stats.binomtest(naive, found["fixed-sample"].size, experiment.ALPHA, alternative="greater").pvalue < 1e-6


@pytest.mark.broad
def test_the_picture_is_drawn(experiment, tmp_path) -> None:
    found = experiment.first_misses(0.5, 5, 200, seed=0, console=Console(quiet=True))
    experiment.draw(found, 200, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000
