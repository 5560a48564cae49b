"""Processor time of `rate` for many items: python benchmarks/rate.py."""

import time

import numpy as np

from calibrant import rate


def main() -> None:
    """Seconds for many items, by the clock of the process."""
    rng = np.random.default_rng(0)
    for n_items, n_labels, method in (
        (10**6, 1_000, "bets"),
        (10**5, 500, "exact"),
        (10**6, 1_000, "exact"),
    ):
        scores = rng.random(n_items)
        y = np.full(n_items, np.nan)
        drawn = rng.choice(n_items, n_labels, replace=False)
        y[drawn] = rng.random(n_labels) < scores[drawn]
        started = time.process_time()
        rate(y, scores, method=method)
        print(
            f"{method}: {n_items:,} items, {n_labels:,} labels:"
            f" {time.process_time() - started:.2f} s"
        )


if __name__ == "__main__":
    main()
