"""A conformal set beside an interval cut down to {0, 1}: two kinds of sets that are easily taken for each other.

Theorem 2 of the paper (thm:PS-CI-equivalence) says that a distribution-free confidence interval with respect to a
score without atoms, cut down to {0, 1}, is a prediction set. Read the other way round, such an interval has to reach
0 or 1 nearly everywhere, and so says little. Bins escape: their score has atoms, their intervals are short, and hardly
one of them touches 0 or 1. So cutting *those* down to {0, 1} gives empty sets, which cover next to nothing. What bins
give instead is `predict_set`: in every bin, a bound on how often the label falls outside.

    python examples/conformal_and_intervals.py
"""

import numpy as np

from calibrant import BinningCalibrator, ConformalSets
from calibrant.intervals import Interval
from calibrant.tripod import interval_to_set

COVERAGE = 0.9


def draw(rng, n):
    scores = rng.beta(0.5, 0.5, size=n)
    return scores, (rng.uniform(size=n) < scores).astype(int)


def describe(name, sets, y):
    covered = sets[np.arange(y.size), y]
    per_label = [covered[y == label].mean() for label in (0, 1)]
    sizes = [(sets.sum(axis=1) == size).mean() for size in (0, 1, 2)]
    shares = "  ".join(f"{share:6.1%}" for share in (covered.mean(), *per_label, *sizes))
    print(f"{name:34}{shares}")


def main():
    rng = np.random.default_rng(0)
    scores, y = draw(rng, 5_000)
    new_scores, new_y = draw(rng, 100_000)
    bins = BinningCalibrator(n_bins=10).fit(scores, y)
    marginal = ConformalSets().fit(scores, y)
    by_label = ConformalSets(conditional="label").fit(scores, y)
    lower, upper = bins.predict_interval(new_scores).T

    print(f"Asked for: {COVERAGE:.0%} coverage, 5,000 calibration rows\n")
    print(f"{'':34}{'covered':>6} {'label 0':>7} {'label 1':>7}   {'empty':>5}   {'one':>5}   {'both':>5}")
    describe("conformal, marginal", marginal.predict_set(new_scores, coverage=COVERAGE), new_y)
    describe("conformal, within each label", by_label.predict_set(new_scores, coverage=COVERAGE), new_y)
    describe("bins: interval and {0, 1}", interval_to_set(Interval(lower, upper)), new_y)
    describe("bins: predict_set", bins.predict_set(new_scores, coverage=COVERAGE), new_y)
    print(
        "\nThe conformal sets cover on average over all scores. The sets of the bins hold more: with 90% confidence,\n"
        "in every bin the label falls outside the set at most 10% of the time. The interval cut down to {0, 1} is no\n"
        "prediction set for a binned score, as the theorem's condition, no atoms, says."
    )


if __name__ == "__main__":
    main()
