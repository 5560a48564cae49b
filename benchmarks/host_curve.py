"""What a default curve costs on the host, once its rows are counted: python benchmarks/host_curve.py
[--rows 1000000000].

On a GPU, rows are counted there; everything else depends only on pilot rows and counts. Here pilot
rows are drawn, and counts at knots come from one multinomial draw, so that no row is read. Processor
time, the best of three; the first run, which compiles, is not measured.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from timing import render

from calibrant.calibrators.curve.half_curves import HalfCurves, RowsAtKnots, _plain_rows
from calibrant.calibrators.curve.least_epsilon import SMOOTHNESS
from calibrant.calibrators.curve.pilot_rows import MOST_PILOT, LabelledPilot
from calibrant.calibrators.regions.binned_rows import split_size
from calibrant.cells.knots import Knots
from calibrant.cells.score_partition import ScorePartition
from calibrant.params.random import RandomSource
from calibrant.sample.reader import read_rows

LEVEL = 0.1


def rate(scores: np.ndarray) -> np.ndarray:
    """The rate at each score."""
    return np.clip(scores, 0.0, 1.0) ** 2


def drawn_counts(knots: Knots, n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Counts of rows with uniform scores, by knot, half and label."""
    begin, end = knots.cells.layout.ends
    mass = np.clip(np.minimum(end, 1.0) - np.maximum(begin, 0.0), 0.0, None) / 2.0
    at_knots = np.bincount(knots.first, mass, knots.n_knots)
    at_knots += np.bincount(knots.last, mass, knots.n_knots)
    of_labels = np.stack([1.0 - rate(knots.score), rate(knots.score)], axis=-1)
    shares = np.repeat((at_knots[:, None] * of_labels)[:, None], 2, axis=1)
    return rng.multinomial(n_rows, (shares / shares.sum()).ravel()).reshape(shares.shape)


def seconds(work: Callable[[], object], rounds: int = 3) -> float:
    """The shortest processor time of some runs after a first one."""
    work()
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def main() -> None:
    """Time the parts, and print them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10**9)
    n_rows = parser.parse_args().rows
    rng = np.random.default_rng(0)
    n_regions = max(2, round(n_rows ** (1.0 / 3.0) / 2.0))
    n_pilot = split_size(n_rows, n_regions)
    scores = np.sort(rng.uniform(size=n_pilot).astype(np.float32))  # a GPU sorts them
    y = (rng.uniform(size=n_pilot) < rate(scores)).astype(np.uint8)
    rows = read_rows(scores, y).thinned(MOST_PILOT)
    regions = ScorePartition.from_tied_scores(scores, n_regions, aside=n_pilot).as_bins()
    pilot = LabelledPilot.of(rows, regions)
    firsts = pilot.first_curves()
    knots = pilot.knots(firsts, n_rows - n_pilot)
    counts = drawn_counts(knots, n_rows - n_pilot, rng)
    source = RandomSource.of(0, "knots and halves", rows=1)
    counted = RowsAtKnots(pilot, firsts, _plain_rows(knots, counts, pilot, source, None))

    def after() -> None:
        with np.errstate(all="ignore"):
            halves = HalfCurves.fit(counted, "auto")
            halves.moved(halves.bounds(LEVEL), SMOOTHNESS)

    def cut_and_first() -> None:
        ScorePartition.from_tied_scores(scores, n_regions, aside=n_pilot)
        LabelledPilot.of(rows, regions).first_curves()

    lines = [
        [f"cut regions and fit a first curve to {n_pilot:,} pilot rows", cut_and_first],
        ["count pilot rows", lambda: pilot.count(knots, source)],
        ["after the count", after],
    ]
    header = [f"{n_rows:,} rows, {n_regions} regions", "seconds"]
    print(render(header, [[name, f"{seconds(work):.2f}"] for name, work in lines]))


if __name__ == "__main__":
    main()
