"""Sixty rows, good and spoilt, for tests of bad and of odd input."""

from collections.abc import Callable

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from calibrant import BinningCalibrator, CalibratedClassifier, Partition, Tally
from calibrant.errors import CalibrantError

N = 60
S = np.linspace(0.005, 0.995, N)
Y = np.arange(N) % 3 // 2
P = np.column_stack([1 - S, S])
X = np.column_stack([S, S**2, np.ones(N)])
NAMES = np.where(Y == 1, "yes", "no")
GROUPS = np.where(np.arange(N) % 2 == 0, "a", "b")
OWN = {"pilot": None, "value": "mean"}
"""Regions and values that are known without a draw."""
MODEL = BinningCalibrator(n_bins=4, **OWN).fit(S, Y)
UNIFORM = BinningCalibrator(n_bins=4, partition="uniform").fit(S, Y)
GROUPED = BinningCalibrator(n_bins=4, **OWN).fit(S, Y, segments=GROUPS)
HALVES = Partition.fixed_width(2)
TREES = [DecisionTreeClassifier(max_leaf_nodes=2).fit(X[:, :1], cut < S) for cut in (0.3, 0.6)]
COUNTS = Tally.from_counts([10, 10], [1, 9], partition=HALVES)


def fit(scores=S, y=Y, segments=None, sample_weight=None, **parameters):
    stated = {
        name: parameters.pop(name) for name in ("classes", "score_range") if name in parameters
    }
    beside = {"segments": segments, "sample_weight": sample_weight, **stated}
    return BinningCalibrator(**{**OWN, **parameters}).fit(scores, y, **beside)


def classify(X=X, y=Y, estimator=None, calibrator=None, **parameters):
    inner = LogisticRegression() if estimator is None else estimator
    outer = BinningCalibrator(n_bins=2) if calibrator is None else calibrator
    return CalibratedClassifier(inner, outer, **{"random_state": 0, **parameters}).fit(X, y)


def with_entry(array, row, entry, dtype=None):
    changed = np.array(array, dtype=dtype)
    changed[row] = entry
    return changed


def with_array_inside():
    nested = np.empty(N, dtype=object)
    nested[:] = S
    nested[3] = np.array([0.1, 0.2])
    return nested


class Refusals(dict[str, tuple[str, Callable[[], object]]]):
    """By readable name: the word that the error must name, and the call."""

    def __call__(self, word, name, call):
        if name in self:
            raise ValueError(f"{name} stands twice")
        self[name] = (word, call)

    @property
    def kinds(self) -> list[str]:
        return sorted({name.split()[0] for name in self})

    def faults(self, kind: str) -> dict[str, str]:
        """What is wrong with the refusals of one kind, by name."""
        found = {name: fault(*call) for name, call in self.items() if name.split()[0] == kind}
        return {name: text for name, text in found.items() if text is not None}


def fault(word, call):
    """What is wrong with the refusal; None if nothing is.

    Without `assert`, which `python -O` leaves out.
    """
    try:
        call()
    except CalibrantError as error:
        message = str(error)
        if not isinstance(error, ValueError | TypeError):
            return f"a {type(error).__name__} is neither a ValueError nor a TypeError"
        lacking = [part for part in (word, " must ", "got ") if part not in message]
        return f"{lacking} not in: {message}" if lacking else None
    except Exception as error:
        return f"{type(error).__name__}, not ours: {error}"
    return "not refused"
