"""Streams of labels, and what is saved of them."""

import json

import numpy as np
from hypothesis import strategies as st

from calibrant import OnlineCalibrator, Partition

BINS = Partition.from_edges([0.3, 0.6])
row = st.tuples(st.sampled_from([0.1, 0.3, 0.5, 0.6, 0.9]), st.integers(0, 1))
rows = st.lists(row, min_size=1, max_size=30)


def stream(data, **options) -> OnlineCalibrator:
    scores, labels = zip(*data, strict=True)
    return OnlineCalibrator(BINS, **options).partial_fit(scores, labels)


def as_json(calibrator: OnlineCalibrator) -> str:
    return json.dumps(calibrator.to_dict())


def content(calibrator: OnlineCalibrator) -> str:
    """The saved stream without the identities, which differ between streams with the same rows."""
    state = calibrator.to_dict()
    del state["state"]["identity"], state["state"]["merged"]
    return json.dumps(state)


def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    scores = rng.uniform(size=n)
    return scores, (rng.uniform(size=n) < scores).astype(int)
