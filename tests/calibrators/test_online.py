"""The online calibrator: one promise for a whole stream, however it is cut, merged, stopped or steered."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from calibrant import OnlineCalibrator, Partition, Tally
from calibrant.calibrators.base import ScoreCalibrator
from calibrant.intervals import Interval
from calibrant.sequences import SEQUENCES, BetaBinomial
from calibrant.sequences.beta_binomial import limits_of

BINS = Partition.from_edges([0.3, 0.6])
row = st.tuples(st.sampled_from([0.1, 0.3, 0.5, 0.6, 0.9]), st.integers(0, 1))
rows = st.lists(row, min_size=1, max_size=30)


def stream(data, **options) -> OnlineCalibrator:
    scores, labels = zip(*data, strict=True)
    return OnlineCalibrator(BINS, **options).partial_fit(scores, labels)


def as_json(calibrator: OnlineCalibrator) -> str:
    return json.dumps(calibrator.to_dict())


def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    scores = rng.uniform(size=n)
    return scores, (rng.uniform(size=n) < scores).astype(int)


@given(rows, st.randoms(), st.lists(st.integers(0, 30), max_size=4))
def test_any_order_and_any_split_give_the_identical_state_byte_for_byte(data, random, cuts) -> None:
    shuffled = data.copy()
    random.shuffle(shuffled)
    pieces = OnlineCalibrator(BINS)
    bounds = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, stop in itertools.pairwise(bounds):
        if stop > start:
            pieces.partial_fit(*zip(*shuffled[start:stop], strict=True))
    assert as_json(pieces) == as_json(stream(data))


@given(rows, rows)
def test_merging_two_streams_equals_one_stream(first, second) -> None:
    merged = stream(first).merge(stream(second))
    assert as_json(merged) == as_json(stream(first + second))
    assert merged.guarantee_.interval == stream(first + second).guarantee_.interval


@given(rows)
def test_one_by_one_equals_a_batch(data) -> None:
    online = OnlineCalibrator(BINS)
    for score, label in data:
        online.partial_fit([score], [label])
    assert as_json(online) == as_json(stream(data))
    assert online.tally_ == Tally.from_data(BINS, *zip(*data, strict=True))


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("sequence", SEQUENCES)
def test_a_saved_stream_goes_on_elsewhere_bit_for_bit(sequence: str, running: bool) -> None:
    rng = np.random.default_rng(0)
    here = OnlineCalibrator(BINS, sequence=sequence, running=running).partial_fit(*draw(rng, 500))
    there = ScoreCalibrator.from_dict(json.loads(as_json(here)))
    later = draw(rng, 500)
    assert as_json(here.partial_fit(*later)) == as_json(there.partial_fit(*later))
    np.testing.assert_array_equal(here.predict_interval(later[0]), there.predict_interval(later[0]))


def test_running_intervals_never_widen_and_others_may() -> None:
    def widths(running: bool) -> np.ndarray:
        rng = np.random.default_rng(1)
        online = OnlineCalibrator(Partition.fixed_width(1), running=running)
        seen = []
        for _ in range(300):
            online.partial_fit([0.5], [int(rng.uniform() < 0.3)])
            seen.append(online.predict_interval([0.5])[0])
        return np.array(seen)

    running = widths(True)
    assert (np.diff(running[:, 0]) >= 0).all()
    assert (np.diff(running[:, 1]) <= 0).all()
    assert (np.diff(widths(False)[:, 0]) < 0).any()


def test_running_intervals_that_contradict_each_other_say_that_a_rate_has_changed() -> None:
    online = OnlineCalibrator(Partition.fixed_width(1), running=True)
    online.partial_fit(np.full(3000, 0.5), np.zeros(3000, dtype=int))
    assert not online.guarantee_.remarks
    online.partial_fit(np.full(30_000, 0.5), np.ones(30_000, dtype=int))
    assert "a rate has changed" in online.guarantee_.remarks[0]
    assert (online.guarantee_.lower <= online.guarantee_.upper).all()


def test_start_up_window_cuts_the_bins_and_is_discarded() -> None:
    rng = np.random.default_rng(2)
    scores, labels = draw(rng, 1000)
    online = OnlineCalibrator(n_bins=4, warmup=400)
    online.partial_fit(scores[:300], labels[:300])
    assert online.phase_ == "warming up"
    np.testing.assert_array_equal(online.predict_interval([0.2]), [[0.0, 1.0]])
    assert "warming up: 300 of 400 rows" in online.guarantee_.remarks[0]
    online.partial_fit(scores[300:], labels[300:])
    assert online.phase_ == "counting"
    assert online.tally_.n_rows == 600
    ranks = [-(-b * 401 // 4) - 1 for b in (1, 2, 3)]
    np.testing.assert_array_equal(online.partition_.edges, np.sort(scores[:400])[ranks])
    counted = Tally.from_data(online.partition_, scores[400:], labels[400:])
    assert online.tally_ == counted


def test_stopping_rule_and_next_region() -> None:
    rng = np.random.default_rng(3)
    online = OnlineCalibrator(BINS).partial_fit(*draw(rng, 200))
    assert not online.enough(0.05)
    assert online.enough(0.5)
    assert online.next_region() == int(online.guarantee_.radius.argmax())
    fresh = OnlineCalibrator(Partition.fixed_width(4)).partial_fit([0.1], [1])
    assert fresh.next_region() in (0, 1, 2, 3)
    assert "at every moment of the stream" in str(online.guarantee_)


@pytest.mark.parametrize("sequence", [name for name, kind in SEQUENCES.items() if not kind.order_free])
def test_merging_what_depends_on_order_is_refused_with_the_reason(sequence: str) -> None:
    first, second = (stream([(0.1, 1)], sequence=sequence) for _ in range(2))
    with pytest.raises(TypeError, match=SEQUENCES[sequence].why_not_mergeable):
        first.merge(second)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (OnlineCalibrator(Partition.from_edges([0.5])).partial_fit([0.1], [1]), "same partition"),
        (OnlineCalibrator(BINS, confidence_level=0.8).partial_fit([0.1], [1]), "same confidence_level"),
        (OnlineCalibrator(BINS, running=True).partial_fit([0.1], [1]), "running=True"),
        (OnlineCalibrator(n_bins=2, warmup=10).partial_fit([0.1], [1]), "start-up window"),
        ("a stream", "must be an OnlineCalibrator"),
    ],
)
def test_streams_that_do_not_fit_are_not_merged(other, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        stream([(0.1, 1)]).merge(other)


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        ([0.1], [2], "y must hold only the labels"),
        ([np.nan], [1], "scores must be finite"),
        ([0.1, 0.2], [1], "same number of rows"),
    ],
)
def test_a_refused_batch_leaves_the_stream_as_it_was(scores, labels, message: str) -> None:
    online = stream([(0.1, 1), (0.9, 0)])
    before = as_json(online)
    with pytest.raises(ValueError, match=message):
        online.partial_fit(scores, labels)
    assert as_json(online) == before


def test_the_promise_can_not_be_changed_in_mid_stream() -> None:
    online = stream([(0.1, 1)])
    with pytest.raises(ValueError, match="must stay as in the first batch"):
        online.set_params(confidence_level=0.99).partial_fit([0.1], [1])
    assert online.fit([0.1], [1]).guarantee_.confidence_level == 0.99


@pytest.fixture
def remembered_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits depend on the counts of a region alone, and many streams meet the same counts: compute them once."""
    known: dict[tuple[int, int, float], tuple[float, float]] = {}

    def limits(sequence: BetaBinomial) -> Interval:
        keys = [(n, k, sequence.log_share) for n, k in zip(sequence.counts, sequence.positives, strict=True)]
        if any(key not in known for key in keys):
            found = limits_of(sequence.counts, sequence.positives, sequence.log_share)
            known.update(zip(keys, zip(found.lower, found.upper, strict=True), strict=True))
        return Interval(*np.array([known[key] for key in keys]).T)

    monkeypatch.setattr(BetaBinomial, "limits", limits)


@pytest.mark.slow
@pytest.mark.usefixtures("remembered_limits")
def test_coverage_holds_when_the_widest_region_is_labelled_next() -> None:
    # the rule looks at every interval after every label, steers by it, and stops when all are narrow enough
    rng = np.random.default_rng(4)
    rates = np.array([0.05, 0.5, 0.9])
    scores = np.array([0.1, 0.4, 0.8])
    misses, runs = 0, 100  # limits for one look, used after every label, miss in 29%: caught with probability 0.97
    for _ in range(runs):
        online = OnlineCalibrator(BINS, running=False).partial_fit(scores, rng.uniform(size=3) < rates)
        missed = False
        for _ in range(200):
            region = online.next_region()
            online.partial_fit([scores[region]], [int(rng.uniform() < rates[region])])
            guarantee = online.guarantee_
            missed |= bool(((guarantee.lower > rates) | (guarantee.upper < rates)).any())
            if online.enough(0.12):
                break
        misses += missed
    assert stats.binomtest(misses, runs, 0.1, alternative="greater").pvalue > 1e-3


def test_a_stream_is_not_merged_with_itself() -> None:
    online = stream([(0.1, 1)])
    with pytest.raises(ValueError, match="another stream"):
        online.merge(online)
