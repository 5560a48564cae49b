"""The drift monitor: no more false alarms than stated, ever, and changes that matter are found and named."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from calibrant import DriftMonitor, Partition
from calibrant.errors import CalibrantError

ONE = Partition.fixed_width(1)


def watch(labels, partition=ONE, batch: int = 50) -> DriftMonitor:
    monitor = DriftMonitor(partition)
    for start in range(0, len(labels), batch):
        part = labels[start : start + batch]
        monitor.update(np.full(len(part), 0.5), part)
    return monitor


@given(st.lists(st.integers(0, 1), min_size=1, max_size=100))
def test_evidence_is_the_stated_sum_while_every_moment_is_a_candidate(labels) -> None:
    largest = 0.0
    for n in range(1, len(labels) + 1):
        k = sum(labels[:n])
        terms = []
        for t in range(1, n + 1):
            octave = t.bit_length() - 1
            weight = -np.log((octave + 1) * (octave + 2) * 2.0**octave)
            before = sum(labels[:t])
            terms.append(
                weight
                + special.betaln(before + 0.5, t - before + 0.5)
                + special.betaln(k - before + 0.5, n - t - k + before + 0.5)
                - 2 * special.betaln(0.5, 0.5)
            )
        best = special.xlogy(k, k / n) + special.xlogy(n - k, 1 - k / n)
        largest = max(largest, float(special.logsumexp(terms) - best))
    assert watch(np.array(labels), batch=1).log_evidence[0] == pytest.approx(largest, abs=1e-9)


def test_weights_of_all_candidates_add_up_to_less_than_one() -> None:
    from calibrant.drift import _log_weights

    total = 0.0
    for octave in range(60):
        step = max(1, 2**octave // 128)
        candidates = np.arange(2**octave, 2 ** (octave + 1), step, dtype=np.int64)
        total += np.exp(_log_weights(candidates)).sum()
    assert 0.9 < total <= 1.0


def test_memory_does_not_grow_with_the_stream() -> None:
    rng = np.random.default_rng(0)
    monitor = watch(rng.integers(0, 2, 200_000), batch=10_000)
    assert len(monitor._histories[0].moments) <= 256


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.5, 0.1, 0.01])
def test_false_alarms_over_a_long_time_are_no_more_than_stated(rate: float) -> None:
    rng = np.random.default_rng(1)
    runs, alpha = 300, 0.2
    false_alarms = 0
    for _ in range(runs):
        monitor = DriftMonitor(ONE, confidence_level=1 - alpha)
        for _ in range(60):
            monitor.update(np.full(50, 0.5), (rng.uniform(size=50) < rate).astype(int))
        false_alarms += monitor.alarm
    assert stats.binomtest(false_alarms, runs, alpha, alternative="greater").pvalue > 1e-3


def test_a_change_is_found_named_and_dated() -> None:
    rng = np.random.default_rng(2)
    bins = Partition.fixed_width(2)
    monitor = DriftMonitor(bins)
    for day in range(100):
        scores = rng.uniform(size=40)
        rate = np.where(scores < 0.5, 0.2, 0.5 if day < 50 else 0.8)
        monitor.update(scores, (rng.uniform(size=40) < rate).astype(int))
    assert monitor.alarm
    (change,) = monitor.changes
    assert change.region == 1
    assert change.after_rows == pytest.approx(1000, rel=0.1)
    assert change.rate_before == pytest.approx(0.5, abs=0.05)
    assert change.rate_after == pytest.approx(0.8, abs=0.05)
    assert monitor.verdict.startswith("region 1 ([0.5, 1]): the rate has moved up")
    assert "no longer holds today" in monitor.verdict


def test_an_alarm_stays_raised() -> None:
    labels = np.concatenate([np.zeros(500), np.ones(500), np.zeros(20_000)]).astype(int)
    assert watch(labels, batch=500).alarm


def test_state_goes_on_elsewhere_bit_for_bit() -> None:
    rng = np.random.default_rng(3)
    here = watch(rng.integers(0, 2, 777))
    there = DriftMonitor.from_dict(json.loads(json.dumps(here.to_dict())))
    later = rng.integers(0, 2, 300)
    for monitor in (here, there):
        monitor.update(np.full(300, 0.5), later)
    assert json.dumps(here.to_dict()) == json.dumps(there.to_dict())


def test_other_schemas_and_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="schema of the state"):
        DriftMonitor.from_dict({"schema": "calibrant.drift/99"})
    with pytest.raises(ValueError, match="confidence_level"):
        DriftMonitor(ONE, confidence_level=1.0)
    with pytest.raises(TypeError, match="partition must be"):
        DriftMonitor("bins")


def test_labels_of_any_two_kinds_are_watched() -> None:
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, 400)
    words = DriftMonitor(ONE, classes=("paid", "default"), pos_label="default")
    words.update(np.full(400, 0.5), np.where(labels == 1, "default", "paid"))
    assert words.log_evidence == watch(labels, batch=400).log_evidence
    again = DriftMonitor.from_dict(json.loads(json.dumps(words.to_dict())))
    again.update([0.5], ["paid"])
    assert "1 regions" in repr(again)


STATE = watch(np.random.default_rng(5).integers(0, 2, 300)).to_dict()
HISTORY = STATE["histories"][0]


def forged(**changes: object) -> dict[str, object]:
    return {**STATE, "histories": [{**HISTORY, **changes}]}


FORGED = {
    "not a dict": [STATE],
    "no partition": {key: value for key, value in STATE.items() if key != "partition"},
    "partition of another kind": {**STATE, "partition": 3},
    "level": {**STATE, "confidence_level": 1.0},
    "NaN as a level": {**STATE, "confidence_level": float("nan")},
    "one class": {**STATE, "classes": [1]},
    "positive class": {**STATE, "pos_label": 7},
    "no history": {**STATE, "histories": []},
    "history for another partition": {**STATE, "histories": [HISTORY, HISTORY]},
    "history of another kind": {**STATE, "histories": [3]},
    "negative count": forged(n=-1),
    "fraction of a row": forged(n=300.5),
    "count as text": forged(n="300"),
    "more positives than labels": forged(k=301),
    "moments of other labels": forged(n=10**6),
    "moments missing": forged(moments=[]),
    "moments out of order": forged(moments=HISTORY["moments"][::-1]),
    "NaN among moments": forged(moments=[float("nan"), *HISTORY["moments"][1:]]),
    "fewer positives than moments": forged(positives=HISTORY["positives"][:-1]),
    "positives that fall": forged(positives=HISTORY["positives"][::-1]),
    "positives faster than labels": forged(positives=[HISTORY["k"]] * len(HISTORY["positives"])),
    "evidence below what the labels show": forged(largest=-1e9),
    "more evidence than labels can give": forged(largest=1e9),
    "evidence NaN": forged(largest=float("nan")),
    "evidence as text": forged(largest="0"),
}


@pytest.mark.parametrize("state", FORGED.values(), ids=FORGED)
def test_forged_states_raise(state: object) -> None:
    assert DriftMonitor.from_dict(STATE).to_dict() == STATE
    with pytest.raises(CalibrantError):
        DriftMonitor.from_dict(state)  # type: ignore[arg-type]
