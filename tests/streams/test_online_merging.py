"""Streams that are merged: no label counts twice, and what cannot be merged is refused."""

import copy
import json
import pickle

import numpy as np
import pytest
from hypothesis import given

from calibrant import OnlineCalibrator, Partition, ScoreCalibrator, Tally
from calibrant.errors import CalibrantError
from calibrant.sequences import Paper
from worlds.label_streams import BINS, as_json, content, draw, rows, stream


@pytest.mark.broad
@given(rows, rows)
def test_merging_two_streams_equals_one_stream(first, second) -> None:
    merged = stream(first).merge(stream(second))
    assert content(merged) == content(stream(first + second))
    assert merged.guarantee_.interval == stream(first + second).guarantee_.interval


def test_merging_what_depends_on_order_is_refused_with_the_reason() -> None:
    first, second = (stream([(0.1, 1)], sequence="paper") for _ in range(2))
    with pytest.raises(TypeError, match=Paper.why_not_mergeable):
        first.merge(second)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (OnlineCalibrator(Partition.from_edges([0.5])).partial_fit([0.1], [1]), "same partition"),
        (
            OnlineCalibrator(BINS, confidence_level=0.8).partial_fit([0.1], [1]),
            "same confidence_level",
        ),
        (OnlineCalibrator(BINS, running=True).partial_fit([0.1], [1]), "running=True"),
        (OnlineCalibrator(n_bins=2, warmup=10).partial_fit([0.1], [1]), "start-up window"),
        ("a stream", "must be an OnlineCalibrator"),
    ],
)
def test_streams_that_do_not_fit_are_not_merged(other, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        stream([(0.1, 1)]).merge(other)


def test_a_stream_merged_with_itself_counts_no_label_twice() -> None:
    online = stream([(0.1, 1), (0.9, 0)])
    before = as_json(online)
    assert as_json(online.merge(online)) == before
    assert as_json(online.merge(copy.deepcopy(online))) == before
    assert as_json(online.merge(pickle.loads(pickle.dumps(online)))) == before


def test_a_growing_stream_that_is_merged_again_replaces_its_earlier_part() -> None:
    rng = np.random.default_rng(5)
    here = stream([(0.1, 1)])
    there = stream([(0.5, 0)])
    elsewhere = stream([(0.9, 1)])
    for _ in range(5):
        there.partial_fit(*draw(rng, 50))
        here.merge(
            ScoreCalibrator.from_dict(json.loads(as_json(there)))
        )  # as a file that comes every day
    assert here.tally_.n_rows == 1 + 251
    # a stream that comes by two ways, or back to its own, is counted once
    elsewhere.merge(there).merge(here)
    assert elsewhere.tally_.n_rows == 1 + 1 + 251
    there.partial_fit(*draw(rng, 50))
    assert there.merge(elsewhere).tally_.n_rows == 1 + 1 + 301
    assert here.merge(there).tally_ == elsewhere.merge(there).tally_ == there.tally_
    restored = ScoreCalibrator.from_dict(json.loads(as_json(here)))
    assert as_json(restored.merge(there)) == as_json(here)


def test_an_earlier_state_takes_over_its_own_later_rows() -> None:
    online = stream([(0.1, 1), (0.9, 0)])
    earlier = copy.deepcopy(online)
    online.partial_fit([0.5, 0.5], [1, 0])
    assert as_json(earlier.merge(online)) == as_json(online)


def test_two_continuations_of_one_stream_are_not_merged() -> None:
    online = stream([(0.1, 1), (0.9, 0)])
    other = copy.deepcopy(online).partial_fit([0.5], [1])
    before = as_json(online.partial_fit([0.5, 0.5], [0, 0]))
    with pytest.raises(ValueError, match="two different continuations"):
        online.merge(other)
    assert as_json(online) == before


@pytest.mark.parametrize(
    "change",
    [
        {"identity": 3},
        {"identity": ""},
        {"identity": "x" * 65},
        {"merged": ["a"]},
        {"merged": {"a": 3}},
        {"merged": {"a": {**Tally.from_counts([9, 0, 0], [9, 0, 0], partition=BINS).to_dict()}}},
        {"merged": {"a": {**Tally.from_counts([0, 0, 0], [0, 0, 0]).to_dict()}}},
        {"merged": {"a": {**Tally.from_counts([0], [0]).to_dict(), "partition": BINS.fingerprint}}},
        {
            "identity": "a",
            "merged": {"a": Tally.from_counts([0, 0, 0], [0, 0, 0], partition=BINS).to_dict()},
        },
    ],
)
def test_forged_identities_raise(change) -> None:
    state = json.loads(as_json(stream([(0.1, 1), (0.9, 0)])))
    with pytest.raises(CalibrantError):
        ScoreCalibrator.from_dict({**state, "state": {**state["state"], **change}})


@pytest.mark.parametrize(
    "name", ["partition", "window", "sequence", "uncounted", "running", "contradicts"]
)
def test_a_state_that_lacks_a_part_is_refused_by_name(name) -> None:
    state = json.loads(as_json(stream([(0.1, 1), (0.9, 0)])))
    del state["state"][name]
    with pytest.raises(CalibrantError, match=name):
        ScoreCalibrator.from_dict(state)


def test_a_merged_stream_says_how_merges_must_be_chosen() -> None:
    alone = stream([(0.1, 1)])
    merged = stream([(0.1, 1)]).merge(stream([(0.1, 0)]))
    assert not any("merged" in text for text in alone.guarantee_.assumptions)
    assert (
        "which streams were merged, and when, was decided without looking at their labels"
        in merged.guarantee_.details
    )
