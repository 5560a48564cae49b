"""What a model's last counted day has shown, in one text of the store.

Whoever watches many models reads these texts, and not the tests and days of each.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from calibrant._typing import FloatArray, IntArray
from calibrant.limits.sequences.centred import CentredBetaBinomial
from calibrant.monitor.ledger import Live
from calibrant.monitor.model_rows import ModelRows
from calibrant.monitor.tables import DAYS, MODELS, STATE

if TYPE_CHECKING:
    from calibrant.monitor.durable import Monitor
    from calibrant.monitor.mature_days import Tests


@dataclass(frozen=True, slots=True)
class Headline:
    """What is known of a model at the end of its last counted day.

    Attributes
    ----------
    alarm : bool
        Whether some test has raised an alarm.
    finding : str
        What the first such test found; empty without an alarm.
    alarmed, since : str or None
        When the first alarm was raised, and about when the change began.
    evidence : mapping of str to float
        The logarithm of the largest evidence of each test that runs.
    progress : mapping of str to float
        The same, as a share of the evidence that raises an alarm.
    alpha_spent : float
        The probability of a false alarm that is committed to the tests that run, over their whole
        life.
    epsilon : float
        The largest distance between a calibrated value and the rate of its region.
    regions, rate, lower, upper : lists
        The regions, their observed rates (None without rows), and limits on their rates.
    """

    alarm: bool
    finding: str
    alarmed: str | None
    since: str | None
    evidence: Mapping[str, float]
    progress: Mapping[str, float]
    alpha_spent: float
    epsilon: float
    regions: list[str]
    rate: list[float | None]
    lower: list[float]
    upper: list[float]


def write_headline(rows: ModelRows, monitor: "Monitor", tests: "Tests") -> None:
    """Write the headline, within the transaction that closed a day."""
    rows.write_text("headline", json.dumps(asdict(_headline(rows, monitor, tests))))


def _headline(rows: ModelRows, monitor: "Monitor", tests: "Tests") -> Headline:
    running = {name: test for name, test in tests.by_question().items() if test is not None}
    found = [test.summary() for test in running.values() if test.alarm]
    first = min(found, key=lambda one: str(one.alarmed), default=None)
    texts = rows.select(DAYS.c.day, DAYS.c.counts)
    cells = monitor.watched.cells
    nothing = np.zeros((3, cells.n_cells), np.int64)
    total = sum((np.array(json.loads(text)) for _, text in texts), nothing)
    counts, hits, _ = cells.by_region(np.asarray(total))
    lower, upper, epsilon = known_rates(counts, hits, monitor)
    return Headline(
        alarm=first is not None,
        finding="" if first is None else first.finding_in_short,
        alarmed=None if first is None else str(first.alarmed),
        since=None if first is None or first.since is None else str(first.since),
        evidence={name: test.largest for name, test in running.items()},
        progress={name: test.progress for name, test in running.items()},
        alpha_spent=round(sum(1.0 - test.confidence_level for test in running.values()), 12),
        epsilon=float(epsilon),
        regions=[str(name) for name in monitor.watched.partition.describe()],
        rate=[hit / count if count else None for hit, count in zip(hits, counts, strict=True)],
        lower=lower.tolist(),
        upper=upper.tolist(),
    )


def known_rates(
    counts: IntArray, hits: IntArray, monitor: "Monitor"
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Limits on the rate of each region, the last axis, that hold at every moment for all of them;
    and the largest distance of its calibrated value from a limit.
    """
    log_share = float(np.log(counts.shape[-1] / (1.0 - monitor.confidence_level)))
    limits = CentredBetaBinomial.limits_of(counts.ravel(), hits.ravel(), log_share)
    lower, upper = (limit.reshape(counts.shape) for limit in (limits.lower, limits.upper))
    values = monitor.values
    centre = (lower + upper) / 2.0 if values is None else values
    return lower, upper, np.maximum(upper - centre, centre - lower).max(axis=-1, initial=0.0)


@dataclass(frozen=True, slots=True)
class Standing:
    """A model in a store: its name, its clock and counts, and its headline."""

    name: str
    live: Live
    headline: Headline


def standings(connection: Any, name: str | None = None) -> list[Standing]:
    """All models of a store by name, or one of them, from two short texts each."""
    keys = ("live", "headline")
    query = (
        sa.select(MODELS.c.name, STATE.c.key, STATE.c.value)
        .join(STATE, STATE.c.model == MODELS.c.model)
        .where(STATE.c.key.in_(keys))
        .order_by(MODELS.c.name)
    )
    if name is not None:
        query = query.where(MODELS.c.name == name)
    texts: dict[str, dict[str, str]] = {}
    for model, key, value in connection.execute(query):
        texts.setdefault(model, {})[key] = value
    return [
        Standing(model, Live.of(found["live"]), Headline(**json.loads(found["headline"])))
        for model, found in texts.items()
    ]
