"""One example of every result class, by the name of the class. A class without an example fails a test."""

from collections.abc import Callable

import numpy as np

from calibrant import audit, plan_rate, rate
from calibrant.text.result import Result

ROWS = 400


def _rate() -> Result:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=ROWS)
    labels = (rng.uniform(size=ROWS) < scores).astype(float)
    labels[rng.permutation(ROWS)[100:]] = np.nan
    return rate(labels, scores, segments=np.repeat(["a", "b"], ROWS // 2))


def _draw() -> Result:
    found = _rate().draw  # type: ignore[attr-defined]
    assert found is not None
    return found


def _subgroups() -> Result:
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.0, 0.5, size=ROWS)
    old = rng.random(ROWS) < 0.5
    labels = rng.uniform(size=ROWS) < scores + 0.3 * old
    found = audit(labels, scores, attributes={"old": old}).by_attributes
    assert found is not None
    return found


EXAMPLES: dict[str, Callable[[], Result]] = {
    "DrawCheck": _draw,
    "Rate": _rate,
    "RatePlan": lambda: plan_rate(at_least=0.95, expected_rate=0.99),
    "SubgroupAudit": _subgroups,
}
