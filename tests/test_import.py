"""Heavy libraries are imported where they are used, and nowhere else."""

import subprocess
import sys

import pytest

HEAVY = {"numba", "pandas", "matplotlib", "polars", "pyarrow"}


def loaded_after(statement: str) -> set[str]:
    """Top-level packages that a fresh interpreter holds after `statement`."""
    code = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_no_library():
    assert not loaded_after("import calibrant") & {*HEAVY, "sklearn", "scipy", "numpy", "narwhals"}


@pytest.mark.parametrize(
    "statement",
    [
        "from calibrant import BinningCalibrator",
        "from calibrant import CalibratedClassifier",
        "from calibrant import ReliabilityDisplay",
        "from calibrant import BinningCalibrator; BinningCalibrator(2).fit([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1])",
    ],
)
def test_no_optional_library_is_loaded_before_it_is_used(statement):
    plain = loaded_after(
        "import sklearn.base, sklearn.model_selection"
    )  # scikit-learn may bring some of its own accord
    assert not (loaded_after(statement) - plain) & HEAVY


def test_every_public_name_can_be_imported():
    import calibrant

    assert {getattr(calibrant, name).__module__.partition(".")[0] for name in calibrant.__all__} == {"calibrant"}
    assert set(calibrant.__all__) <= set(dir(calibrant))


def test_an_unknown_name_is_an_attribute_error():
    import calibrant

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        calibrant.nothing  # noqa: B018


def test_a_fresh_process_reads_a_calibrator_of_any_kind():
    import calibrant

    kinds = [name for name in calibrant.__all__ if name.endswith("Calibrator") and name != "ScoreCalibrator"]
    multiclass = {"ClassWiseCalibrator", "TopLabelCalibrator"}  # of matrices, not of scores
    code = "from calibrant import ScoreCalibrator; print(*sorted(ScoreCalibrator._saved_types))"
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert set(kinds) - multiclass <= set(printed.split())
