"""Split-conformal prediction sets for two labels: exact coverage at any sample size, for every
distribution.
"""

from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from hashlib import blake2b
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike, BoolArray, FloatArray, IntArray, Seed
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.arrays import as_array, as_scores
from calibrant.params.declared_state import Inline, LabelEntries, Saved
from calibrant.params.estimator import Estimator, check_is_fitted
from calibrant.params.frames import FrameOutput, predicts
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.labels import Classes
from calibrant.params.random import RandomSource, seed_number
from calibrant.params.rules import (
    OPEN_UNIT,
    CheckedParameters,
    Choice,
    Flag,
    Integer,
    Number,
    RuleTable,
)
from calibrant.params.state_kinds import Lists, Maybe, Numbers
from calibrant.sample.facts import ONE_OF_EACH, RowFacts
from calibrant.sample.reader import (
    ONE_EACH,
    check_no_weights,
    one_row_each,
    read_rows,
    refuse,
)
from calibrant.sample.sample import Sample
from calibrant.text.result import Result, Verdict
from calibrant.text.result_table import ResultTable
from calibrant.text.sentences import Setting

_CONDITIONAL = Choice(("marginal", "label"))
_ASSUMED = (
    (
        "the future row and the calibration rows are exchangeable, as independent draws from one"
        " distribution are"
    ),
    "the scores come from a model that was not trained on the calibration rows",
)
_OWN_NUMBERS = (
    "each row has random numbers of its own: a fresh draw from a random seed, or a key that is"
    " unique and unrelated to the row"
)

_SKIPPED = "whether a row's label is missing depends on neither its score nor its label"


@dataclass(frozen=True, slots=True, repr=False)
class ConformalGuarantee(Result):
    """The guarantee of conformal sets.

    Attributes
    ----------
    kind : {"marginal", "label"}
        Whether the coverage is over all rows, or among the rows of each label.
    counts : tuple of int
        Calibration rows behind the sets of the negative and of the positive label.
    classes : tuple
        The negative and the positive label.
    randomized : bool
        Whether ties are broken at random, so that the coverage is met exactly rather than exceeded.
    facts : RowFacts
        What to say about how the rows were read.
    """

    _also: ClassVar[tuple[str, ...]] = ("is_proved", "n_skipped")

    kind: str
    counts: tuple[int, int]
    classes: tuple[Hashable, Hashable]
    randomized: bool
    facts: RowFacts = field(default_factory=RowFacts)

    @property
    def n_skipped(self) -> int:
        """Number of rows skipped because their label is missing."""
        return self.facts.skipped

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must be true for the guarantee to hold."""
        stated = {
            _OWN_NUMBERS: self.randomized,
            _SKIPPED: self.n_skipped,
            ONE_OF_EACH: self.facts.one_of_each[0],
        }
        return (*_ASSUMED, *(text for text, holds in stated.items() if holds))

    @property
    def is_proved(self) -> bool:
        """Always True: the guarantee follows from the stated assumptions alone."""
        return True

    @property
    def verdict(self) -> Verdict:
        """The coverage is guaranteed."""
        return "ok"

    @property
    def notes(self) -> tuple[str, ...]:
        """What the probability is over, and what else a reader should know, such as skipped rows."""
        drawn = (
            ", the future row and the random numbers" if self.randomized else " and the future row"
        )
        over = (
            "it holds for every distribution of the data; the probability is over the calibration"
            f" rows{drawn} together, not for one score in particular"
        )
        of_groups = self.facts.said_of_groups.strip()
        return (over, *([of_groups] if of_groups else []), *self.facts.notes)

    def tables(self) -> tuple[ResultTable, ...]:
        """The calibration rows behind the sets of each label."""
        return (
            ResultTable("labels", {"label": list(map(str, self.classes)), "n_rows": self.counts}),
        )

    @property
    def sentence(self) -> str:
        """What is guaranteed, and on which assumption, in 35 words at most."""
        rows = f"{self.counts[0]:,}"
        whom = "a new row's label is in its set"
        if self.kind == "label":
            rows = f"{self.counts[0]:,} and {self.counts[1]:,}"
            whom = "among new rows of either class, the label is in its set"
        how = "exactly" if self.randomized else "at least"
        return (
            f"{whom[:1].upper()}{whom[1:]} with {how} the coverage asked for, if new rows are"
            f" exchangeable with these {rows}."
        )


@dataclass(eq=False, repr=False)
class ConformalSets(Saved, FrameOutput, CheckedParameters, Estimator):
    """Sets of labels that contain the true label with a stated probability, at any sample size, for
    every distribution.

    Guarantee: P(label in set) >= coverage, over the draw of the calibration rows and the future
    row; with ``conditional="label"`` also P(label in set | label = y) >= coverage for both labels y
    (Mondrian). Assumptions: all rows are exchangeable, and the model was not trained on the
    calibration rows. Not claimed: anything about a single score, or given the calibration rows.
    `BinningCalibrator.predict_set` has a different guarantee: with a stated confidence over the
    calibration rows, in *every* region, a bound on the rate of misses.

    Parameters
    ----------
    conditional : {"marginal", "label"}, default="marginal"
        "marginal": the coverage holds over all rows; a rare label may then be covered rarely.
        "label": the coverage holds within each label; then only the order of scores matters.
    center : float, default=0.5
        For "marginal": the score at which both labels have the same nonconformity: 0.5 for
        probabilities, 0 for logits. Coverage holds for any center; a good one makes sets smaller.
    randomized : bool, default=False
        Break ties at random. The coverage is then met exactly, but the same score may get different
        sets: every row needs its own random numbers. Pass `keys` when predicting so that a row gets
        the same set each time.
    pos_label : object, default=None
        The positive class. Required unless the labels are 0 and 1, -1 and 1, or bools.
    random_state : int, Generator, RandomState or None, default=0
        If `randomized`, the seed for the random numbers, which also depend on the calibration rows.
        Without `keys`, they come from one generator that starts at `fit` and advances with every
        call, so rows predicted one by one get different numbers; a model that was loaded, copied or
        unpickled starts from a fresh seed.

    Attributes
    ----------
    guarantee_ : ConformalGuarantee
        What is guaranteed.
    classes_ : array of shape (2,)
        The labels, sorted.
    n_features_in_ : int
        Always 1.

    Notes
    -----
    The nonconformity score of a row is center - score for the positive label and score - center for
    the negative one. The p-value of a label is (1 + number of calibration rows whose nonconformity
    score is at least that) / (n + 1), among all rows or those with that label; the set contains the
    labels whose p-value exceeds 1 - coverage. By exchangeability, the rank of the future row is
    uniform, with ties counting against it, so P(p-value <= a) <= a. With ties broken by U uniform
    on (0, 1), the p-value (number above + U (1 + number tied)) / (n + 1) is exactly uniform. This
    requires a U that is independent of the rows, and averages over rows are right only if different
    rows have different U. So U is either drawn anew for each row, or a hash of the seed and the
    row's key. "Exactly" means over random seeds, as with ``random_state=None``: with one fixed seed
    and few possible outcomes, the numbers may be uneven.

    References
    ----------
    Vovk, Gammerman and Shafer (2005), "Algorithmic learning in a random world". Papadopoulos,
    Proedrou, Vovk and Gammerman (2002), "Inductive confidence machines for regression".

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.tripod import ConformalSets
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=1000)
    >>> y = rng.uniform(size=1000) < scores
    >>> ConformalSets().fit(scores, y).predict_set([0.05, 0.5, 0.95], coverage=0.8)
    array([[ True, False],
           [ True,  True],
           [False,  True]])
    """

    _schema: ClassVar[str] = "calibrant.conformal/1"
    _entries: ClassVar[EntryTable] = {
        "conditional": _CONDITIONAL,
        "center": Number(),
        "randomized": Flag(),
        "labels": Entry(LabelEntries(), of="_known"),
        "oddness": Entry(Lists(Numbers(rising=True), size=2), of="_ranked"),
        "tie_key": Entry(Maybe(Integer(0)), of="_tie_key", absent=None),
        "facts": Entry(Inline(RowFacts), of="guarantee_.facts"),
    }
    _rules: ClassVar[RuleTable] = {
        "conditional": _CONDITIONAL,
        "center": Number(),
        "randomized": Flag(),
    }

    _: KW_ONLY
    conditional: str = "marginal"
    center: float = 0.5
    randomized: bool = False
    pos_label: Hashable = None
    random_state: "Seed" = 0

    def fit(
        self,
        scores: "ArrayLike | Sample",
        y: "ArrayLike | None" = None,
        *,
        groups: "ArrayLike | None" = None,
        classes: "ArrayLike | None" = None,
    ) -> Self:
        """Rank the nonconformity scores of the calibration rows.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`; or Sample
            Scores of rows that the model was not trained on; or data with scores and labels, see
            `calibrant.scored`, whose rows are read into memory.
        y : array-like of shape (n,)
            Labels of two classes.
        groups : array-like of shape (n,), optional
            The group of each row, such as its customer. One row from each group is drawn at random
            and the others are not used: the guarantee is then about a row drawn at random from a
            new group.
        classes : pair of labels, optional
            Both labels. Required if the data may contain only one of them.

        Returns
        -------
        self
        """
        self._check_parameters()
        check_no_weights(scores, "rows with different weights are not exchangeable")
        refuse(scores, "all rows are ranked together", "segment", advice=ONE_EACH)
        data = read_rows(scores, y, classes=classes, pos_label=self.pos_label, groups=groups)
        rows = one_row_each(data, self.random_state).collect()
        per_code = [
            np.sort(self._nonconformity(rows.scores[rows.codes == code], code)) for code in (0, 1)
        ]
        if self.conditional == "marginal":
            per_code = [np.sort(np.concatenate(per_code))] * 2
        self._set_ranks((per_code[0], per_code[1]), rows.known, rows.facts(drawn=False))
        self._source = rows.ordered_source(self.random_state, "ties") if self.randomized else None
        self._generator: np.random.Generator | None = (
            None if self._source is None else self._source.generator()
        )
        return self

    def __getstate__(self) -> Any:
        # drop the generator: two copies in the same state would draw the same random numbers for
        # their rows
        return {**vars(self), "_generator": None}

    def _nonconformity(self, scores: NDArray[Any], code: int) -> FloatArray:
        """The nonconformity score for the label with this code.

        Within one label only the order of scores matters.
        """
        center = float(self.center) if self.conditional == "marginal" else 0.0
        with np.errstate(over="ignore"):
            off = scores.astype(np.float64) - center
        return -off if code else off

    def _set_ranks(
        self, ranked: tuple[FloatArray, FloatArray], classes: Classes, facts: RowFacts
    ) -> None:
        self._ranked = ranked
        self.classes_ = classes.labels
        self.positive_index_ = classes.positive_index
        self.n_features_in_ = 1
        sizes = (ranked[0].size, ranked[1].size)
        both = (classes.negative, classes.positive)
        self.guarantee_ = ConformalGuarantee(
            self.conditional, sizes, both, bool(self.randomized), facts
        )

    def _ranks(self, scores: "ArrayLike") -> list[tuple[IntArray, IntArray, int]]:
        """For the negative and the positive label: rows above, rows tied, and all rows."""
        check_is_fitted(self)
        checked = as_scores(scores, positive_column=self.positive_index_)
        ranks = []
        for code, known in enumerate(self._ranked):
            own = self._nonconformity(checked, code)
            first, last = (np.searchsorted(known, own, side=side) for side in ("left", "right"))
            ranks.append((known.size - last, last - first, int(known.size)))
        return ranks

    def _columns(self, negative: NDArray[Any], positive: NDArray[Any]) -> NDArray[Any]:
        return np.column_stack(
            [negative, positive] if self.positive_index_ else [positive, negative]
        )

    def _shares(self, rows: int, keys: "ArrayLike | None") -> Sequence[FloatArray | float]:
        """For the negative and the positive label, the share of the tied rows that counts as above.

        1 without randomness.
        """
        if not self.randomized:
            if keys is not None:
                raise InvalidValueError(
                    "keys", ("be None unless ", Setting("randomized", True)), got="keys"
                )
            return 1.0, 1.0
        if keys is None:
            if self._generator is None:
                self._generator = RandomSource.of(None, "ties").generator()
            return tuple(self._generator.uniform(size=(2, rows)))
        seed = seed_number(self.random_state) if self._source is None else self._source.key
        return tuple(keyed_uniforms(as_array(keys, "keys"), seed, rows))

    @predicts
    def predict_p_value(
        self, scores: "ArrayLike", *, keys: "ArrayLike | None" = None
    ) -> FloatArray:
        """Return the p-value of each label, shape (n, 2); the columns follow `classes_`.

        Under exchangeability, the p-value of the true label is at most a with probability at most
        a.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`
            Scores of new rows.
        keys : array-like of shape (n,), optional
            If `randomized`, an integer or text per row, unique and unrelated to score and label,
            such as an id. The random numbers of a row are then a hash of `random_state`, the
            calibration rows and its key: they are the same each time, whichever rows are predicted
            with it, and also in a model that was saved and loaded.
        """
        ranks = self._ranks(scores)
        shares = self._shares(ranks[0][0].size, keys)
        values = [
            (above + share * (1 + tied)) / (n_rows + 1)
            for share, (above, tied, n_rows) in zip(shares, ranks, strict=True)
        ]
        return self._columns(*values)

    @predicts
    def predict_set(
        self,
        scores: "ArrayLike",
        *,
        coverage: float = 0.95,
        keys: "ArrayLike | None" = None,
    ) -> BoolArray:
        """Return which labels are in the set, shape (n, 2), boolean; the columns follow `classes_`.

        The label of a future row lies in its set with probability at least `coverage`. A set may be
        empty, if the row is unusual for both labels. It counts as a miss, and the coverage still
        holds. `keys` are as in `predict_p_value`.
        """
        OPEN_UNIT.check("coverage", coverage)
        # use the decimal as written: in doubles 1 - 0.9 is less than 0.1, so 0.1 (n + 1) would miss
        # a whole number
        alpha = 1 - Fraction(repr(float(coverage)))
        if self.randomized:
            return np.asarray(self.predict_p_value(scores, keys=keys) > float(alpha))
        self._shares(0, keys)
        kept = [
            1 + above + tied > int(alpha * (n_rows + 1))
            for above, tied, n_rows in self._ranks(scores)
        ]
        return self._columns(*kept)

    @property
    def _known(self) -> Classes:
        return Classes(self.classes_, self.positive_index_)

    @property
    def _tie_key(self) -> int | None:
        """The key of draws among ties; None if nothing is drawn."""
        return None if self._source is None else self._source.key

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted sets as plain JSON values; `from_dict` reads them back."""
        check_is_fitted(self)
        return Saved.to_dict(self)

    @classmethod
    def _made(cls, values: dict[str, Any], known: Known) -> Self:
        parameters = {name: values[name] for name in ("conditional", "center", "randomized")}
        sets = cls(**parameters)
        sets._set_ranks(values["_ranked"], values["_known"], values["guarantee_.facts"])
        sets._generator = None
        key = values["_tie_key"]
        sets._source = None if key is None else RandomSource(key)
        return sets

    def _check_state(self, known: Known) -> None:
        negative, positive = self._ranked
        if not negative.size + positive.size:
            raise InvalidValueError("oddness", "contain at least one row", got="none")
        if self.conditional == "marginal" and not np.array_equal(negative, positive):
            rule = (
                "be the same for both classes where ",
                Setting("conditional", "marginal"),
            )
            raise InvalidValueError("oddness", rule, got="other values")


def keyed_uniforms(keys: NDArray[Any], seed: int, rows: int) -> FloatArray:
    """Two numbers in (0, 1) for each key, shape (2, n), which look independent and depend only on
    key and seed.

    >>> both, one = keyed_uniforms(np.array([7, 8]), 0, 2), keyed_uniforms(np.array([8]), 0, 1)
    >>> bool((both[:, 1:] == one).all())
    True
    """
    if keys.shape != (rows,):
        raise InvalidValueError(
            "keys", f"have one entry per score, {rows:,}", got=f"shape {keys.shape}"
        )
    plain = keys.tolist()
    if not all(isinstance(key, int | str | bytes) and not isinstance(key, bool) for key in plain):
        raise InvalidTypeError("keys", "be whole numbers or text", got=f"dtype {keys.dtype}")
    start = blake2b(f"calibrant.conformal {seed}".encode(), digest_size=32).digest()
    words = b"".join(
        blake2b(repr(key).encode(), key=start, digest_size=16).digest() for key in plain
    )
    whole = np.frombuffer(words, dtype="<u8").reshape(rows, 2).T >> np.uint64(11)
    return (whole.astype(np.float64) + 0.5) / 2.0**53
