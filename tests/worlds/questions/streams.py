"""Streams of labels, and limits that are valid at every moment."""

from typing import Any

import numpy as np
import pyarrow as pa

from calibrant import OnlineCalibrator, Partition, scored, sequences
from calibrant.limits.sequences.betting import Gamblers
from calibrant.limits.sequences.centred import CentredBetaBinomial, log_evidence
from worlds.questions.base import (
    GRID,
    QUESTIONS,
    SMOOTH,
    TIED,
    World,
    of_calibrator,
    question,
    refused,
)

LABELS = SMOOTH.y[:160].astype(np.uint8)
RARE = (SMOOTH.new[:300] < 0.03).astype(np.uint8)

for _sequence in sequences.SEQUENCES:

    def of_sequence(sequence: str = _sequence) -> Any:
        stream = OnlineCalibrator(Partition.fixed_width(4), sequence=sequence)
        seen = []
        for part in np.array_split(np.arange(600), 4):
            stream.partial_fit(SMOOTH.scores[part], SMOOTH.y[part], classes=(0, 1))
            seen += of_calibrator(stream)
        return seen

    def of_path(sequence: str = _sequence) -> Any:
        kind = sequences.get_sequence(sequence)
        return [
            kind.path(labels, alpha) for labels in (LABELS, RARE, 1 - RARE) for alpha in (0.05, 0.4)
        ]

    def of_regions(sequence: str = _sequence) -> Any:
        limits = sequences.get_sequence(sequence)(3, 0.1)
        found = []
        for part in np.array_split(np.arange(160), 5):
            limits.update((SMOOTH.new[part] * 3).astype(int), LABELS[part])
            found.append(limits.limits())
        return found

    QUESTIONS[f"stream {_sequence}"] = of_sequence
    QUESTIONS[f"path {_sequence}"] = of_path
    QUESTIONS[f"sequence {_sequence}"] = of_regions


@question
def streams_that_cut_their_own_bins() -> Any:
    found = []
    for given in (
        {},
        {"warmup": 40, "n_bins": 3},
        {"n_bins": 5, "warmup": 100, "sequence": "paper"},
    ):
        stream = OnlineCalibrator(**given)
        for part in np.array_split(np.arange(1500), 7):
            stream.partial_fit(SMOOTH.scores[part], SMOOTH.y[part], classes=(0, 1))
            found += [stream.phase_, stream.tally_.counts, stream.tally_.uncounted]
            if stream.phase_ != "warmup":
                found += [of_calibrator(stream), stream.enough(0.2), stream.next_region()]
    return found


@question
def streams_that_merge() -> Any:
    parts = np.array_split(np.arange(900), 3)
    streams = []
    for part in parts:
        stream = OnlineCalibrator(Partition.fixed_width(3))
        streams.append(stream.fit(SMOOTH.scores[part], SMOOTH.y[part]))
    whole = streams[0].merge(streams[1]).merge(streams[2])
    again = whole.merge(streams[1])
    streams[1].partial_fit(SMOOTH.scores[:50], SMOOTH.y[:50])
    later = again.merge(streams[1])
    found = [of_calibrator(stream) for stream in (whole, again, later)]
    return [found, later.tally_, later.guarantee_]


@question
def streams_of_groups_and_segments() -> Any:
    stream = OnlineCalibrator(Partition.fixed_width(3)).fit(
        SMOOTH.scores, SMOOTH.y, groups=SMOOTH.groups
    )
    bins = Partition.by_segment(
        {"north": Partition.fixed_width(2), "south": Partition.fixed_width(3)}
    )
    parts = OnlineCalibrator(bins).fit(SMOOTH.scores, SMOOTH.y, segments=SMOOTH.segments)
    named = np.repeat(["north", "south"], 5)
    return [stream.tally_.n_rows, of_calibrator(parts, segments=named), parts.guarantee_]


@question
def streams_of_tables() -> Any:
    found = []
    for sequence in sequences.SEQUENCES:
        stream = OnlineCalibrator(Partition.fixed_width(3), sequence=sequence)
        for part in np.array_split(np.arange(600), 3):
            data = pa.table({"s": SMOOTH.scores[part], "y": SMOOTH.y[part]})
            stream.partial_fit(scored(data, score="s", label="y"))
            found.append(of_calibrator(stream))
    return found


@question
def streams_of_ties() -> Any:
    bins = Partition.uniform_mass(TIED.scores[:200], 4)
    stream = OnlineCalibrator(bins).fit(TIED.scores[200:], TIED.y[200:])
    beyond = OnlineCalibrator(Partition.fixed_width(2, (0.0, 0.5)))
    return [
        of_calibrator(stream),
        stream.tally_,
        refused(lambda: beyond.fit(SMOOTH.scores, SMOOTH.y)),
    ]


@question
def refusals_of_streams() -> Any:
    bins = Partition.fixed_width(2)
    stream = OnlineCalibrator(bins).fit(SMOOTH.scores, SMOOTH.y)
    ordered = OnlineCalibrator(bins, sequence="paper").fit(SMOOTH.scores[:50], SMOOTH.y[:50])
    changed = OnlineCalibrator(bins).fit(SMOOTH.scores, SMOOTH.y).set_params(confidence_level=0.5)
    unsure = OnlineCalibrator(warmup=2000).fit(SMOOTH.scores, SMOOTH.y)
    return [
        refused(lambda: stream.merge(ordered)),
        refused(lambda: stream.merge(stream)),
        refused(
            lambda: stream.merge(
                OnlineCalibrator(Partition.fixed_width(3)).fit(SMOOTH.scores, SMOOTH.y)
            )
        ),
        refused(lambda: stream.merge(5)),
        refused(lambda: stream.merge(unsure)),
        refused(lambda: unsure.merge(stream)),
        refused(lambda: ordered.merge(ordered)),
        refused(lambda: changed.partial_fit(SMOOTH.scores, SMOOTH.y)),
        refused(lambda: changed.guarantee_),
        refused(lambda: unsure.next_region()),
        refused(lambda: unsure.predict([0.5])),
        refused(lambda: OnlineCalibrator(n_bins=30, warmup=5).fit(SMOOTH.scores, SMOOTH.y)),
        refused(lambda: OnlineCalibrator(n_bins=2, warmup=1).fit(SMOOTH.scores, SMOOTH.y)),
        refused(lambda: OnlineCalibrator(n_bins=2, warmup=2).fit(SMOOTH.scores, SMOOTH.y)),
        refused(lambda: OnlineCalibrator(bins, sequence="none").fit(SMOOTH.scores, SMOOTH.y)),
        refused(lambda: OnlineCalibrator(bins).fit([0.5], [1])),
        refused(lambda: OnlineCalibrator(bins).fit([0.5], [1], classes=(0, 1))),
        refused(lambda: OnlineCalibrator(bins).fit([0.5], [2], classes=(0, 1))),
        refused(lambda: stream.enough(0.0)),
        refused(lambda: stream.enough(-0.1)),
    ]


@question
def gamblers() -> Any:
    found = []
    for size in (1000, 50):
        gambler = Gamblers.fresh(np.sin(np.linspace(0.0, np.pi / 2, size + 1)) ** 2, 0.5)
        for labels in (LABELS[:7], LABELS[7:90], np.array([0.25, 0.5, 1.0]), RARE):
            gambler.take(labels, 3.0)
            found.append(gambler.limits())
        found.append(gambler.to_dict())
    return found


@question
def evidence_at_many_rates() -> Any:
    n = np.array([1, 5, 50, 1000, 10**6])
    found = []
    for share in (0.0, 0.02, 0.5, 1.0):
        k = np.round(n * share).astype(int)
        for level in (0.1, 3.0, 20.0):
            found += [CentredBetaBinomial.limits_of(n, k, level)]
    rates = np.array([0.01, 0.2, 0.7])
    for k in (0.0, 10.0, 50.0):
        found += [log_evidence(np.full(3, k), np.full(3, 50.0), rates, 1.0 - rates)]
    return found


@question
def a_stream_read_in_parts_is_the_stream() -> Any:
    found = []
    for sequence in sequences.SEQUENCES:
        stream = OnlineCalibrator(Partition.fixed_width(2), sequence=sequence)
        stream.fit(SMOOTH.scores[:100], SMOOTH.y[:100])
        again = OnlineCalibrator.from_dict(stream.to_dict())
        for one in (stream, again):
            one.partial_fit(SMOOTH.scores[100:300], SMOOTH.y[100:300])
            found.append(of_calibrator(one, GRID))
    return found


@question
def rows_before_bins_are_cut() -> Any:
    world = World("tied", 400, seed=7)
    found = []
    for warmup in (20, 80):
        stream = OnlineCalibrator(n_bins=4, warmup=warmup)
        for part in np.array_split(np.arange(400), 10):
            stream.partial_fit(world.scores[part], world.y[part], classes=(0, 1))
        found += [of_calibrator(stream), stream.tally_, stream.to_dict()]
    return found


@question
def streams_whose_limits_never_widen() -> Any:
    found = []
    for sequence in sequences.SEQUENCES:
        stream = OnlineCalibrator(Partition.fixed_width(2), sequence=sequence, running=True)
        labels = np.concatenate([np.ones(60, dtype=int), np.zeros(240, dtype=int)])
        for part in np.array_split(np.arange(300), 5):
            stream.partial_fit(SMOOTH.scores[part], labels[part], classes=(0, 1))
            found.append(of_calibrator(stream))
        again = OnlineCalibrator.from_dict(stream.to_dict())
        found += [of_calibrator(again), again.guarantee_, refused(stream.merge, again)]
    return found


@question
def continuations_of_a_stream() -> Any:
    bins = Partition.fixed_width(2)
    first = OnlineCalibrator(bins).fit(SMOOTH.scores[:50], SMOOTH.y[:50])
    one = OnlineCalibrator.from_dict(first.to_dict())
    other = OnlineCalibrator.from_dict(first.to_dict())
    one.partial_fit([0.1, 0.2], [1, 1])
    other.partial_fit([0.1, 0.2, 0.7], [0, 0, 0])
    third = OnlineCalibrator(bins).fit(SMOOTH.scores[:9], SMOOTH.y[:9])
    both = third.merge(one)
    return [
        of_calibrator(both),
        refused(both.merge, other),
        refused(first.merge, one),
    ]
