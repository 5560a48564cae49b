"""A PostgreSQL server, started once."""

from collections.abc import Iterator

import pytest

from worlds.postgres_server import postgres_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    with postgres_server() as folder:
        yield folder
