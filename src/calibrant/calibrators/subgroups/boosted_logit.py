"""A small gradient-boosted correction of the logit: trees of five leaves, as plain numbers.

It is written here rather than taken from a library: a model file must hold the trees as readable
numbers, the same rows must give the same trees on every machine, and the answer must not depend on
what is installed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar, Self

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IndexArray
from calibrant.calibrators.subgroups.features import Feature
from calibrant.errors import InvalidValueError
from calibrant.params.declared_state import Saved
from calibrant.params.kind import EntryTable, Known
from calibrant.params.rules import Integer, Number
from calibrant.params.state_kinds import Listed, Lists, Nested
from calibrant.text.sentences import shown

_NUMBERS = (2, 5, 10, 15, 20, 30, 40, 60, 80, 120)  # numbers of trees to try
_PASSES = 2  # passes over all trees that adjust their values once all trees exist
_LEAVES = 5
_RATE = 0.1
_RIDGE = 1.0
_LEAST_ROWS = 20
_LEAST_GAIN = 1e-6
_LEAST_SHIFT = 1.0  # twice the decrease of the loss from a shift of all rows; chance gives 1
_MOST_LOGIT = 700.0


@dataclass(frozen=True, slots=True)
class LeafSplit(Saved):
    """A split of one leaf by the bins of one feature: rows in other bins get a new leaf.

    Attributes
    ----------
    leaf : int
        The leaf that is split; rows in the bins `stay` keep its number, and the others get the next
        free one.
    feature : int
        The feature of the split.
    stay : tuple of int
        Bins of the feature.
    """

    _entries: ClassVar[EntryTable] = {
        "leaf": Integer(0),
        "feature": Integer(0),
        "stay": Lists(Integer(0)),
    }

    leaf: int
    feature: int
    stay: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tree(Saved):
    """Successive splits, and what is added to the logit in each leaf."""

    _entries: ClassVar[EntryTable] = {
        "splits": Lists(Listed(LeafSplit)),
        "values": Lists(Number()),
    }

    splits: tuple[LeafSplit, ...]
    values: tuple[float, ...]

    def _check_state(self, known: Known) -> None:
        n_leaves = len(self.splits) + 1
        if len(self.values) != n_leaves:
            got = f"{len(self.values):,}"
            raise InvalidValueError("values", f"have {n_leaves:,} entries", got=got)

    def leaves(self, bins: Sequence[IndexArray]) -> IndexArray:
        """The leaf of each row, from the bins of all features."""
        leaf = np.zeros(len(bins[0]), dtype=np.intp)
        for number, split in enumerate(self.splits, start=1):
            of_feature = bins[split.feature]
            stays = np.zeros(int(of_feature.max(initial=0)) + 1, dtype=bool)
            stays[[one for one in split.stay if one < stays.size]] = True
            leaf[(leaf == split.leaf) & ~stays[of_feature]] = number
        return leaf

    def added(self, bins: Sequence[IndexArray]) -> FloatArray:
        """What is added to the logit of each row."""
        return np.array(self.values)[self.leaves(bins)]


@dataclass(frozen=True, slots=True)
class BoostedLogit(Saved):
    """A correction of the logit: the sum of trees over the bins of features.

    Attributes
    ----------
    features : tuple of Feature
        The features, with the score first.
    trees : tuple of Tree
        The trees that are added.
    """

    _entries: ClassVar[EntryTable] = {
        "features": Lists(Nested(Feature)),
        "trees": Lists(Nested(Tree)),
    }

    features: tuple[Feature, ...]
    trees: tuple[Tree, ...] = field(default=())

    @classmethod
    def fit(
        cls,
        features: Sequence[Feature],
        bins: Sequence[IndexArray],
        logits: FloatArray,
        labels: FloatArray,
        fold: IndexArray,
    ) -> Self:
        """Fit a correction. Cross-validation over folds chooses the number of trees; all rows fit
        them.

        It takes Newton steps for the log loss, a tenth of each. A tree splits its leaves greedily,
        up to five of them, where the quadratic approximation of the loss decreases most. Bins of an
        unordered attribute are sorted by their mean gradients, because the best split into two
        parts is contiguous in that order (Fisher 1958). Once all trees exist, their values are
        adjusted twice more, tree by tree: that removes errors of subgroups that the splits can
        represent, and adds less noise than more trees would.

        Parameters
        ----------
        features : sequence of Feature
            The features.
        bins : sequence of int arrays of shape (n,)
            The bin of each row, for each feature.
        logits, labels : float arrays of shape (n,)
            The initial logit of each row, and its label.
        fold : int array of shape (n,)
            The fold of each row, from 0 on. Each fold evaluates trees that are fitted to the
            others.
        """
        rows = _Boosting(features, bins, logits, labels)
        members = [fold == one for one in np.unique(fold)]
        folds = [(rows.take(inside), _Grown(rows.take(~inside))) for inside in members]
        trees = _Grown(rows).settled(_best_number(folds))
        return cls(tuple(features), tuple(trees))

    def corrected(self, bins: Sequence[IndexArray], logits: FloatArray) -> FloatArray:
        """The corrected probabilities."""
        total = logits.copy()
        for tree in self.trees:
            total += tree.added(bins)
        return expit(total)

    def _check_state(self, known: Known) -> None:
        for place, tree in enumerate(self.trees):
            for number, split in enumerate(tree.splits, start=1):
                exists = split.leaf < number and split.feature < len(self.features)
                if not exists or max(split.stay, default=0) >= self.features[split.feature].n_bins:
                    rule = "name known leaves, features and bins"
                    raise InvalidValueError(f"trees[{place}].splits", rule, got=shown(split))


def expit(logits: FloatArray) -> FloatArray:
    """1 / (1 + exp(-z)), without overflow."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(logits, -_MOST_LOGIT, _MOST_LOGIT))))


@dataclass(eq=False)
class _Boosting:
    """The state of a fit: rows by bins, and the logit so far."""

    features: Sequence[Feature]
    bins: Sequence[IndexArray]
    logits: FloatArray
    labels: FloatArray

    def take(self, rows: BoolArray) -> "_Boosting":
        """Some of the rows."""
        bins = [one[rows] for one in self.bins]
        return _Boosting(self.features, bins, self.logits[rows], self.labels[rows])

    def trees(self) -> Iterator[Tree]:
        """Yield one tree after another, until none helps."""
        logits = self.logits.copy()
        while True:
            rates = expit(logits)
            tree = self._tree(self.labels - rates, rates * (1.0 - rates))
            if tree is None:
                return
            yield tree
            logits += tree.added(self.bins)

    def _tree(self, gradient: FloatArray, curvature: FloatArray) -> Tree | None:
        """The greedily grown tree; None if no split helps."""
        rows = [np.arange(self.labels.size)]
        sums = [self._sums(rows[0], gradient, curvature)]
        best = [self._best_split(0, sums[0])]
        splits: list[LeafSplit] = []
        while len(rows) < _LEAVES:
            leaf = max(range(len(best)), key=lambda number: best[number][0])
            gain, split = best[leaf]
            if split is None or gain <= _LEAST_GAIN:
                break
            splits.append(split)
            stays = np.isin(self.bins[split.feature][rows[leaf]], split.stay)
            rows.append(rows[leaf][~stays])
            rows[leaf] = rows[leaf][stays]
            # the sums of the larger part are what those of the smaller one leave
            smaller = leaf if rows[leaf].size < rows[-1].size else len(rows) - 1
            counted = self._sums(rows[smaller], gradient, curvature)
            left = [whole - part for whole, part in zip(sums[leaf], counted, strict=True)]
            for rest in left:
                np.maximum(rest[2], 0.0, out=rest[2])
            sums.append(left if smaller == leaf else counted)
            sums[leaf] = counted if smaller == leaf else left
            best[leaf] = self._best_split(leaf, sums[leaf])
            best.append(self._best_split(len(rows) - 1, sums[-1]))
        if not splits:
            return _shift(gradient, curvature)
        values = [_RATE * gradient[one].sum() / (curvature[one].sum() + _RIDGE) for one in rows]
        return Tree(tuple(splits), tuple(float(value) for value in values))

    def _sums(
        self, rows: IndexArray, gradient: FloatArray, curvature: FloatArray
    ) -> list[FloatArray]:
        """Rows, gradients and curvatures by bin, for each feature."""
        values = (None, gradient[rows], curvature[rows])
        found = []
        for feature, bins in zip(self.features, self.bins, strict=True):
            cell = bins[rows]
            sums = [np.bincount(cell, weights, minlength=feature.n_bins) for weights in values]
            found.append(np.stack(sums).astype(np.float64))
        return found

    def _best_split(self, leaf: int, sums: list[FloatArray]) -> tuple[float, LeafSplit | None]:
        """The decrease of the loss by the best split of a leaf, and that split."""
        best: tuple[float, LeafSplit | None] = (0.0, None)
        if sums[0][0].sum() < 2 * _LEAST_ROWS:
            return best
        for number, feature in enumerate(self.features):
            gain, stay = _best_division(sums[number], feature.is_numeric)
            if gain > best[0]:
                best = (gain, LeafSplit(leaf, number, stay))
        return best


def _shift(gradient: FloatArray, curvature: FloatArray) -> Tree | None:
    """A tree with one leaf, which moves all rows by a full Newton step; None if it hardly helps."""
    total = float(gradient.sum())
    weight = float(curvature.sum()) + _RIDGE
    return Tree((), (total / weight,)) if total * total / weight > _LEAST_SHIFT else None


class _Grown:
    """Trees grown on some rows, and the leaf of each of these rows."""

    def __init__(self, rows: _Boosting) -> None:
        self._rows = rows
        self._more = rows.trees()
        self._trees: list[Tree] = []
        self._leaves: list[IndexArray] = []

    def settled(self, number: int) -> list[Tree]:
        """Return up to `number` trees, as long as one helps, with adjusted values: moved again,
        tree by tree, by a tenth of a Newton step.
        """
        for tree in islice(self._more, max(number - len(self._trees), 0)):
            self._trees.append(tree)
            self._leaves.append(tree.leaves(self._rows.bins))
        values = [np.array(tree.values) for tree in self._trees]
        logits = self._rows.logits.copy()
        for own, leaf in zip(values, self._leaves, strict=True):
            logits += own[leaf]
        for _ in range(_PASSES):
            for own, leaf in zip(values, self._leaves, strict=True):
                rates = expit(logits)
                gradient = np.bincount(leaf, self._rows.labels - rates, own.size)
                curvature = np.bincount(leaf, rates * (1.0 - rates), own.size)
                step = _RATE * gradient / (curvature + _RIDGE)
                own += step
                logits += step[leaf]
        pairs = zip(self._trees, values, strict=True)
        return [Tree(tree.splits, tuple(own.tolist())) for tree, own in pairs]


def _losses(folds: list[tuple[_Boosting, _Grown]], number: int) -> FloatArray:
    """The log loss of the rows of each fold, with `number` trees that were grown on the others."""
    found = []
    for rows, others in folds:
        logits = rows.logits.copy()
        for tree in others.settled(number):
            logits += tree.added(rows.bins)
        found.append(np.logaddexp(0.0, logits) - rows.labels * logits)
    return np.concatenate(found)


def _best_number(folds: list[tuple[_Boosting, _Grown]]) -> int:
    """The largest number of trees whose loss is within one standard error of the smallest.

    Too few trees leave errors in subgroups that the mean loss hardly shows; too many add noise,
    which it does show. The standard error is that of the mean difference over rows. Only a few
    numbers are tried.
    """
    smallest = _losses(folds, 0)
    helped = False
    found = 0
    worse = 0
    for number in _NUMBERS:
        losses = _losses(folds, number)
        difference = losses - smallest
        mean = float(difference.mean())
        if mean < 0.0:
            smallest = losses
            helped = True
        if mean <= float(difference.std()) / np.sqrt(difference.size) and mean != 0.0:
            found = number
            worse = 0
            continue
        worse += 1
        if worse > 1:
            break
    return found if helped else 0


def _best_division(sums: FloatArray, is_ordered: bool) -> tuple[float, tuple[int, ...]]:
    """The largest decrease of the loss, and the bins of one of the two parts, from the rows,
    gradients and curvatures of each bin.
    """
    order = np.arange(sums.shape[1])
    if not is_ordered:
        order = np.argsort(sums[1] / (sums[2] + _RIDGE), kind="stable")
    rows, gradient, curvature = np.cumsum(sums[:, order], axis=1)
    left = gradient**2 / (curvature + _RIDGE)
    right = (gradient[-1] - gradient) ** 2 / (np.maximum(curvature[-1] - curvature, 0.0) + _RIDGE)
    gain = left + right - gradient[-1] ** 2 / (curvature[-1] + _RIDGE)
    allowed = (rows >= _LEAST_ROWS) & (rows[-1] - rows >= _LEAST_ROWS)
    gain = np.where(allowed, gain, 0.0)
    at = int(gain.argmax())
    return float(gain[at]), tuple(sorted(order[: at + 1].tolist()))
