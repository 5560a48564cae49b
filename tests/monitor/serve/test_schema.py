"""The service keeps what its OpenAPI description says, for whatever is sent with whatever key."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from calibrant.monitor.serve.access import new_token
from calibrant.monitor.serve.app import make_app
from calibrant.monitor.serve.service import Service
from calibrant.monitor.store import Store

from .conftest import HOME, begun

schemathesis = pytest.importorskip("schemathesis")
EXAMPLES = 6


@pytest.mark.broad
@pytest.mark.parametrize("right", ["none", "read", "write"])
def test_whatever_is_sent_is_answered_as_described(tmp_path: Path, right: str) -> None:
    from schemathesis.generation import GenerationMode
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    checks = [
        schemathesis.checks.not_a_server_error,
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    ]
    store = Store(tmp_path / "serve.db", 30.0)
    world = begun(store)
    token = {"none": None, "read": new_token(store, "read"), "write": world.token}[right]
    head = {} if token is None else {"Authorization": f"Bearer {token}"}
    app = make_app(Service(store), each_second=1e6)
    schema = schemathesis.openapi.from_dict(app.openapi())
    schema.app = app
    n_operations = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path.endswith("events"):
            continue  # streams do not end
        n_operations += 1
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            _attack(operation, mode, head, checks)
    assert n_operations == 13
    store.close()


def _attack(operation: Any, mode: Any, head: dict[str, str], checks: list[Any]) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(mode))
    def send(case: Any) -> None:
        if case.path_parameters and "name" in case.path_parameters:
            case.path_parameters["name"] = "fraud"
        case.call_and_validate(base_url=HOME, headers=head, checks=checks)

    try:
        send()
    except Unsatisfiable:
        assert mode.name == "NEGATIVE"  # nothing can be wrong with a request without parameters
