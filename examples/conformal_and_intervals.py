"""A conformal set, and an interval intersected with {0, 1}: two kinds of sets that are easily
confused.

Theorem 2 of the paper (thm:PS-CI-equivalence): take a distribution-free confidence interval for a
score without atoms. Its intersection with {0, 1} is a prediction set. So such an interval must
contain 0 or 1 almost everywhere, and says little. This does not apply to bins: a binned score has
atoms, its intervals are short, and almost none of them contains 0 or 1. Intersected with {0, 1}
they give empty sets, which cover almost nothing. For bins use `predict_set`, which bounds in every
bin how often the label is outside the set.

    python examples/conformal_and_intervals.py
"""

import numpy as np

from calibrant import BinningCalibrator
from calibrant.intervals import Interval
from calibrant.tripod import ConformalSets, interval_to_set

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

    print(f"Required: {COVERAGE:.0%} coverage, 5,000 calibration rows\n")
    print(
        f"{'':34}{'covered':>6} {'label 0':>7} {'label 1':>7}   {'empty':>5}   {'one':>5}  "
        f" {'both':>5}"
    )
    describe("conformal, marginal", marginal.predict_set(new_scores, coverage=COVERAGE), new_y)
    describe(
        "conformal, within each label", by_label.predict_set(new_scores, coverage=COVERAGE), new_y
    )
    describe("bins: interval and {0, 1}", interval_to_set(Interval(lower, upper)), new_y)
    describe("bins: predict_set", bins.predict_set(new_scores, coverage=COVERAGE), new_y)
    print(
        "\nThe conformal sets cover the label on average over all scores. The guarantee of the bins"
        " is stronger: with\n90% confidence, in every bin the label is outside the set at most 10%"
        " of the time. An interval intersected\nwith {0, 1} is not a prediction set here: the"
        " theorem needs a score without atoms."
    )


if __name__ == "__main__":
    main()
