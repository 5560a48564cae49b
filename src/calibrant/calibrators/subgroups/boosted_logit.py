"""A small gradient-boosted correction of the logit: trees of five leaves, as plain numbers.

It is written here rather than taken from a library: a model file must hold the trees as readable
numbers, the same rows must give the same trees on every machine, and the answer must not depend on
what is installed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
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
        cells = np.column_stack(bins)
        trees = _Trees(features, cells, logits, labels)
        folds = [_Fold.of(trees, fold == one) for one in np.unique(fold)]
        settled = trees.settled(_best_number(folds))
        return cls(tuple(features), tuple(settled))

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


class _Trees:
    """Trees grown on some rows, one after another, and the leaf of each row in each.

    `bins` has a row for each row, and a column for each feature.
    """

    def __init__(
        self, features: Sequence[Feature], bins: IndexArray, logits: FloatArray, labels: FloatArray
    ) -> None:
        self.features = features
        self.bins = bins
        self.logits = logits
        self.labels = labels
        self.grown: list[Tree] = []
        self._leaves: list[IndexArray] = []
        self._latest = logits.copy()
        n_bins = np.array([feature.n_bins for feature in features])
        self._width = int(n_bins.max())
        self._cells = bins + self._width * np.arange(len(features))
        self._unordered = np.flatnonzero([not feature.is_numeric for feature in features])
        self._beyond = np.arange(self._width) >= n_bins[self._unordered, None]

    def take(self, rows: BoolArray) -> "_Trees":
        """None yet, to be grown on some of the rows."""
        return _Trees(self.features, self.bins[rows], self.logits[rows], self.labels[rows])

    def settled(self, number: int) -> list[Tree]:
        """Return up to `number` trees, as long as one helps, with adjusted values: moved again,
        tree by tree, by a tenth of a Newton step.
        """
        while len(self.grown) < number and self._grows():
            pass
        trees = self.grown[:number]
        values = [np.array(tree.values) for tree in trees]
        logits = self.logits.copy()
        for own, leaf in zip(values, self._leaves, strict=False):
            logits += own[leaf]
        for _ in range(_PASSES):
            for own, leaf in zip(values, self._leaves, strict=False):
                rates = expit(logits)
                gradient = np.bincount(leaf, self.labels - rates, own.size)
                curvature = np.bincount(leaf, rates * (1.0 - rates), own.size)
                step = _RATE * gradient / (curvature + _RIDGE)
                own += step
                logits += step[leaf]
        pairs = zip(trees, values, strict=True)
        return [Tree(tree.splits, tuple(own.tolist())) for tree, own in pairs]

    def _grows(self) -> bool:
        """Add a greedily grown tree; return False if no split helps."""
        rates = expit(self._latest)
        gradient = self.labels - rates
        curvature = rates * (1.0 - rates)
        rows = [np.arange(self.labels.size)]
        sums = [self._sums(rows[0], gradient, curvature)]
        best = self._best_divisions(sums)
        splits: list[LeafSplit] = []
        while len(rows) < _LEAVES:
            leaf = max(range(len(best)), key=lambda number: best[number][0])
            gain, feature, stay = best[leaf]
            if gain <= _LEAST_GAIN:
                break
            splits.append(LeafSplit(leaf, feature, tuple(np.flatnonzero(stay).tolist())))
            stays = stay[self.bins[rows[leaf], feature]]
            parts = rows[leaf][stays], rows[leaf][~stays]
            # the sums of the larger part are what those of the smaller one leave
            smaller = int(parts[0].size >= parts[1].size)
            counted = self._sums(parts[smaller], gradient, curvature)
            rest = sums[leaf] - counted
            np.maximum(rest[2], 0.0, out=rest[2])
            both = [rest, counted] if smaller else [counted, rest]
            divisions = self._best_divisions(both)
            rows[leaf] = parts[0]
            sums[leaf] = both[0]
            best[leaf] = divisions[0]
            rows.append(parts[1])
            sums.append(both[1])
            best.append(divisions[1])
        if splits:
            values = [_RATE * gradient[one].sum() / (curvature[one].sum() + _RIDGE) for one in rows]
        else:
            # one leaf moves all rows by a full Newton step
            total = float(gradient.sum())
            weight = float(curvature.sum()) + _RIDGE
            values = [total / weight]
            if total * values[0] <= _LEAST_SHIFT:
                return False
        leaves = np.zeros(self.labels.size, dtype=np.intp)
        for number, one in enumerate(rows):
            leaves[one] = number
        self.grown.append(Tree(tuple(splits), tuple(map(float, values))))
        self._leaves.append(leaves)
        self._latest += np.array(values)[leaves]
        return True

    def _sums(self, rows: IndexArray, gradient: FloatArray, curvature: FloatArray) -> FloatArray:
        """Rows, gradients and curvatures by feature and bin."""
        cell = self._cells[rows].ravel()
        n_features = len(self.features)
        of_cell = [None, *(np.repeat(one[rows], n_features) for one in (gradient, curvature))]
        size = n_features * self._width
        sums = [np.bincount(cell, one, minlength=size) for one in of_cell]
        return np.stack(sums).astype(np.float64).reshape(3, n_features, self._width)

    def _best_divisions(self, sums: Sequence[FloatArray]) -> list[tuple[float, int, BoolArray]]:
        """For each leaf, the largest decrease of the loss by a division of the bins of a feature in
        two parts, that feature, and which of its bins are in the first part.
        """
        every = np.stack(sums, axis=1)
        order = np.broadcast_to(np.arange(self._width), every.shape[1:]).copy()
        unordered = every[:, :, self._unordered]
        mean = np.where(self._beyond, np.inf, unordered[1] / (unordered[2] + _RIDGE))
        order[:, self._unordered] = np.argsort(mean, axis=-1, kind="stable")
        every = np.take_along_axis(every, order[None], axis=-1)
        below = np.cumsum(every, axis=-1)
        rows, gradient, curvature = below
        all_rows, total, weight = below[..., -1:]
        left = gradient**2 / (curvature + _RIDGE)
        right = (total - gradient) ** 2 / (np.maximum(weight - curvature, 0.0) + _RIDGE)
        gain = left + right - total**2 / (weight + _RIDGE)
        allowed = (rows >= _LEAST_ROWS) & (all_rows - rows >= _LEAST_ROWS)
        gain = np.where(allowed, gain, 0.0).reshape(len(sums), -1)
        found = []
        for leaf, place in enumerate(gain.argmax(axis=1).tolist()):
            feature, at = divmod(place, self._width)
            first = np.zeros(self._width, dtype=bool)
            first[order[leaf, feature, : at + 1]] = True
            found.append((float(gain[leaf, place]), feature, first))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Fold:
    """Rows that evaluate trees grown on the others, and the leaf of each in each tree."""

    rows: _Trees
    others: _Trees
    leaves: list[IndexArray] = field(default_factory=list)

    @classmethod
    def of(cls, rows: _Trees, inside: BoolArray) -> Self:
        """Divide the rows."""
        return cls(rows.take(inside), rows.take(~inside))

    def losses(self, number: int) -> FloatArray:
        """The log loss of each row, with `number` trees."""
        logits = self.rows.logits.copy()
        trees = self.others.settled(number)
        for tree in trees[len(self.leaves) :]:
            self.leaves.append(tree.leaves(list(self.rows.bins.T)))
        for tree, leaf in zip(trees, self.leaves, strict=False):
            logits += np.array(tree.values)[leaf]
        return np.asarray(np.logaddexp(0.0, logits) - self.rows.labels * logits)


def _best_number(folds: Sequence[_Fold]) -> int:
    """The largest number of trees whose loss is within one standard error of the smallest.

    Too few trees leave errors in subgroups that the mean loss hardly shows; too many add noise,
    which it does show. The standard error is that of the mean difference over rows. Only a few
    numbers are tried.
    """
    smallest = np.concatenate([fold.losses(0) for fold in folds])
    helped = False
    found = 0
    worse = 0
    for number in _NUMBERS:
        losses = np.concatenate([fold.losses(number) for fold in folds])
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
