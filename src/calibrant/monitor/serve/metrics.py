"""What Prometheus reads. These names are fixed."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict

from calibrant.monitor.headline import Standing

_HELP = {
    "calibrant_epsilon": "Largest distance between a calibrated value and the rate of its region.",
    "calibrant_alarm": "Whether some test has raised an alarm.",
    "calibrant_alpha_spent": "Probability of a false alarm, ever, of the tests that run.",
    "calibrant_log_evidence": "Logarithm of the largest evidence of a test.",
    "calibrant_labels_total": "Predictions and labels that arrived, by outcome.",
    "calibrant_pending": "Predictions that are not mature yet.",
    "calibrant_last_event_timestamp_seconds": "Time of the latest event.",
    "calibrant_rate": "Observed rate of a region.",
    "calibrant_rate_lower": "Lower limit on the rate of a region.",
    "calibrant_rate_upper": "Upper limit on the rate of a region.",
}
_COUNTERS = (
    "recorded",
    "resolved",
    "duplicate",
    "conflicting",
    "expired",
    "late",
    "unknown",
)
Sample = tuple[str, dict[str, str], float]


def metrics_text(standings: Iterable[Standing]) -> str:
    """All models in the text format of Prometheus."""
    by_name: dict[str, list[Sample]] = {name: [] for name in _HELP}
    for standing in standings:
        for sample in _samples(standing):
            by_name[sample[0]].append(sample)
    lines: list[str] = []
    for name, samples in by_name.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# HELP {name} {_HELP[name]}", f"# TYPE {name} {kind}"]
        lines += [_line(*sample) for sample in samples]
    return "\n".join(lines) + "\n"


def _samples(standing: Standing) -> Iterator[Sample]:
    live = standing.live
    found = standing.headline
    model = {"model": standing.name}
    yield "calibrant_epsilon", model, found.epsilon
    yield "calibrant_alarm", model, float(found.alarm)
    yield "calibrant_alpha_spent", model, found.alpha_spent
    for test, evidence in found.evidence.items():
        yield "calibrant_log_evidence", {**model, "test": test}, evidence
    counts = asdict(live)
    for outcome in _COUNTERS:
        yield "calibrant_labels_total", {**model, "outcome": outcome}, counts[outcome]
    yield "calibrant_pending", model, live.pending
    if live.latest:
        yield "calibrant_last_event_timestamp_seconds", model, live.latest
    for region, rate, low, high in zip(
        found.regions, found.rate, found.lower, found.upper, strict=True
    ):
        labels = {**model, "bin": region}
        if rate is not None:
            yield "calibrant_rate", labels, rate
        yield "calibrant_rate_lower", labels, low
        yield "calibrant_rate_upper", labels, high


def _line(name: str, labels: dict[str, str], value: float) -> str:
    shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{shown}}} {value!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
