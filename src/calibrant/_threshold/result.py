"""What `threshold` returns: numbers, the sentence, and the decisions that follow."""

import json
import math
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass, fields
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._file import write_file
from calibrant._input import as_scores
from calibrant._numbers import limits, nearest, percent, rows
from calibrant._params import check_state
from calibrant._state import check_schema
from calibrant._text import shown
from calibrant._threshold.search import Confusion
from calibrant._typing import ArrayLike, BoolArray
from calibrant.errors import CalibrantError, InvalidTypeError, InvalidValueError
from calibrant.intervals._binomial import lower_limit, upper_limit
from calibrant.intervals.kolmogorov import kolmogorov_distance
from calibrant.partition.segments import segment_kinds

_SCHEMA = "calibrant.threshold/1"
TARGETS = {
    "precision": "{share} of the rows with score >= {threshold} are positive",
    "recall": "{share} of the positive rows have a score >= {threshold}",
    "npv": "{share} of the rows with score < {threshold} are negative",
    "specificity": "{share} of the negative rows have a score < {threshold}",
}
"""What can be asked for, and what it says."""
_EVERYTHING = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Measured:
    """A share among the counted rows, and limits for it in the population."""

    value: float
    lower: float
    upper: float

    def __str__(self) -> str:
        known = "unknown" if math.isnan(self.value) else nearest(self.value)
        return f"{known} ({limits(self.lower, self.upper)})"


@dataclass(frozen=True, slots=True)
class Cut:
    """One target in one segment: the threshold, and what is known of the rows on both sides of it.

    Attributes
    ----------
    segment : object
        The segment; None for all rows.
    target, level : str, float
        What was asked for, such as "precision", 0.9.
    threshold : float or None
        Rows with score >= threshold are selected; None where nothing is proved.
    reason : str or None
        Why nothing is proved.
    labels_needed : int or None
        Where nothing is proved: how many labels would probably do, if more rows are like these.
    counted : int
        Rows that were counted.
    selected, precision, recall, specificity, npv : Measured or None
        The share of rows that are selected, and how often the decision is right. The limits of all of them and the
        target hold together; see `Threshold.limits_confidence_level`.
    false_alarms : Measured or None
        False alarms for each true one, (1 - precision) / precision.
    """

    segment: Hashable
    target: str
    level: float
    threshold: float | None
    reason: str | None = None
    labels_needed: int | None = None
    counted: int = 0
    selected: Measured | None = None
    precision: Measured | None = None
    recall: Measured | None = None
    specificity: Measured | None = None
    npv: Measured | None = None
    false_alarms: Measured | None = None

    @classmethod
    def at(
        cls, segment: Hashable, target: str, level: float, cut: float, counted: int, parts: Mapping[str, Measured]
    ) -> Self:
        """A threshold that is proved, with what was measured there."""
        shares: dict[str, Any] = dict(parts)
        return cls(segment, target, level, cut, counted=counted, **shares)

    def sentence(self) -> str:
        """What is proved, in words."""
        where = "" if self.segment is None else f"in segment {self.segment!r}, "
        if self.threshold is None:
            more = "" if self.labels_needed is None else f"; about {self.labels_needed:,} labels would probably do"
            return f"{where}{self.target} {self.level:g} cannot be proved: {self.reason}{more}"
        text = TARGETS[self.target].format(share=f"at least {percent(self.level)}", threshold=repr(self.threshold))
        return f"{where}{text}"


@dataclass(frozen=True, slots=True)
class Threshold:
    """Thresholds with a proof, made by `calibrant.threshold`.

    Attributes
    ----------
    cuts : tuple of Cut
        One for each target and segment. `threshold` and the numbers of a cut are attributes of the whole where it is
        the only one.
    confidence_level : float
        All targets of all cuts hold together with this probability, over the draw of the rows.
    method : {"look", "start", "ranks"}
        How the thresholds were found.
    n_rows, n_drawn : int
        Rows in all, and those that only chose where to look.
    positive_label : object
        The positive class.
    assumptions : tuple of str
        What must be true for all this to hold.
    max_group_size : int or None
        Where rows belong together: a group counts as at most so many rows.
    """

    cuts: tuple[Cut, ...]
    confidence_level: float
    method: str
    n_rows: int
    n_drawn: int
    positive_label: Hashable
    assumptions: tuple[str, ...]
    max_group_size: int | None = None

    @property
    def limits_confidence_level(self) -> float:
        """With this probability all limits of all cuts hold together with the targets: 1 - 2 alpha, at least 0."""
        return max(0.0, 1.0 - 2.0 * (1.0 - self.confidence_level))

    @property
    def only(self) -> Cut:
        """The cut, where there is one."""
        if len(self.cuts) > 1:
            raise InvalidTypeError("the threshold", "be one to be asked for as one", f"{len(self.cuts)}", "use .cuts")
        return self.cuts[0]

    @property
    def threshold(self) -> float | None:
        """The threshold; None where nothing is proved."""
        return self.only.threshold

    @property
    def reason(self) -> str | None:
        """Why nothing is proved."""
        return self.only.reason

    @property
    def labels_needed(self) -> int | None:
        """How many labels would probably do, where nothing is proved."""
        return self.only.labels_needed

    @property
    def selected(self) -> Measured | None:
        """The share of rows that are selected."""
        return self.only.selected

    @property
    def precision(self) -> Measured | None:
        """The share of positives among selected rows."""
        return self.only.precision

    @property
    def recall(self) -> Measured | None:
        """The share of positives that are selected."""
        return self.only.recall

    @property
    def false_alarms(self) -> Measured | None:
        """False alarms for each true one."""
        return self.only.false_alarms

    def sentence(self) -> str:
        """What is proved, and how sure it is."""
        together = ", all at once" if len(self.cuts) > 1 else ""
        said = "; ".join(cut.sentence() for cut in self.cuts)
        about = "" if self.max_group_size is None else f" A group counts as at most {rows(self.max_group_size)}."
        return f"With {percent(self.confidence_level)} confidence{together}: {said}.{about}"

    def __str__(self) -> str:
        lines = [self.sentence()]
        for cut in self.cuts:
            if cut.threshold is not None:
                name = cut.target if cut.segment is None else f"{cut.target}, segment {cut.segment!r}"
                lines.append(f"{name}: threshold {cut.threshold!r}, from {rows(cut.counted)}")
                shown_names = ("selected", "precision", "recall", "false_alarms")
                lines += [f"  {part.replace('_', ' ')} {getattr(cut, part)}" for part in shown_names]
        if any(cut.threshold is not None for cut in self.cuts):
            together = percent(self.limits_confidence_level)
            lines.append(f"limits in brackets; they and the target hold together with {together} confidence")
        return "\n".join(lines)

    def predict(self, scores: ArrayLike, segments: ArrayLike | None = None) -> BoolArray:
        """Return which rows are selected. A row of an unknown segment, or without a proved threshold, is not."""
        return self._sides(scores, segments)[0]

    def refer(self, scores: ArrayLike, segments: ArrayLike | None = None) -> BoolArray:
        """Return which rows are for a person to decide: with precision and npv both asked for, those in between."""
        selected, below = self._sides(scores, segments)
        return ~selected & ~below

    @property
    def ends(self) -> dict[Hashable, tuple[float, float]]:
        """Of each segment, below which score rows are not selected, and from which score on they are.

        They differ where rows between them are referred to a person. Where nothing is proved they are infinite.
        """
        single = len({cut.target for cut in self.cuts}) == 1
        found: dict[Hashable, tuple[float, float]] = {}
        for cut in self.cuts:
            low, high = found.get(cut.segment, (math.inf, math.inf) if single else (-math.inf, math.inf))
            if cut.threshold is not None:
                low = cut.threshold if single or cut.target == "npv" else low
                high = cut.threshold if single or cut.target == "precision" else high
            found[cut.segment] = (low, high)
        return found

    def _sides(self, scores: ArrayLike, segments: ArrayLike | None) -> tuple[BoolArray, BoolArray]:
        """Rows that are selected, and rows that are decided to be negative."""
        values = as_scores(scores)
        segmented = any(cut.segment is not None for cut in self.cuts)
        if segmented == (segments is None):
            rule = "be given: thresholds differ by segment" if segmented else "be None: there is one threshold for all"
            raise InvalidTypeError("segments", rule, got=shown(segments))
        low, high = np.full(values.size, -np.inf), np.full(values.size, np.inf)
        for segment, ends in self.ends.items():
            here = _where(segments, segment, values.size)
            low[here], high[here] = ends
        return values >= high, values < low

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; `from_dict` reads them back. What is not a number is None."""
        return {"schema": _SCHEMA, **_plain(asdict(self)), "sentence": self.sentence()}

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write a JSON file, whole or not at all; `load` reads it."""
        text = json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"
        write_file(text.encode(), path, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a file that `save` or `calibrant threshold -o` wrote."""
        with open(path, "rb") as file:
            content = file.read()
        try:
            return cls.from_dict(json.loads(content))
        except ValueError as error:
            if isinstance(error, CalibrantError):
                raise
            raise InvalidValueError("the file", "be JSON, as save writes it", got=str(error)) from None

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        """Read back what `to_dict` wrote."""
        names = [part.name for part in fields(cls)]
        check_schema(state, _SCHEMA, names[:-1])
        cuts = tuple(_read_cut(cut) for cut in state["cuts"])
        rest: dict[str, Any] = {name: state.get(name) for name in names if name not in ("cuts", "assumptions")}
        return cls(cuts=cuts, assumptions=tuple(state["assumptions"]), **rest)


def _read_cut(state: Any) -> Cut:
    names = [part.name for part in fields(Cut)]
    check_state(state, names)
    if state["target"] not in TARGETS:
        raise InvalidValueError("target", f"be one of {', '.join(TARGETS)}", got=shown(state["target"]))
    values: dict[str, Any] = {
        name: _read_share(state[name]) if isinstance(state[name], Mapping) else state[name] for name in names
    }
    return Cut(**values)


def _plain(value: Any) -> Any:
    """A copy in which numbers that JSON does not have are None."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _read_share(state: Mapping[str, Any]) -> Measured:
    check_state(state, ("value", "lower", "upper"))
    missing = {"value": math.nan, "lower": math.nan, "upper": math.inf}  # what JSON does not have
    return Measured(*(value if state[name] is None else float(state[name]) for name, value in missing.items()))


def _where(segments: ArrayLike | None, segment: Hashable, n: int) -> NDArray[Any]:
    if segments is None:
        return np.ones(n, dtype=bool)
    names, number = segment_kinds(segments)
    if number.size != n:
        raise InvalidValueError("segments", f"have one entry per score, {n}", got=f"{number.size} entries")
    return np.asarray(number == names.index(segment) if segment in names else np.zeros(n, dtype=bool))


def measured_at_fixed(seen: Confusion, target: str, level: float, tail: float) -> dict[str, Measured]:
    """Exact limits at a threshold that was fixed beforehand; `tail` is for each of the five shares and both sides."""
    tp, fp, fn, tn = seen
    parts = {
        "selected": (tp + fp, seen.n),
        "precision": (tp, tp + fp),
        "recall": (tp, tp + fn),
        "specificity": (tn, tn + fp),
        "npv": (tn, tn + fn),
    }
    k, n = np.array([*parts.values()]).T
    low = np.where(n > 0, lower_limit(k, n, tail), 0.0).tolist()
    high = np.where(n > 0, upper_limit(k, n, tail), 1.0).tolist()
    shares = [Measured(_share(*part), *ends) for part, *ends in zip(parts.values(), low, high, strict=True)]
    return _finished(dict(zip(parts, shares, strict=True)), target, level)


def measured_at_rank(seen: Confusion, target: str, level: float, alpha: float) -> dict[str, Measured]:
    """Limits at an order statistic of one class: rows of the other class are independent of it.

    So their share on each side has exact limits, and so has the share of positives among all rows. The share of the own
    class is only known by its target. The rest follows from these three.
    """
    tp, fp, fn, tn = seen
    own = Measured(_share(tp, tp + fn) if target == "recall" else _share(tn, tn + fp), level, 1.0)
    other = _exact(tn, tn + fp, alpha / 4) if target == "recall" else _exact(tp, tp + fn, alpha / 4)
    shares = (own, other) if target == "recall" else (other, own)
    return _composed(seen, _exact(tp + fn, seen.n, alpha / 4), *shares, target, level)


def measured_anywhere(seen: Confusion, target: str, level: float, alpha: float) -> dict[str, Measured]:
    """Limits at any threshold, however it was found: Kolmogorov's distance within each class holds at all of them."""
    tp, fp, fn, tn = seen
    reach = kolmogorov_distance(np.array([tp + fn, tn + fp]), 0.75 * alpha)
    recall, specificity = (
        Measured(_share(k, n), max(_share(k, n) - far, 0.0), min(_share(k, n) + far, 1.0))
        if n
        else Measured(math.nan, *_EVERYTHING)
        for (k, n), far in zip(((tp, tp + fn), (tn, tn + fp)), reach.tolist(), strict=True)
    )
    return _composed(seen, _exact(tp + fn, seen.n, alpha / 8), recall, specificity, target, level)


def measured_in_groups(seen: Confusion, target: str, level: float) -> dict[str, Measured]:
    """Shares among the counted rows of groups. Only the target is proved."""
    tp, fp, fn, tn = seen
    pairs = {"selected": (tp + fp, seen.n), "precision": (tp, tp + fp), "recall": (tp, tp + fn),
             "specificity": (tn, tn + fp), "npv": (tn, tn + fn)}  # fmt: skip
    return _finished({name: Measured(_share(*pair), *_EVERYTHING) for name, pair in pairs.items()}, target, level)


def _composed(
    seen: Confusion, base: Measured, recall: Measured, specificity: Measured, target: str, level: float
) -> dict[str, Measured]:
    """All shares, from the share of positives and from those of both classes on each side."""
    tp, fp, fn, tn = seen
    return _finished(
        {
            "selected": Measured(
                _share(tp + fp, seen.n),
                _mix(base, recall.lower, 1 - specificity.upper, min),
                _mix(base, recall.upper, 1 - specificity.lower, max),
            ),
            "precision": _bayes(_share(tp, tp + fp), base, recall, specificity),
            "recall": recall,
            "specificity": specificity,
            "npv": _bayes(_share(tn, tn + fn), _turned(base), specificity, recall),
        },
        target,
        level,
    )


def _mix(base: Measured, of_positives: float, of_negatives: float, extreme: Any) -> float:
    return float(extreme(share * of_positives + (1 - share) * of_negatives for share in (base.lower, base.upper)))


def _turned(share: Measured) -> Measured:
    return Measured(1 - share.value, 1 - share.upper, 1 - share.lower)


def _bayes(value: float, base: Measured, hit: Measured, rejected: Measured) -> Measured:
    """The share of positives among selected rows, from the shares of both classes that are selected."""

    def right(share: float, hits: float, alarms: float) -> float:
        return share * hits / max(share * hits + (1 - share) * alarms, 1e-300)

    lower = right(base.lower, hit.lower, 1 - rejected.lower)
    return Measured(value, lower, right(base.upper, hit.upper, 1 - rejected.upper) if rejected.upper < 1 else 1.0)


def _finished(parts: dict[str, Measured], target: str, level: float) -> dict[str, Measured]:
    """With what the target proves, and false alarms for each true one."""
    proved = parts[target]
    parts[target] = Measured(proved.value, max(proved.lower, level), max(proved.upper, level))
    found = parts["precision"]
    parts["false_alarms"] = Measured(_per_hit(found.value), _per_hit(found.upper), _per_hit(found.lower))
    return parts


def _per_hit(precision: float) -> float:
    return (1.0 - precision) / precision if precision > 0 else math.inf if precision == 0 else math.nan


def _share(k: int, n: int) -> float:
    return k / n if n else math.nan


def _exact(k: int, n: int, tail: float) -> Measured:
    low, high = (float(lower_limit(k, n, tail)), float(upper_limit(k, n, tail))) if n else _EVERYTHING
    return Measured(_share(k, n), low, high)
