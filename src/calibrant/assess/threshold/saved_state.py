"""Saved thresholds: what the counts decide is derived again, and no target or limit is better than
they allow.
"""

import math
from collections.abc import Mapping
from typing import Any

from calibrant.assess.threshold.candidates import Confusion, misses_allowed
from calibrant.assess.threshold.proved_threshold import (
    SCHEMA,
    TARGETS,
    Cut,
    Measured,
    Ratio,
    Threshold,
)
from calibrant.assess.threshold.shares import (
    alarms_per_hit,
    measured_anywhere,
    measured_at_fixed,
    measured_at_rank,
    measured_in_groups,
)
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.limits.binomial import lower_limit, sidak_level
from calibrant.params.rules import (
    OPEN_UNIT,
    TEXT,
    Choice,
    Integer,
    Number,
    Optional,
    check_state,
    error_budget,
)
from calibrant.params.saved_state import check_schema, read_count, read_labels
from calibrant.text.sentences import shown

_KEYS = ("cuts", "confidence_level", "method", "n_rows", "n_drawn", "positive_label", "assumptions")
_CUT_KEYS = ("segment", "target", "level", "threshold", "reason", "labels_needed", "counted")
_SHARES = ("selected", "precision", "recall", "specificity", "npv")
_METHODS = ("look", "start", "ranks")
_TESTS = 10  # five shares with limits on both sides
_ROUNDING = 1e-9
_UNIT = Number("a number from 0 to 1", 0.0, 1.0)


def threshold_from_state(state: Mapping[str, Any]) -> Threshold:
    """Read what `Threshold.to_dict` wrote; raise an error for what `threshold` cannot have found."""
    check_schema(state, SCHEMA, _KEYS)
    level = OPEN_UNIT.check("confidence_level", state["confidence_level"])
    method = Choice(_METHODS).check("method", state["method"])
    n_rows = read_count(state, "n_rows")
    n_drawn = read_count(state, "n_drawn")
    if n_drawn > n_rows:
        raise InvalidValueError("n_drawn", f"be at most n_rows, {n_rows:,}", got=f"{n_drawn:,}")
    (label,) = read_labels([state["positive_label"]])
    largest = Optional(Integer(1)).check("max_group_size", state.get("max_group_size"))
    above = Optional(_UNIT).check("above_cap", state.get("above_cap"))
    if above is not None and largest is None:
        raise InvalidValueError("above_cap", "be null without groups", got=f"{above:g}")
    TEXT.check("sentence", state.get("sentence", ""))
    saved = state["cuts"]
    if not isinstance(saved, list | tuple) or not saved:
        raise InvalidValueError("cuts", "be a list of at least one threshold", got=shown(saved))
    cuts = tuple(_read_cut(cut) for cut in saved)
    _check_together(cuts, n_rows - n_drawn)
    assumed = state["assumptions"]
    if not isinstance(assumed, list | tuple) or not assumed:
        raise InvalidTypeError("assumptions", "be a list of texts", got=shown(assumed))
    assumptions = tuple(TEXT.check("assumptions", text) for text in assumed)
    seed = Optional(Integer(0)).check("seed", state.get("seed"))
    told = (largest, above, seed, ("counts", "thresholds"))
    found = Threshold(cuts, level, method, n_rows, n_drawn, label, assumptions, *told)
    for cut in cuts:
        if cut.threshold is not None:
            _check_counts(cut, found)
    return found


def _read_cut(state: Any) -> Cut:
    """One threshold, with shares that are numbers in order."""
    check_state(state, (*_CUT_KEYS, *_SHARES, "false_alarms"))
    target = Choice(TARGETS).check("target", state["target"])
    level = OPEN_UNIT.check("level", state["level"])
    cut = Optional(Number()).check("threshold", state["threshold"])
    reason = Optional(TEXT).check("reason", state["reason"])
    needed = Optional(Integer(1)).check("labels_needed", state["labels_needed"])
    counted = read_count(state, "counted")
    if state["segment"] is not None:
        read_labels([state["segment"]])
    if (cut is None) == (reason is None):
        raise InvalidValueError(
            "threshold", "be given, or else the reason why there is none", got=shown(cut)
        )
    if needed is not None and (cut is not None or needed <= counted):
        rule = (
            f"be more than the {counted:,} that were counted, and null where a threshold is proved"
        )
        raise InvalidValueError("labels_needed", rule, got=f"{needed:,}")
    names = (*_SHARES, "false_alarms")
    if cut is None and any(state[name] is not None for name in names):
        raise InvalidValueError(
            "selected", "be null, as all shares, where no threshold is proved", got="numbers"
        )
    if cut is None:
        return Cut(state["segment"], target, level, None, reason, needed, counted)
    shares: dict[str, Any] = {name: _read_share(state[name], name) for name in names}
    return Cut(state["segment"], target, level, cut, counted=counted, **shares)


def _read_share(state: Any, name: str) -> Measured:
    """A share and its limits; JSON has null for what is not a finite number."""
    check_state(state, ("value", "lower", "upper"))
    is_ratio = name == "false_alarms"
    rule = Number("a number >= 0", 0.0) if is_ratio else _UNIT
    value, low, high = (
        Optional(rule).check(f"{part} of {name}", state[part])
        for part in ("value", "lower", "upper")
    )
    if low is None and not is_ratio:
        raise InvalidTypeError(f"lower of {name}", "be a number", got="None")
    if high is None and not is_ratio:
        raise InvalidTypeError(f"upper of {name}", "be a number", got="None")
    low = math.nan if low is None else low
    high = math.inf if high is None else high
    if low > high:
        raise InvalidValueError(f"lower of {name}", "be at most upper", got=f"{low:g} and {high:g}")
    return (Ratio if is_ratio else Measured)(math.nan if value is None else value, low, high)


def _check_together(cuts: tuple[Cut, ...], n_counted: int) -> None:
    """One level for each target, in the same segments, and no more rows than there are."""
    targets = {cut.target: cut.level for cut in cuts}
    if len(targets) > 1 and set(targets) != {"precision", "npv"}:
        raise InvalidValueError(
            "cuts", "be of one target, or of precision and npv", got=", ".join(targets)
        )
    segments = list(dict.fromkeys(cut.segment for cut in cuts))
    wanted = [(segment, target, level) for segment in segments for target, level in targets.items()]
    if [(cut.segment, cut.target, cut.level) for cut in cuts] != wanted:
        raise InvalidValueError(
            "cuts", "have one level of each target in each segment, in order", got="others"
        )
    if None in segments and len(segments) > 1:
        raise InvalidValueError(
            "segment", "be null for one threshold of all rows only", got=shown(segments)
        )
    for target in targets:
        total = sum(cut.counted for cut in cuts if cut.target == target)
        if total > n_counted:
            rule = f"add up to at most the {n_counted:,} rows that were counted"
            raise InvalidValueError("counted", rule, got=f"{total:,}")


def _check_counts(cut: Cut, found: Threshold) -> None:
    """Raise an error for shares, limits and a target that do not follow from the counts on both
    sides.

    A target passes an exact test of its own counts with the whole part of the error budget,
    whatever was tested before. All limits but those of a look follow from the counts. A look shares
    its budget among all thresholds that it tries, which are not saved, so that its limits are at
    least those of a single one.
    """
    grouped = found.max_group_size is not None
    parts = {name: getattr(cut, name) for name in (*_SHARES, "false_alarms")}
    if grouped:
        _check_groups(cut, parts)
        return
    seen = _confusion(cut)
    n_segments = len({each.segment for each in found.cuts})
    n_targets = len({each.target for each in found.cuts})
    alpha = sidak_level(error_budget(found.confidence_level), n_segments) / n_targets
    _check_target(cut, seen, alpha)
    look = found.n_drawn > 0 and cut.target in ("precision", "npv")
    if look:
        best = measured_at_fixed(seen, cut.target, cut.level, alpha / _TESTS)
    elif cut.target in ("recall", "specificity"):
        best = measured_at_rank(seen, cut.target, cut.level, alpha)
    else:
        best = measured_anywhere(seen, cut.target, cut.level, alpha)
    for name in _SHARES:
        _check_limits(name, parts[name], best[name], exact=not look)
    _check_limits(
        "false_alarms", parts["false_alarms"], alarms_per_hit(parts["precision"]), exact=True
    )


def _confusion(cut: Cut) -> Confusion[int]:
    """Rows on both sides of a threshold, by their label; they follow from three of the shares."""
    if cut.selected is None or cut.precision is None or cut.npv is None:
        raise InvalidValueError("selected, precision and npv", "be shares", got="none")
    above = _whole(cut.selected.value, cut.counted)
    tp = _whole(cut.precision.value, above)
    tn = _whole(cut.npv.value, cut.counted - above)
    return Confusion(tp, above - tp, cut.counted - above - tn, tn)


def _whole(share: float, of: int) -> int:
    return 0 if math.isnan(share) else round(share * of)


def _check_target(cut: Cut, seen: Confusion[int], alpha: float) -> None:
    right, rows = seen.shares[cut.target]
    if cut.target in ("recall", "specificity"):
        passes = rows - right <= misses_allowed(rows, cut.level, alpha) - 1
    else:
        passes = rows > 0 and float(lower_limit(right, rows, alpha)) >= cut.level * (
            1.0 - _ROUNDING
        )
    if not passes:
        rule = f"be proved by its counts, {right:,} of {rows:,}"
        raise InvalidValueError(f"{cut.target} of {cut.level:g}", rule, got="too few")


def _check_groups(cut: Cut, parts: Mapping[str, Measured]) -> None:
    """With groups nothing is proved but the target."""
    derived = measured_in_groups(
        {name: parts[name].value for name in _SHARES}, cut.target, cut.level
    )
    for name, share in parts.items():
        _check_limits(name, share, derived[name], exact=True)


def _check_limits(name: str, share: Measured, best: Measured, *, exact: bool) -> None:
    """Raise an error for another share than that of the counts, and for limits that are other, or
    too narrow.
    """
    if not _same(share.value, best.value):
        raise InvalidValueError(
            f"value of {name}", f"be that of the counts, {best.value:g}", got=f"{share.value:g}"
        )
    same = _same(share.lower, best.lower) and _same(share.upper, best.upper)
    wide = share.lower <= best.lower + _ROUNDING and share.upper >= best.upper - _ROUNDING
    if not (same if exact else same or wide):
        rule = (
            f"be {'those' if exact else 'no better than those'} of the counts, {best.lower:g} and"
            f" {best.upper:g}"
        )
        raise InvalidValueError(
            f"limits of {name}", rule, got=f"{share.lower:g} and {share.upper:g}"
        )


def _same(one: float, other: float) -> bool:
    """Equal up to rounding; what is not finite reads as null, and so as unknown."""
    if not math.isfinite(one) or not math.isfinite(other):
        return not math.isfinite(one) and not math.isfinite(other)
    return abs(one - other) <= _ROUNDING * max(abs(one), abs(other), 1e-3)
