"""Model files of every type, and what tests do with them: write, read, change, refuse."""

import importlib.util
import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from calibrant import Model, load_model, save_model
from calibrant.answers import model_text
from calibrant.errors import CalibrantError

MODELS = Path(__file__).parents[1] / "data" / "models"
SCHEMAS = sorted(path.name for path in MODELS.iterdir() if path.is_dir() and path.name.isdigit())
FROZEN = [
    path
    for schema in SCHEMAS
    for path in sorted((MODELS / schema).glob("*.json"))
    if path.stem != "expected"
]


def _load_examples() -> Any:
    spec = importlib.util.spec_from_file_location("model_examples", MODELS / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


made = _load_examples()
EXAMPLES = made.examples()
SMALL = EXAMPLES["binning"][0]


def written(model: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    save_model(model, file, **options)
    return file.getvalue()


@cache
def file_of(model: Any) -> bytes:
    """The file of an example, which stays as it is: written once for all tests that change it."""
    return written(model)


def read(data: bytes) -> Model:
    return load_model(io.BytesIO(data))


def sealed(content: dict[str, Any]) -> bytes:
    """A file whose checksum is right, whatever the content: any author can compute one."""
    try:
        content = {**content, "checksum": model_text.checksum_of(content)}
    except CalibrantError:
        content = {**content, "checksum": "sha256:"}
    return json.dumps(content).encode()


def refused(data: bytes, match: str) -> None:
    with pytest.raises(CalibrantError, match=match) as caught:
        read(data)
    assert len(str(caught.value)) < 1000


def changed(*path: Any, to: Any, of: Any = SMALL) -> bytes:
    """A file with another value in one place, and the right checksum."""
    content = json.loads(file_of(of))
    place = content
    for key in path[:-1]:
        place = place[key]
    assert path[-1] in place or isinstance(place, list)
    place[path[-1]] = to
    return sealed(content)
