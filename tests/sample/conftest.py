"""What the tests of sources have in common."""

from pathlib import Path

import pytest

# a script that tests run as a process of its own is no module of tests
collect_ignore = ["spark_connect.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests here compare sources; that small segments are pooled is not their subject."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(
                pytest.mark.filterwarnings("ignore::calibrant.errors.PooledSegmentsWarning")
            )
