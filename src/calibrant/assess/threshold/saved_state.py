"""Saved thresholds: counts, from which targets and limits are derived again."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from calibrant.assess.threshold.candidates import misses_allowed
from calibrant.assess.threshold.cut import (
    PARTS,
    TARGETS,
    Confusion,
    Cut,
    measured,
    measured_in_groups,
)
from calibrant.assess.threshold.proved_threshold import SCHEMA, Threshold
from calibrant.errors import InvalidValueError
from calibrant.limits.binomial import lower_limit
from calibrant.limits.error_budget import sidak_level
from calibrant.params.declared_state import Record, declared, read_entries, written
from calibrant.params.rules import OPEN_UNIT, TEXT, Choice, Integer, Number, error_budget
from calibrant.params.saved_state import check_schema
from calibrant.params.state_kinds import Label, Lists, Maybe, NumberOrNull, OneCount
from calibrant.text.sentences import shown

_ROUNDING = 1e-9
_UNIT = Number("a number from 0 to 1", 0.0, 1.0)
_CUT = Record(
    dict,
    {
        "segment": Maybe(Label()),
        "target": Choice(TARGETS),
        "level": OPEN_UNIT,
        "threshold": Maybe(Number()),
        "reason": Maybe(TEXT),
        "labels_needed": Maybe(Integer(1)),
        "counted": OneCount(),
        "seen": Maybe(Record(Confusion, dict.fromkeys(("tp", "fp", "fn", "tn"), OneCount()))),
        "n_tried": OneCount(),
        "unlabelled": Maybe(Lists(OneCount(), size=2)),
        "shares": Maybe(Lists(NumberOrNull(math.nan, _UNIT), size=len(PARTS))),
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
    cuts: list[dict[str, Any]] = read["cuts"]
    segments = list(dict.fromkeys(cut["segment"] for cut in cuts))
    targets = {cut["target"]: cut["level"] for cut in cuts}
    if len(targets) > 1 and set(targets) != {"precision", "npv"}:
        rule = "be of one target, or of precision and npv"
        raise InvalidValueError("cuts", rule, got=", ".join(targets))
    each = [(segment, *asked) for segment in segments for asked in targets.items()]
    if [(cut["segment"], cut["target"], cut["level"]) for cut in cuts] != each:
        rule = "have one level of each target in each segment, in order"
        raise InvalidValueError("cuts", rule, got="other values")
    if None in segments and len(segments) > 1:
        rule = "be null for one threshold of all rows only"
        raise InvalidValueError("segment", rule, got=shown(segments))
    counted = sum(cut["counted"] for cut in cuts) // len(targets)
    if counted + read["n_drawn"] > read["n_rows"]:
        rule = f"be at least the {counted:,} counted and {read['n_drawn']:,} drawn rows"
        raise InvalidValueError("n_rows", rule, got=f"{read['n_rows']:,}")
    alpha = error_budget(read["confidence_level"])
    alpha = sidak_level(alpha, len(segments)) / len(targets)
    read["cuts"] = tuple(_cut(alpha, **cut) for cut in cuts)
    return Threshold(**read, read=("counts", "thresholds"))


def _cut(
    alpha: float, seen: Confusion[int] | None, shares: tuple[float, ...] | None, **read: Any
) -> Cut:
    """A threshold with the limits that follow from its counts, or the reason why there is none."""
    found = Cut(seen=seen, **read)
    counts = [given for given in (seen, shares, found.reason) if given is not None]
    if len(counts) != 1 or (found.threshold is None) != (found.reason is not None):
        rule = "be given with its counts, or else the reason why there is none"
        raise InvalidValueError("threshold", rule, got=shown(found.threshold))
    asked = found.target, found.level
    parts: dict[str, Any] = {}
    if shares is not None:
        parts |= measured_in_groups(dict(zip(PARTS, shares, strict=True)), *asked)
        return replace(found, **parts)
    if seen is None:
        return found
    if seen.n != found.counted:
        raise InvalidValueError("seen", f"add up to {found.counted:,}", got=f"{seen.n:,}")
    right, rows = seen.shares[found.target]
    if found.target in ("recall", "specificity"):
        passes = rows - right < misses_allowed(rows, found.level, alpha)
    else:
        least = found.level * (1.0 - _ROUNDING)
        passes = rows > 0 and float(lower_limit(right, rows, alpha)) >= least
    if not passes:
        rule = f"be guaranteed by its counts, {right:,} of {rows:,}"
        raise InvalidValueError(f"{found.target} of {found.level:g}", rule, got="too few")
    if found.unlabelled is not None and found.unlabelled[0] > found.unlabelled[1]:
        raise InvalidValueError("unlabelled", "select some of the rows", got=f"{found.unlabelled}")
    parts |= measured(seen, *asked, alpha, found.n_tried, found.unlabelled)
    return replace(found, **parts)
