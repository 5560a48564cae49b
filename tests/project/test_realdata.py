"""Real tables are read from wheels of a known content; no other file is opened."""

import importlib.util
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def realdata(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("realdata", ROOT / "tools" / "realdata.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    return module


def put_wheel(realdata, folder, content: str) -> Path:
    path = folder / f"nannyml-{realdata.WHEELS['nannyml'][0]}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("nannyml/data/points.csv", content)
    return path


def test_a_table_is_read_from_the_wheel_whose_checksum_is_known(realdata, tmp_path, monkeypatch):
    path = put_wheel(realdata, tmp_path, "a,b\n1,2\n3,4\n")
    monkeypatch.setitem(
        realdata.WHEELS, "nannyml", ("0.13.1", sha256(path.read_bytes()).hexdigest())
    )
    assert realdata.read_table("nannyml points.csv").to_numpy().tolist() == [[1, 2], [3, 4]]


def test_a_wheel_with_another_checksum_is_refused(realdata, tmp_path):
    put_wheel(realdata, tmp_path, "a,b\n1,2\n")
    with pytest.raises(ValueError, match="SHA-256"):
        realdata.read_table("nannyml points.csv")


@pytest.mark.broad
def test_a_wheel_that_cannot_be_downloaded_is_named(realdata, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(
        realdata.DataNotFetchedError, match=r"nannyml 0\.13\.1 could not be downloaded"
    ):
        realdata.read_table("nannyml points.csv")
    assert list(realdata.FOLDER.iterdir()) == []
