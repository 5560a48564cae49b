"""A calibrator with trees over a score and attributes, as Python source without dependencies."""

import pprint
import textwrap
from typing import Any, Protocol

from calibrant.sample.sql.dialects import comment

_FUNCTION = '''\
def {name}(score, attributes):
    """Return the calibrated probability of one score, as a dict; attributes are a dict from names to values.

    It is None if the score is missing, not a finite number or out of range.
    """
    nothing = {{"calibrated": None}}
    if score is None or isinstance(score, (str, bytes, bytearray)):
        return nothing
    try:
        value = {value}
    except (TypeError, ValueError, OverflowError):
        return nothing
    if value is None or not 0.0 <= value <= 1.0:
        return nothing
    value = min(max(value, {smallest!r}), 1.0 - {smallest!r})
    logit = log(value) - log1p(-value)
    bins = [_bin(feature, logit if not feature["name"] else attributes[feature["name"]]) for feature in _FEATURES]
    total = logit
    for splits, values in _TREES:
        leaf = 0
        for number, (divided, feature, stay) in enumerate(splits, start=1):
            if leaf == divided and bins[feature] not in stay:
                leaf = number
        total += values[leaf]
    return {{"calibrated": 1.0 / (1.0 + exp(-min(max(total, -700.0), 700.0)))}}


def _bin(feature, value):
    missing = value is None or value != value
    if "edges" in feature:
        edges = feature["edges"]
        return len(edges) + 1 if missing else bisect_left(edges, float(value))
    values = feature["values"]
    known = [place for place, one in enumerate(values) if type(one) is type(value) and one == value]
    return known[0] if known else len(values)
'''  # noqa: E501


class Trees(Protocol):
    """The interface of a calibrator with trees: a base, trees as plain values, and texts about it."""

    base: Any
    state: dict[str, Any]
    notes: tuple[str, ...]
    smallest: float


def trees_source(trees: Trees, name: str, base_source: str | None) -> str:
    """The module's source: the source of the base, if there is one, then features, trees and the
    function.
    """
    constants = {
        "_FEATURES": trees.state["features"],
        "_TREES": [(tree["splits"], tree["values"]) for tree in trees.state["trees"]],
    }
    body = "\n".join(
        f"{key} = {pprint.pformat(value, width=118, compact=True, sort_dicts=False)}"
        for key, value in constants.items()
    )
    header = "".join(
        f"# {comment(line)}\n" for note in trees.notes for line in textwrap.wrap(note, 110)
    )
    value = "float(score)" if base_source is None else 'base_calibrate(score)["calibrated"]'
    function = _FUNCTION.format(name=name, value=value, smallest=trees.smallest)
    imports = "from bisect import bisect_left\nfrom math import exp, log, log1p\n"
    before = "" if base_source is None else f"{base_source}\n\n"
    return f"{header}{imports}\n{before}{body}\n\n\n{function}"
