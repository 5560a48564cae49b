"""Every entry of a saved file, changed by hand with the checksum made right again: it is refused,
or does not stand.
"""

import contextlib
import copy
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant import load_model
from calibrant.answers.model_text import checksum_of, pretty
from calibrant.errors import CalibrantError

COLUMNS = ("rows.parquet", "--score", "p", "--label", "y")
MADE = {
    "model": ("fit", "--bins", "3"),
    "bins": ("fit", "--method", "binning", "--bins", "3", "--segment", "s"),
    "weighted": (
        "fit",
        "--method",
        "binning",
        "--bins",
        "2",
        "--weight",
        "w",
        "--weight-bound",
        "2",
    ),
    "both": ("threshold", "--precision", "0.7", "--npv", "0.7"),
    "recall": ("threshold", "--recall", "0.8", "--segment", "s"),
    "look": ("threshold", "--precision", "0.6", "--method", "look"),
    "groups": ("threshold", "--precision", "0.6", "--group", "g"),
    "start": ("threshold", "--precision", "0.7", "--start", "0.8"),
}
EDITS = 3  # of each entry, drawn at random
ORIGIN = (
    "created",
    "files",
    "calibrant",
)  # of the provenance: words that `verify` lists as not checked


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, calibrant: Callable[..., Any]) -> Path:
    folder = tmp_path_factory.mktemp("edits")
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=900)
    columns = {"p": scores, "y": (rng.uniform(size=900) < scores).astype(int), "w": 0.5 + scores}
    columns |= {"s": rng.choice(["a", "b"], size=900), "g": np.arange(900) // 2}
    pq.write_table(pa.table(columns), folder / "rows.parquet")
    with contextlib.chdir(folder):
        for name, (command, *options) in MADE.items():
            assert calibrant(command, *COLUMNS, *options, "-o", f"{name}.json").code == 0
            assert calibrant("verify", f"{name}.json", "rows.parquet").code == 0, name
    return folder


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every entry, and of every list the first and the last one."""
    if path:
        yield path
    if isinstance(value, dict):
        for name, entry in value.items():
            yield from places(entry, (*path, name))
    elif isinstance(value, list) and value:
        for place in {0, len(value) - 1}:
            yield from places(value[place], (*path, place))


def edits(value: Any) -> list[Any]:
    """Values of another type, out of range, and slightly too good."""
    others: list[Any] = [None, True, "x", -5, 7.5, 2**70, 1e308, [], {}, [[]]]
    if isinstance(value, float):
        others += [
            value * 0.99,
            value + 0.01,
            math.nextafter(value, 9.0) if abs(value) > 1 else value * 1.001,
        ]
    if isinstance(value, int) and not isinstance(value, bool):
        others += [value + 1, value - 1, float(value) + 0.5]
    if isinstance(value, str):
        others += [f"{value}.", ""]
    if isinstance(value, list):
        others += [value[1:], value + value[-1:]]
    if isinstance(value, dict):
        others += [{**value, "more": 1}]
    return [other for other in others if not is_same(other, value)]


def is_same(one: Any, other: Any) -> bool:
    """Whether two values are equal, also as labels, or differ by rounding."""
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) < 1e-11
    return bool(one == other)


def changed(content: dict[str, Any], path: tuple[Any, ...], to: Any) -> dict[str, Any]:
    new = copy.deepcopy(content)
    place: Any = new
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return new


def says_nothing(path: tuple[Any, ...], to: Any) -> bool:
    """Whether what an edit leaves is true: less is said, or the same in another way."""
    if path in (("provenance",), ("columns",)):
        return bool(to == {})
    alike = {
        "pos_label": True,
        "order": None,
    }  # the positive class is 1; no order is compared where none is told
    if path[-1] in alike:
        return bool(to == alike[path[-1]])
    if path[-1] == "seed":
        return type(to) is int and to >= 0  # where nothing is drawn, every seed finds the same
    if path[-1] == "skip_missing":
        return type(to) is bool  # no row lacks a label
    return (
        path[-1] == "start" and isinstance(to, float) and abs(to - 0.8) < 0.1
    )  # from there the same is found


def is_compared(path: tuple[Any, ...]) -> bool:
    """Whether an entry says something of the rows; `verify` lists the others as not checked."""
    if path[0] in ("checksum", "created_by"):
        return False
    return not (path[0] == "provenance" and len(path) > 1 and path[1] in ORIGIN)


def accepts(path: Path) -> bool:
    try:
        load_model(path)
    except CalibrantError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_no_edit_stands(name: str, files: Path, calibrant: Any) -> None:
    """The file is refused, or `verify` answers 1 or 3; and when it is refused, by an error of ours."""
    content = json.loads((files / f"{name}.json").read_text())
    stood = []
    rng = np.random.default_rng(1)
    with contextlib.chdir(files):
        for path in places(content):
            if not is_compared(path):
                continue
            place: Any = content
            for key in path:
                place = place[key]
            tried = edits(place)
            for number in rng.permutation(len(tried))[:EDITS].tolist():
                if says_nothing(path, tried[number]):
                    continue
                new = changed(content, path, tried[number])
                try:
                    sealed = {**new, "checksum": checksum_of(new)}
                except CalibrantError:
                    continue
                Path("edited.json").write_text(pretty(sealed))
                if accepts(Path("edited.json")):
                    answer = calibrant("verify", "edited.json", "rows.parquet", "--details")
                    if answer.code == 0 and not _is_mentioned(path, answer.out):
                        stood.append((path, tried[number]))
    assert not stood, stood[:20]


def _is_mentioned(path: tuple[Any, ...], out: str) -> bool:
    """Whether `verify` says that it did not check an entry."""
    unchecked = " ".join(out.lower().split()).partition("not checked: ")[2]
    return path[0] == "provenance" and ".".join(map(str, path)) in unchecked
