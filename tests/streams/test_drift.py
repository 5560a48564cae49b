"""The drift monitor: no more false alarms than stated, ever, and changes that matter are found and named."""

import copy
import itertools
import json
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from calibrant import DriftMonitor, Partition
from calibrant.errors import CalibrantError
from worlds.promises import assert_kept

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
    from calibrant.limits.sequences.change import _log_weights

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
@pytest.mark.parametrize("rate", [0.5, 0.01])
def test_false_alarms_over_a_long_time_are_no_more_than_stated(rate: float) -> None:
    rng = np.random.default_rng(1)
    alpha = 0.2

    def simulate() -> Iterator[dict[str, bool]]:
        while True:
            monitor = DriftMonitor(ONE, confidence_level=1 - alpha)
            for labels in (rng.uniform(size=(60, 50)) < rate).astype(int):
                monitor._histories[0].extend(labels)  # what `update` does, without reading the rows
            yield {"alarm": monitor.alarm}

    assert_kept(simulate(), alpha, caught=0.32)


def watch_blocks(shares, size: int = 5, **options) -> DriftMonitor:
    """Blocks of rows of which a given share is positive."""
    shares = np.asarray(shares)
    labels = (np.arange(size) < np.round(shares * size)[:, None]).astype(int).ravel()
    monitor = DriftMonitor(ONE, unit="block", **options)
    return monitor.update(np.full(labels.size, 0.5), labels, blocks=np.repeat(np.arange(shares.size), size))


@pytest.mark.broad
def test_clusters_of_five_are_taken_for_changes_by_rows_and_not_by_blocks() -> None:
    # the reason for the stated assumption: rows of a cluster have one label, and the rate is constant
    rng = np.random.default_rng(6)
    runs, alpha, by_rows, by_blocks = 40, 0.05, 0, 0
    for _ in range(runs):
        labels = np.repeat(rng.uniform(size=300) < 0.3, 5).astype(int)
        scores, clusters = np.full(1500, 0.5), np.repeat(np.arange(300), 5)
        rows, blocks = (DriftMonitor(ONE, confidence_level=1 - alpha, unit=unit) for unit in ("row", "block"))
        for part in np.split(np.arange(1500), 30):
            rows.update(scores[part], labels[part])
        blocks.update(scores, labels, blocks=clusters)  # looked at after each block
        by_rows += rows.alarm
        by_blocks += blocks.alarm
    assert by_rows > 0.8 * runs
    assert stats.binomtest(by_blocks, runs, alpha, alternative="greater").pvalue > 1e-3
    assert "independent draws" in DriftMonitor.__doc__
    assert "nothing else" not in DriftMonitor.__doc__


@pytest.mark.slow
@pytest.mark.parametrize("spread", ["one label a cluster", "rates that differ", "independent"])
def test_false_alarms_of_blocks_are_no_more_than_stated(spread: str) -> None:
    rng = np.random.default_rng(7)
    alpha, rate = 0.5, 0.4

    def simulate() -> Iterator[dict[str, bool]]:
        while True:
            rates = {
                "one label a cluster": (rng.uniform(size=400) < rate).astype(float),
                "rates that differ": rng.beta(2, 3, size=400),
                "independent": np.full(400, rate),
            }[spread]
            labels = (rng.uniform(size=(400, 5)) < rates[:, None]).astype(int).ravel()
            monitor = DriftMonitor(ONE, confidence_level=1 - alpha, unit="block")
            yield {"alarm": monitor.update(np.full(2000, 0.5), labels, blocks=np.repeat(np.arange(400), 5)).alarm}

    assert_kept(simulate(), alpha, caught=0.7)


def test_a_monitor_of_blocks_that_is_read_back_still_sounds_its_alarm() -> None:
    shares = np.repeat([0.2, 0.8], 60)
    monitor = watch_blocks(shares)
    assert monitor.alarm
    again = DriftMonitor.from_dict(json.loads(json.dumps(monitor.to_dict())))
    assert again.alarm
    assert str(again) == str(monitor)


def test_the_bets_of_blocks_are_fair_at_the_true_rate() -> None:
    # exact, over all ways in which six blocks can come; each capital starts where its bet begins
    from calibrant.limits.sequences.change import _RATES, BlockHistory

    started = np.cumsum([1 / 2, 1 / 12, 1 / 12, 1 / 48, 1 / 48, 1 / 48])
    for at in (20, 90):
        p = _RATES[at]
        mean = np.zeros(2)
        for shares in itertools.product([0.0, 1.0], repeat=6):
            history = BlockHistory()
            history.extend(np.array(shares))
            hits = int(sum(shares))
            above, below = history.capital.mean(axis=1)
            mean += p**hits * (1 - p) ** (6 - hits) * np.array([above[at], below[::-1][at + 1]])
        assert mean == pytest.approx(started[-1])
    assert _RATES[-1] == 1.0
    assert 1 - _RATES[:-1][::-1] == pytest.approx(_RATES[:-1])


def test_the_weights_of_all_starts_of_bets_add_up_to_less_than_one() -> None:
    from calibrant.limits.sequences.change import BlockHistory

    history = BlockHistory()
    history.extend(np.full(5000, 0.5))
    at_one_half = history.capital[0, :, 63]  # a bet on a share that is always p gains and loses nothing
    octaves = np.arange(12)
    assert at_one_half == pytest.approx((1 / ((octaves + 1) * (octaves + 2))).sum() + 2 / (13 * 14 * 8))


def test_a_change_of_blocks_is_found_named_and_dated() -> None:
    monitor = watch_blocks(np.repeat([0.4, 0.6, 0.8], [100, 0, 100]))
    assert monitor.alarm
    (change,) = monitor.changes
    assert (change.unit, change.after) == ("block", 100)
    assert (change.rate_before, change.rate_after) == pytest.approx((0.4, 0.8))
    assert "from 0.4 to 0.8 after about 100 blocks" in monitor.verdict
    calm = watch_blocks(np.full(200, 0.4))
    assert calm.verdict == "no region has moved, as far as 200 blocks show"


@pytest.mark.broad
def test_blocks_of_any_kind_and_split_give_the_same_evidence() -> None:
    rng = np.random.default_rng(8)
    bins = Partition.fixed_width(3)
    scores, labels = rng.uniform(size=600), rng.integers(0, 2, 600)
    days = np.sort(rng.integers(0, 60, 600))
    whole = DriftMonitor(bins, unit="block").update(scores, labels, blocks=days)
    for names in (np.array([f"day {day}" for day in days]), np.datetime64("2026-01-01") + days):
        parts = DriftMonitor(bins, unit="block")
        for rows in (days < 20, (days >= 20) & (days < 21), days >= 21):
            parts.update(scores[rows], labels[rows], blocks=names[rows])
        np.testing.assert_array_equal(parts.log_evidence, whole.log_evidence)
    mixed = rng.permutation(600)  # rows of one block need not stand together
    order = np.argsort([np.flatnonzero(days[mixed] == day)[0] for day in np.unique(days)])
    again = DriftMonitor(bins, unit="block").update(scores[mixed], labels[mixed], blocks=days[mixed])
    renamed = DriftMonitor(bins, unit="block")
    for day in np.unique(days)[order]:
        renamed.update(scores[days == day], labels[days == day], blocks=days[days == day])
    np.testing.assert_allclose(again.log_evidence, renamed.log_evidence)


def test_the_state_of_blocks_goes_on_elsewhere_bit_for_bit() -> None:
    rng = np.random.default_rng(9)
    here = watch_blocks(rng.integers(0, 6, 150) / 5)
    there = DriftMonitor.from_dict(json.loads(json.dumps(here.to_dict())))
    for monitor in (here, there):
        monitor.update(np.full(4, 0.5), [0, 1, 1, 1], blocks=["a", "a", "b", "b"])
    assert json.dumps(here.to_dict()) == json.dumps(there.to_dict())


@pytest.mark.parametrize(
    ("monitor", "blocks", "message"),
    [
        (DriftMonitor(ONE), [1, 1], 'blocks must be None for a monitor of rows; got blocks: set unit="block"'),
        (DriftMonitor(ONE, unit="block"), None, "blocks must name the block of each row"),
        (DriftMonitor(ONE, unit="block"), [1], "same number of rows"),
        (DriftMonitor(ONE, unit="block"), [1.0, np.nan], "blocks must have no missing values"),
        (DriftMonitor(ONE, unit="block"), np.array(["a", None], dtype=object), "blocks must have no missing values"),
        (watch_blocks([0.2, 0.4]), [1, 2], "blocks must have all rows of a block in one batch; got '1'"),
    ],
)
def test_blocks_that_cannot_be_taken_leave_the_monitor_as_it_was(monitor, blocks, message: str) -> None:
    before = monitor.to_dict()
    with pytest.raises((TypeError, ValueError), match=message):
        monitor.update([0.5, 0.5], [0, 1], blocks=blocks)
    assert monitor.to_dict() == before


@pytest.mark.broad
@pytest.mark.parametrize("unit", ["row", "block"])
def test_a_monitor_that_eight_threads_update_keeps_every_row(unit: str) -> None:
    monitor = DriftMonitor(Partition.fixed_width(5), unit=unit)

    def work(thread: int) -> None:
        rng = np.random.default_rng(thread)
        for number in range(20):
            blocks = np.full(30, f"{thread} {number}") if unit == "block" else None
            monitor.update(rng.uniform(size=30), rng.integers(0, 2, 30), blocks=blocks)
            assert monitor.verdict

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))  # raises what a thread raised
    units = 8 * 20 * (30 if unit == "row" else 1)
    assert f"{units:,} " in monitor.verdict
    if unit == "row":
        assert sum(history["n"] for history in monitor.to_dict()["histories"]) == units
    for again in (pickle.loads(pickle.dumps(monitor)), copy.deepcopy(monitor)):
        assert again.to_dict() == monitor.to_dict()
        again.update([0.5], [1], blocks=["last"] if unit == "block" else None)


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
    assert change.after == pytest.approx(1000, rel=0.1)
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
    "a class beyond 64 bits": {**STATE, "classes": [10**99, 1]},
    "no history": {**STATE, "histories": []},
    "history for another partition": {**STATE, "histories": [HISTORY, HISTORY]},
    "history of another kind": {**STATE, "histories": [3]},
    "negative count": forged(n=-1),
    "fraction of a row": forged(n=300.5),
    "count as text": forged(n="300"),
    "more labels than 64 bits count": forged(n=2**70),
    "more labels than can be counted exactly": forged(n=2**60, k=2**59),
    "more positives than 64 bits count": forged(k=2**70),
    "a number of a thousand digits": forged(n=10**1000),
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


BLOCKS = watch_blocks(np.random.default_rng(5).integers(0, 6, 100) / 5).to_dict()


def forged_blocks(**changes: object) -> dict[str, object]:
    return {**BLOCKS, "histories": [{**BLOCKS["histories"][0], **changes}]}


FORGED |= {
    "another unit": {**BLOCKS, "unit": "day"},
    "blocks as rows": {**BLOCKS, "unit": "row"},
    "fewer blocks than a region has": {**BLOCKS, "n_blocks": 99},
    "more blocks than 64 bits count": {**BLOCKS, "n_blocks": 2**70},
    "no number of blocks": {key: value for key, value in BLOCKS.items() if key != "n_blocks"},
    "last block": {**BLOCKS, "last_block": 3},
    "more positives than blocks": forged_blocks(k=101),
    "shares above one": forged_blocks(positives=[1.5, *BLOCKS["histories"][0]["positives"][1:]]),
    "no capital": forged_blocks(capital=[]),
    "negative capital": forged_blocks(capital=[-1.0, *BLOCKS["histories"][0]["capital"][1:]]),
    "capital NaN": forged_blocks(capital=[float("nan"), *BLOCKS["histories"][0]["capital"][1:]]),
    "infinite evidence": forged_blocks(best=[float("inf"), *BLOCKS["histories"][0]["best"][1:]]),
}


UNEVEN = DriftMonitor(Partition.fixed_width(2), unit="block")
UNEVEN.update(np.repeat([0.2, 0.8], [12, 4]), np.arange(16) % 2, blocks=np.repeat(np.arange(8), 2))
FORGED["fewer blocks than one of two regions has"] = {**UNEVEN.to_dict(), "n_blocks": 5}


@pytest.mark.parametrize("state", FORGED.values(), ids=FORGED)
def test_forged_states_raise(state: object) -> None:
    assert DriftMonitor.from_dict(STATE).to_dict() == STATE
    assert DriftMonitor.from_dict(BLOCKS).to_dict() == BLOCKS
    with pytest.raises(CalibrantError):
        DriftMonitor.from_dict(state)  # type: ignore[arg-type]
