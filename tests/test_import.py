"""Heavy libraries are imported where they are used, and nowhere else."""

import importlib.util
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from calibrant._optional import _PACKAGES, install
from calibrant.sample.scored import _ENGINES

HEAVY = {
    "numba",
    "pandas",
    "matplotlib",
    "polars",
    "pyarrow",
    "duckdb",
    "dask",
    "distributed",
    "pyspark",
    "torch",
    "cupy",
}
HEAVY |= {"sqlalchemy", "onnx", "jinja2", "click", "rich", "fastapi", "uvicorn"}


def loaded_after(statement: str) -> set[str]:
    """Top-level packages that a fresh interpreter holds after `statement`."""
    code = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_no_library():
    assert not loaded_after("import calibrant") & {*HEAVY, "sklearn", "scipy", "numpy", "narwhals"}


def test_no_optional_library_is_loaded_before_it_is_used():
    statements = [
        "from calibrant import BinningCalibrator, CalibratedClassifier, ReliabilityDisplay",
        "from calibrant import scored, save_model, load_model, Report",
        "import calibrant.export",
        "BinningCalibrator(2).fit([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1])",
    ]
    # scikit-learn may bring some of its own accord
    plain = loaded_after("import sklearn.base, sklearn.model_selection")
    assert not (loaded_after("\n".join(statements)) - plain) & HEAVY


LOADED = """
import sys
from calibrant import load_model
model = load_model(sys.argv[1])
model.predict([0.2, 0.7]), model.predict_proba([0.2, 0.7]), model.calibrator.get_params()
print(*({"sklearn", "pandas", "scipy.stats"} & set(sys.modules)))
"""


@pytest.mark.parametrize(
    "name", ["BinningCalibrator", "Calibrator", "PlattCalibrator", "TopLabelCalibrator"]
)
def test_a_loaded_model_predicts_without_scikit_learn(name, tmp_path):
    import calibrant

    rng = np.random.default_rng(0)
    scores = rng.random((400, 3)) if name == "TopLabelCalibrator" else rng.random(400)
    if scores.ndim == 2:
        scores /= scores.sum(axis=1, keepdims=True)
    labels = rng.integers(0, scores.ndim + 1, 400)
    path = tmp_path / "model.json"
    calibrant.save_model(getattr(calibrant, name)().fit(scores, labels), path)
    code = LOADED
    if scores.ndim == 2:
        code = code.replace("[0.2, 0.7]", "[[0.2, 0.3, 0.5], [0.7, 0.2, 0.1]]")
        code = code.replace("predict_proba", "predict_confidence")
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_every_public_name_can_be_imported():
    import calibrant

    assert {
        getattr(calibrant, name).__module__.partition(".")[0] for name in calibrant.__all__
    } == {"calibrant"}
    assert set(calibrant.__all__) <= set(dir(calibrant))


def test_an_unknown_name_is_an_attribute_error():
    import calibrant

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        calibrant.nothing  # noqa: B018


def test_a_fresh_process_reads_a_calibrator_of_any_kind():
    import calibrant

    listed = {*calibrant.__all__, *calibrant.calibrators.__all__} - {"ScoreCalibrator"}
    kinds = [name for name in listed if name.endswith("Calibrator")]
    multiclass = {"ClassWiseCalibrator", "TopLabelCalibrator"}  # of matrices, not of scores
    code = (
        "import sys; from calibrant.calibrators.score_calibrator import _own_type; "
        "print(*(_own_type(name) for name in sys.argv[1:]))"
    )
    names = sorted(set(kinds) - multiclass)
    printed = subprocess.run(
        [sys.executable, "-c", code, *names], check=True, capture_output=True, text=True
    ).stdout
    assert "None" not in printed
    assert all(f".{name}'" in printed for name in names)


CALIBRATOR = (
    "from calibrant import BinningCalibrator; c = BinningCalibrator(2).fit([0.1, 0.2, 0.3, 0.4],"
    " [0, 1, 0, 1])"
)
USES = {
    ("pyarrow", "arrow"): "from calibrant import scored; scored({'p': [0.1]}, score='p')",
    (
        "jinja2",
        "report",
    ): "from calibrant import audit, Report; Report(audit([0, 1], [0.1, 0.9])).html",
    ("onnx", "onnx"): f"{CALIBRATOR}; from calibrant.export import to_onnx; to_onnx(c)",
    ("matplotlib", "plot"): (
        "from calibrant import ReliabilityDisplay; "
        "ReliabilityDisplay.from_predictions([0, 1], [0.1, 0.9])"
    ),
    ("click", "cli"): "from calibrant.cli import main; main()",
}


WITHOUT = """
import sys
for library, use in {uses!r}:
    held = {{name: sys.modules.pop(name) for name in [*sys.modules] if name.partition(".")[0] == library}}
    sys.modules[library] = None
    try:
        exec(use)
        print("no error", file=sys.stderr)
    except ImportError as error:
        print(error, file=sys.stderr)
    except SystemExit as error:
        assert error.code != 0
    del sys.modules[library]
    sys.modules |= held
"""  # noqa: E501


def test_a_library_that_is_missed_is_named_with_how_to_install_it():
    code = WITHOUT.format(uses=[(library, use) for (library, _), use in USES.items()])
    options = ("-W", "ignore::UserWarning")
    done = subprocess.run(
        [sys.executable, *options, "-c", code], capture_output=True, text=True, check=True
    )
    said = done.stderr.splitlines()
    for (library, _), line in zip(USES, said, strict=True):
        assert f"pip install {library}" in line


def test_every_engine_says_what_to_install():
    assert {engine for engine, _ in _ENGINES.values()} <= {*_PACKAGES}


def test_the_packages_of_an_extra_are_those_of_the_project():
    """Our own name is on no index: someone else could take it, and so no hint asks to install it."""
    project = Path(__file__).parents[1] / "pyproject.toml"
    extras = tomllib.loads(project.read_text())["project"]["optional-dependencies"]

    def packages(extra):
        for package in extras[extra]:
            if package.startswith("calibrant["):
                for part in package.removeprefix("calibrant[").removesuffix("]").split(","):
                    yield from packages(part)
            else:
                yield package.partition(">=")[0]

    for extra in _PACKAGES:
        assert list(_PACKAGES[extra]) == list(packages(extra))


def test_advice_lists_packages_that_are_missing(monkeypatch):
    there = importlib.util.find_spec
    absent = {"jinja2", "dask"}
    monkeypatch.setattr(
        "calibrant._optional.find_spec", lambda name: None if name in absent else there(name)
    )
    assert install("cli") == "pip install jinja2"
    assert install("dask") == "pip install 'dask[dataframe,distributed]'"
