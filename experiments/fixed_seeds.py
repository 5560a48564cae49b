"""Whether claims hold although the seed is fixed, is the seed of the data, or rows are sorted.

What is drawn at random, such as rows that are kept by their weight or set aside, must be
independent of the rows. A draw that depends on the seed alone is not: all data sets of one size
share it, data may come from the same generator, and a file that is sorted by label hands its labels
to fixed positions. Each attack below draws data with a known truth again and again, at default
settings, at 15 points that were fixed beforehand, and counts how often a claim is false.

    python experiments/fixed_seeds.py                                  # about half an hour
    python experiments/fixed_seeds.py --draws 40 --attack recall       # a minute
"""

import argparse
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import binomtest
from sklearn.base import BaseEstimator, ClassifierMixin

from calibrant import (
    BinningCalibrator,
    CalibratedClassifier,
    Calibrator,
    Partition,
    compare_models,
    threshold,
)
from calibrant.intervals import MonotoneBand
from calibrant.metrics import brier_score

SIZES = (200, 500, 1_000)
SHARES = (0.2, 0.25, 0.35, 0.5, 0.8)
ALPHAS = (0.1, 0.5)
GRID = np.linspace(0.005, 0.995, 100)

Data = tuple[np.ndarray, np.ndarray]
Missed = Callable[[Data, int, float, float], bool]


def drawn(
    rng: np.random.Generator, n: int, rate: Callable[[np.ndarray], np.ndarray], labels_first: bool
) -> Data:
    """Uniform scores, and labels.

    The first numbers of the generator are for the scores or for the labels.
    """
    first = rng.random(n)
    second = rng.random(n)
    scores, numbers = (second, first) if labels_first else (first, second)
    return scores, (numbers < rate(scores)).astype(int)


def increasing(scores: np.ndarray) -> np.ndarray:
    return scores


def constant(scores: np.ndarray) -> np.ndarray:
    return np.full(scores.shape, 0.3)


def odds_moved(rate: float, share: float) -> float:
    """The rate where negative rows weigh `share`."""
    return rate / (rate + share * (1.0 - rate))


def recall(data: Data, seed: int, alpha: float, share: float) -> bool:
    """Low scores weigh less; rate = score."""
    scores, y = data
    weights = np.where(scores < 0.5, share, 1.0)
    found = threshold(
        y,
        scores,
        recall=0.83,
        confidence_level=1 - alpha,
        importance_weight=weights,
        weight_bound=1.0,
        random_state=seed,
    )
    if found.threshold is None:
        return False
    cut = np.clip(found.threshold, 0.0, 1.0)
    below = share * min(cut, 0.5) ** 2 / 2 + max(cut**2 - 0.25, 0.0) / 2
    return 1.0 - below / (share / 8 + 3 / 8) < 0.83


def precision(data: Data, seed: int, alpha: float, share: float) -> bool:
    """Negatives weigh less, and the score says nothing: no threshold has the precision."""
    scores, y = data
    weights = np.where(y == 1, 1.0, share)
    target = odds_moved(0.3, share) + 1e-9
    found = threshold(
        y,
        scores,
        precision=target,
        start=0.0,
        confidence_level=1 - alpha,
        importance_weight=weights,
        weight_bound=1.0,
        random_state=seed,
    )
    return found.threshold is not None


def _outside(band: MonotoneBand, rate: float) -> bool:
    limits = band.predict_interval(GRID)
    return band.is_refuted_ or bool(((limits[:, 0] > rate) | (limits[:, 1] < rate)).any())


def band(data: Data, seed: int, alpha: float, share: float) -> bool:
    scores, y = data
    weights = np.where(y == 1, 1.0, share)
    found = MonotoneBand(confidence_level=1 - alpha, random_state=seed)
    return _outside(
        found.fit(scores, y, importance_weight=weights, weight_bound=1.0), odds_moved(0.3, share)
    )


def band_of_groups(data: Data, seed: int, alpha: float, share: float) -> bool:
    """Groups of two rows, whose weights are those of their labels."""
    scores, y = data
    weights = np.where(y == 1, 1.0, share)
    found = MonotoneBand(confidence_level=1 - alpha, random_state=seed)
    found.fit(scores, y, importance_weight=weights, weight_bound=1.0, groups=np.arange(len(y)) // 2)
    return _outside(found, odds_moved(0.3, share))


def curve(data: Data, seed: int, alpha: float, share: float) -> bool:
    """The average of a weighted curve in one region; rate = score, and all rows weigh the same."""
    scores, y = data
    found = Calibrator(n_bins=1, confidence_level=1 - alpha, random_state=seed)
    found.fit(scores, y, importance_weight=np.full(len(y), share), weight_bound=1.0)
    return abs(found.predict(GRID).mean() - 0.5) > found.guarantee_.epsilon


def weighted_bins(data: Data, seed: int, alpha: float, share: float) -> bool:
    scores, y = data
    weights = np.where(y == 1, 1.0, share)
    found = BinningCalibrator(
        partition=Partition.fixed_width(1), confidence_level=1 - alpha, random_state=seed
    )
    guarantee = found.fit(scores, y, importance_weight=weights, weight_bound=1.0).guarantee_
    rate = odds_moved(0.3, share)
    return bool(((guarantee.lower > rate) | (guarantee.upper < rate)).any())


def tied_bins(data: Data, seed: int, alpha: float, share: float) -> bool:
    """Scores of few values, so that rows are set aside to cut the bins."""
    scores, y = data
    values = np.ceil(scores * 20) / 20
    found = BinningCalibrator(n_bins=3, confidence_level=1 - alpha, random_state=seed).fit(
        values, y
    )
    guarantee = found.guarantee_
    return bool(((guarantee.lower > 0.3) | (guarantee.upper < 0.3)).any())


def named_groups(data: Data, seed: int, alpha: float, share: float) -> bool:
    """Groups whose names are the ranks of their rates."""
    scores, y = data
    owner = np.arange(len(y)) // 4
    name = np.argsort(np.argsort(np.bincount(owner, y) + np.bincount(owner, scores) / 100))
    found = BinningCalibrator(
        partition=Partition.fixed_width(1), confidence_level=1 - alpha, random_state=seed
    )
    guarantee = found.fit(scores, y, groups=name[owner], max_group_size=4).guarantee_
    return bool(((guarantee.lower > 0.3) | (guarantee.upper < 0.3)).any())


class FirstColumn(ClassifierMixin, BaseEstimator):
    """A model whose score is the first feature."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "FirstColumn":
        """Learn nothing but the classes."""
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the first feature as the probability of the second class."""
        return np.column_stack([1.0 - X[:, 0], X[:, 0]])


def hold_out(data: Data, seed: int, alpha: float, share: float) -> bool:
    """The score says nothing, and there is one bin.

    `share` of the rows is held out, which are twice as many here.
    """
    scores, y = data
    bins = BinningCalibrator(n_bins=1, confidence_level=1 - alpha)
    model = CalibratedClassifier(FirstColumn(), bins, calibration_size=share, random_state=seed)
    guarantee = model.fit(scores[:, None], y).guarantee_
    return bool(((guarantee.lower > 0.3) | (guarantee.upper < 0.3)).any())


def losses(data: Data, seed: int, alpha: float, share: float) -> bool:
    """The expected Brier score of the weighted population, rate = score; all rows weigh the same."""
    scores, y = data
    found = brier_score(
        y,
        scores,
        confidence_level=1 - alpha,
        importance_weight=np.full(len(y), share),
        weight_bound=1.0,
    )
    return not found.lower <= 1 / 6 <= found.upper


def models(data: Data, seed: int, alpha: float, share: float) -> bool:
    """Two models with the same expected Brier score: the score, and one that is off by a sign of
    its own.
    """
    scores, y = data
    middle = 0.5 + (scores - 0.5) * share
    found = compare_models(
        y, {"score": scores, "middle": middle}, confidence_level=1 - alpha, random_state=seed
    )
    truth = -((1.0 - share) ** 2) / 12
    difference = found.differences[0]
    return not difference.lower <= truth <= difference.upper


ATTACKS: dict[str, tuple[Missed, Callable[[np.ndarray], np.ndarray]]] = {
    "recall": (recall, increasing),
    "precision": (precision, constant),
    "band": (band, constant),
    "band of groups": (band_of_groups, constant),
    "curve": (curve, increasing),
    "weighted bins": (weighted_bins, constant),
    "tied bins": (tied_bins, constant),
    "named groups": (named_groups, constant),
    "hold-out": (hold_out, constant),
    "losses": (losses, increasing),
    "models": (models, increasing),
}


def as_drawn(data: Data) -> Data:
    return data


def by_label(data: Data) -> Data:
    order = np.argsort(data[1], kind="stable")
    return data[0][order], data[1][order]


def by_score(data: Data) -> Data:
    order = np.argsort(data[0])
    return data[0][order], data[1][order]


WAYS: dict[str, tuple[bool, bool, Callable[[Data], Data]]] = {
    "one seed, other data": (False, False, as_drawn),
    "the seed of the scores": (True, False, as_drawn),
    "the seed of the labels": (True, True, as_drawn),
    "sorted by label": (False, False, by_label),
    "sorted by score": (False, False, by_score),
}
"""Whether a fit gets the seed of the data, what is drawn first, and how rows are arranged."""


def data_sets(
    n: int, draws: int, rate: Callable[[np.ndarray], np.ndarray], way: str
) -> Iterator[tuple[Data, int]]:
    """Data, and the seed that a fit is given."""
    same_seed, labels_first, arranged = WAYS[way]
    for number in range(draws):
        rng = np.random.default_rng(number if same_seed else [2024, number])
        yield arranged(drawn(rng, n, rate, labels_first)), number if same_seed else 0


def missed(attack: str, way: str, n: int, share: float, alpha: float, draws: int) -> int:
    """How often the claim was false."""
    is_missed, rate = ATTACKS[attack]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = 2 * n if attack == "hold-out" else n
        return sum(
            is_missed(data, seed, alpha, share) for data, seed in data_sets(rows, draws, rate, way)
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--attack", choices=list(ATTACKS), action="append")
    parser.add_argument("--way", choices=list(WAYS), action="append")
    arguments = parser.parse_args()
    console = Console(width=120)
    table = Table(
        title=f"How often claims were false in {arguments.draws} draws, at 15 points (rows, share)"
    )
    for heading in (
        "attack",
        "how",
        "alpha",
        "worst",
        "at",
        "smallest p-value",
        "points with p < .05",
        "mean",
    ):
        table.add_column(heading)
    for attack in arguments.attack or ATTACKS:
        for way in arguments.way or WAYS:
            for alpha in ALPHAS:
                points = [(n, share) for n in SIZES for share in SHARES]
                shares = []
                p_values = []
                for n, share in points:
                    count = missed(attack, way, n, share, alpha, arguments.draws)
                    shares.append(count / arguments.draws)
                    p_values.append(
                        binomtest(count, arguments.draws, alpha, alternative="greater").pvalue
                    )
                worst = int(np.argmax(shares))
                few = sum(p < 0.05 for p in p_values)
                cells = (
                    attack,
                    way,
                    f"{alpha:g}",
                    f"{shares[worst]:.3f}",
                    f"{points[worst]}",
                    f"{min(p_values):.2g}",
                    f"{few} of 15",
                    f"{np.mean(shares):.3f}",
                )
                table.add_row(*cells)
                print(*cells, sep=" | ", flush=True)
    console.print(table)


if __name__ == "__main__":
    main()
