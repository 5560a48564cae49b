"""The online calibrator: one guarantee for a whole stream, however it is cut, merged, stopped or
steered.
"""

import copy
import itertools
import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import OnlineCalibrator, Partition, ScoreCalibrator, Tally, scored
from calibrant.errors import CalibrantError
from calibrant.sequences import SEQUENCES, CentredBetaBinomial
from worlds.label_streams import BINS, as_json, content, draw, rows, stream


@pytest.mark.broad
@given(rows, st.randoms(), st.lists(st.integers(0, 30), max_size=4))
def test_any_order_and_any_split_give_the_identical_state_byte_for_byte(data, random, cuts) -> None:
    shuffled = data.copy()
    random.shuffle(shuffled)
    pieces = OnlineCalibrator(BINS)
    bounds = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, stop in itertools.pairwise(bounds):
        if stop > start:
            pieces.partial_fit(*zip(*shuffled[start:stop], strict=True))
    assert content(pieces) == content(stream(data))


@given(rows)
def test_one_by_one_equals_a_batch(data) -> None:
    online = OnlineCalibrator(BINS)
    for score, label in data:
        online.partial_fit([score], [label])
    assert content(online) == content(stream(data))
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


@pytest.mark.broad
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
    assert not any("has changed" in note for note in online.guarantee_.notes)
    online.partial_fit(np.full(30_000, 0.5), np.ones(30_000, dtype=int))
    assert "a rate has changed" in online.guarantee_.notes[0]
    assert (online.guarantee_.lower <= online.guarantee_.upper).all()


def test_start_up_window_cuts_the_bins_and_is_discarded() -> None:
    rng = np.random.default_rng(2)
    scores, labels = draw(rng, 1000)
    online = OnlineCalibrator(n_bins=4, warmup=400)
    online.partial_fit(scores[:300], labels[:300])
    assert online.phase_ == "warming up"
    np.testing.assert_array_equal(online.predict_interval([0.2]), [[0.0, 1.0]])
    assert "warming up: 300 of 400 rows" in online.guarantee_.notes[0]
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
    assert "at every moment of the stream" in online.guarantee_.details
    assert "at every moment of the stream" in online.guarantee_.details


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        ([0.1], [2], "y must contain only the labels"),
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


def test_the_guarantee_can_not_be_changed_in_mid_stream() -> None:
    online = stream([(0.1, 1)])
    with pytest.raises(ValueError, match="must stay the same as in the first batch"):
        online.set_params(confidence_level=0.99).partial_fit([0.1], [1])
    assert online.fit([0.1], [1]).guarantee_.confidence_level == 0.99


def test_a_fresh_stream_has_seen_nothing() -> None:
    partition = BINS.to_dict()
    state = (
        OnlineCalibrator(BINS, running=True)
        .partial_fit(np.full(20, 0.1), np.ones(20, dtype=int))
        .to_dict()["state"]
    )
    first = CentredBetaBinomial.limits_of(
        np.array([20, 0, 0]), np.array([20, 0, 0]), float(np.log(3) - np.log(1 - 0.9))
    )
    assert {
        name: state[name] for name in ("partition", "window", "uncounted", "contradicts", "merged")
    } == {
        "partition": partition,
        "window": [],
        "uncounted": 0,
        "contradicts": False,
        "merged": {},
    }
    assert state["sequence"] == {"counts": [20, 0, 0], "positives": [20, 0, 0]}
    assert state["running"] == [first.lower.tolist(), first.upper.tolist()]
    warming = OnlineCalibrator(n_bins=2, warmup=5).partial_fit([0.1, 0.2], [1, 0])
    state = warming.to_dict()["state"]
    assert (state["partition"], state["window"], state["running"]) == (None, [0.1, 0.2], None)
    assert state["sequence"] == {"counts": [0], "positives": [0]}
    assert (state["uncounted"], state["contradicts"]) == (0, False)
    assert warming.guarantee_.n_rows == 0
    assert (warming.guarantee_.lower.tolist(), warming.guarantee_.upper.tolist()) == ([0.0], [1.0])
    assert len({stream([(0.1, 1)]).to_dict()["state"]["identity"] for _ in range(20)}) == 20


def test_fit_forgets_everything() -> None:
    online = stream([(0.1, 1), (0.9, 0)])
    identity = online.to_dict()["state"]["identity"]
    assert content(online.fit([0.5], [1])) == content(stream([(0.5, 1)]))
    assert online.to_dict()["state"]["identity"] != identity
    assert online.merge(stream([(0.1, 1)])).fit([0.5], [0]).tally_.n_rows == 1


def in_threads(work, n_threads: int = 8) -> None:
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(work, range(n_threads)))  # raises what a thread raised


@pytest.mark.broad
def test_a_stream_that_eight_threads_update_keeps_every_row() -> None:
    online = OnlineCalibrator(BINS)
    other = stream([(0.1, 1)])

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(20):
            online.partial_fit(*draw(rng, 25)).merge(other.partial_fit(*draw(rng, 5)))
            assert online.tally_.n_rows >= 25
            other.merge(online)

    in_threads(work)
    assert online.merge(other).tally_ == other.merge(online).tally_
    assert online.tally_.n_rows == 1 + 8 * 20 * 30
    again = pickle.loads(pickle.dumps(online))
    assert as_json(again) == as_json(online)
    assert as_json(copy.deepcopy(online).partial_fit([0.1], [1])) == as_json(
        again.partial_fit([0.1], [1])
    )


def test_batches_of_scored_data_keep_the_classes_they_are_given_or_are_zeros_and_ones() -> None:
    def fitted(labels, classes=None, **options):
        table = pd.DataFrame({"p": [0.2, 0.7], "y": labels})
        online = OnlineCalibrator(Partition.fixed_width(2), **options)
        return online.partial_fit(scored(table, score="p", label="y"), classes=classes)

    zeros = fitted([0, 0])
    assert (zeros.classes_.tolist(), zeros.tally_.positives.tolist()) == ([0, 1], [0, 0])
    ones = fitted([1, 1])
    assert (ones.classes_.tolist(), ones.tally_.positives.tolist()) == ([0, 1], [1, 1])
    assert fitted([0, 0], classes=(0, 2), pos_label=2).classes_.tolist() == [0, 2]
    named = fitted(["no", "yes"], pos_label="yes")
    assert (named.classes_.tolist(), named.tally_.positives.tolist()) == (["no", "yes"], [0, 1])


def test_scored_data_with_weights_are_refused():
    rows = pd.DataFrame({"p": [0.2, 0.7], "y": [0, 1], "w": [1.0, 2.0]})
    for partition in (None, Partition.fixed_width(2)):
        with pytest.raises(
            CalibrantError, match="importance_weight must be None: this method counts every row"
        ):
            OnlineCalibrator(partition).fit(scored(rows, score="p", label="y", weight="w"))
