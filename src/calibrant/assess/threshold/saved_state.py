"""Saved thresholds: everything determined by the counts is derived again, and no target or limit is
better than they allow.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from calibrant.assess.threshold.candidates import Confusion, misses_allowed
from calibrant.assess.threshold.cut import TARGETS, Cut, Measured, Ratio
from calibrant.assess.threshold.proved_threshold import SCHEMA, Threshold
from calibrant.assess.threshold.shares import (
    alarms_per_hit,
    measured_anywhere,
    measured_at_fixed,
    measured_at_rank,
    measured_in_groups,
)
from calibrant.errors import InvalidValueError
from calibrant.limits.binomial import lower_limit
from calibrant.limits.error_budget import sidak_level
from calibrant.params.declared_state import Record, declared, read_entries, written
from calibrant.params.rules import OPEN_UNIT, TEXT, Choice, Integer, Number, error_budget
from calibrant.params.saved_state import check_schema
from calibrant.params.state_kinds import Label, Lists, Maybe, NumberOrNull, OneCount
from calibrant.text.sentences import shown

_SHARES = ("selected", "precision", "recall", "specificity", "npv")
_TESTS = 10  # five shares with limits on both sides
_ROUNDING = 1e-9
_UNIT = Number("a number from 0 to 1", 0.0, 1.0)
_POSITIVE = Number("a number >= 0", 0.0)
_MEASURED = Record(
    Measured, {"value": NumberOrNull(math.nan, _UNIT), "lower": _UNIT, "upper": _UNIT}
)
_RATIO = Record(
    Ratio,
    {
        "value": NumberOrNull(math.nan, _POSITIVE),
        "lower": NumberOrNull(math.nan, _POSITIVE),
        "upper": NumberOrNull(math.inf, _POSITIVE),
    },
)
_CUT = Record(
    Cut,
    {
        "segment": Maybe(Label()),
        "target": Choice(TARGETS),
        "level": OPEN_UNIT,
        "threshold": Maybe(Number()),
        "reason": Maybe(TEXT),
        "labels_needed": Maybe(Integer(1)),
        "counted": OneCount(),
        **dict.fromkeys(_SHARES, Maybe(_MEASURED)),
        "false_alarms": Maybe(_RATIO),
    },
)
_ENTRIES = declared(
    {
        "cuts": Lists(_CUT, least=1),
        "confidence_level": OPEN_UNIT,
        "method": Choice(("look", "start", "ranks")),
        "n_rows": OneCount(),
        "n_drawn": OneCount(),
        "positive_label": Label(),
        "assumptions": Lists(TEXT, least=1),
        "max_group_size": Maybe(Integer(1)),
        "above_cap": Maybe(_UNIT),
        "seed": Integer(0),
    }
)


def saved_threshold(found: Threshold) -> dict[str, Any]:
    """What a model file stores about thresholds."""
    said = replace(found, read=())
    return {"schema": SCHEMA, **written(_ENTRIES, said), "sentence": said.sentence}


def threshold_from_state(state: Mapping[str, Any]) -> Threshold:
    """Read what `Threshold.to_dict` wrote; raise an error for what `threshold` cannot have found."""
    check_schema(state, SCHEMA, ())
    TEXT.check("sentence", state.get("sentence", ""))
    read: dict[str, Any] = read_entries(_ENTRIES, state, {})
    found = Threshold(**read, read=("counts", "thresholds"))
    if found.n_drawn > found.n_rows:
        rule = f"be at most n_rows, {found.n_rows:,}"
        raise InvalidValueError("n_drawn", rule, got=f"{found.n_drawn:,}")
    if found.above_cap is not None and found.max_group_size is None:
        raise InvalidValueError("above_cap", "be null without groups", got=f"{found.above_cap:g}")
    for cut in found.cuts:
        _check_cut(cut)
    _check_together(found.cuts, found.n_rows - found.n_drawn)
    for cut in found.cuts:
        if cut.threshold is not None:
            _check_counts(cut, found)
    return found


def _check_cut(cut: Cut) -> None:
    """Require a threshold with its shares, or the reason why there is none."""
    if (cut.threshold is None) == (cut.reason is None):
        rule = "be given, or else the reason why there is none"
        raise InvalidValueError("threshold", rule, got=shown(cut.threshold))
    needed = cut.labels_needed
    if needed is not None and (cut.threshold is not None or needed <= cut.counted):
        most = f"the {cut.counted:,} that were counted"
        rule = f"be more than {most}, and null where a threshold is guaranteed"
        raise InvalidValueError("labels_needed", rule, got=f"{needed:,}")
    for name in (*_SHARES, "false_alarms"):
        share: Measured | None = getattr(cut, name)
        if (share is None) != (cut.threshold is None):
            rule = "be null if, and only if, no threshold is guaranteed"
            raise InvalidValueError(name, rule, got=shown(share))
        if share is not None and share.lower > share.upper:
            got = f"{share.lower:g} and {share.upper:g}"
            raise InvalidValueError(f"lower of {name}", "be at most upper", got=got)


def _check_together(cuts: tuple[Cut, ...], n_counted: int) -> None:
    """Require one level per target, in the same segments, and no more rows than there are."""
    targets = {cut.target: cut.level for cut in cuts}
    if len(targets) > 1 and set(targets) != {"precision", "npv"}:
        raise InvalidValueError(
            "cuts", "be of one target, or of precision and npv", got=", ".join(targets)
        )
    segments = list(dict.fromkeys(cut.segment for cut in cuts))
    wanted = [(segment, target, level) for segment in segments for target, level in targets.items()]
    if [(cut.segment, cut.target, cut.level) for cut in cuts] != wanted:
        raise InvalidValueError(
            "cuts", "have one level of each target in each segment, in order", got="other values"
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
    sides of the threshold; with groups, only the target is guaranteed.

    How many thresholds were tested is not known: with `method="look"`, limits may be wider than
    those of a single one, but not narrower.
    """
    parts = {name: getattr(cut, name) for name in (*_SHARES, "false_alarms")}
    asked = (cut.target, cut.level)
    of_class = cut.target in ("recall", "specificity")
    look = found.max_group_size is None and found.n_drawn > 0 and not of_class
    if found.max_group_size is not None:
        best = measured_in_groups({name: parts[name].value for name in _SHARES}, *asked)
    else:
        seen = _confusion(cut)
        n_segments = len({each.segment for each in found.cuts})
        n_targets = len({each.target for each in found.cuts})
        alpha = sidak_level(error_budget(found.confidence_level), n_segments) / n_targets
        _check_target(cut, seen, alpha)
        if look:
            best = measured_at_fixed(seen, *asked, alpha / _TESTS)
        else:
            best = (measured_at_rank if of_class else measured_anywhere)(seen, *asked, alpha)
    best["false_alarms"] = alarms_per_hit(parts["precision"])
    for name, share in parts.items():
        _check_limits(name, share, best[name], exact=not look or name == "false_alarms")


def _confusion(cut: Cut) -> Confusion[int]:
    """Rows on both sides of a threshold, by label; they follow from three of the shares."""
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
        rule = f"be guaranteed by its counts, {right:,} of {rows:,}"
        raise InvalidValueError(f"{cut.target} of {cut.level:g}", rule, got="too few")


def _check_limits(name: str, share: Measured, best: Measured, *, exact: bool) -> None:
    """Raise an error for a share other than that of the counts, and for limits that differ or are
    too narrow.
    """
    if not _is_same(share.value, best.value):
        raise InvalidValueError(
            f"value of {name}", f"be that of the counts, {best.value:g}", got=f"{share.value:g}"
        )
    same = _is_same(share.lower, best.lower) and _is_same(share.upper, best.upper)
    wide = share.lower <= best.lower + _ROUNDING and share.upper >= best.upper - _ROUNDING
    if not (same if exact else same or wide):
        rule = (
            f"be {'those' if exact else 'no better than those'} of the counts, {best.lower:g} and"
            f" {best.upper:g}"
        )
        raise InvalidValueError(
            f"limits of {name}", rule, got=f"{share.lower:g} and {share.upper:g}"
        )


def _is_same(one: float, other: float) -> bool:
    """Equal up to rounding; values that are not finite are read as null, and so as unknown."""
    both_unknown = not math.isfinite(one) and not math.isfinite(other)
    return both_unknown or math.isclose(one, other, rel_tol=_ROUNDING, abs_tol=_ROUNDING * 1e-3)
