"""A fitted calibrator as Python source without dependencies."""

from __future__ import annotations

import keyword
import math
import pprint
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from calibrant.answers.table import Exportable, export_table
from calibrant.calibrators.subgroups.corrected import SMALLEST
from calibrant.calibrators.table import Label, Segment, Table
from calibrant.cells.bins import OTHER, Rest
from calibrant.cells.lines import MOST_LOGIT, Lines
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.sample.sql.dialects import comment
from calibrant.text.sentences import shown

_LIMITS = ("lower", "upper")
_USED = {
    "abs",
    "bisect_right",
    "bytearray",
    "bytes",
    "dict",
    "exp",
    "float",
    "hasattr",
    "int",
    "isinstance",
    "log",
    "log1p",
    "max",
    "min",
    "str",
    "zip",
}
_FUNCTION = '''\
def {name}(score{parameter}):
    """Return {keys} of one score, as a dict.

    All are None if the score is missing, not a finite number or outside the range{unknown}.
    """
    if score is None or isinstance(score, (str, bytes, bytearray)):
        return dict.fromkeys(_OUTPUTS)
    try:
        value = float(score)
        low, high, cuts, regions = {steps}
    except (TypeError, ValueError, OverflowError, KeyError):
        return dict.fromkeys(_OUTPUTS)
    if not low <= value <= high or (hasattr(score, "__index__") and abs(int(score)) > 2**53):
        return dict.fromkeys(_OUTPUTS)
    region = regions[bisect_right(cuts, value)]
    if region < 0:
        return dict.fromkeys(_OUTPUTS)
{result}
'''
_TABLE = "    return dict(zip(_OUTPUTS, _ROWS[region]))"
_LINE = """\
    start, base, slope, lower, upper, row = _ROWS[region]
    curve = {curve}
    found = {{"calibrated": curve, "lower": curve + lower, "upper": curve + upper, **row}}
    for name in ("lower", "upper"):
        found[name] = min(max(found[name], 0.0), 1.0)
    return {{name: found[output] for output, name in _CHOSEN}}"""
_STRAIGHT = "base + slope * (value - start)"
_BETA = "base + {a!r} * log(p) - {b!r} * log1p(-p)"
_LOGISTIC = "1.0 / (1.0 + exp(-min(max({z}, -{most}), {most})))"

_TREE_FUNCTION = '''\
def {name}(score, attributes):
    """Return the calibrated probability of one score, as a dict; attributes are a dict from names to values.

    It is None if the score is missing, not a finite number or out of range.
    """
    nothing = {{"calibrated": None}}
    if score is None or isinstance(score, (str, bytes, bytearray)):
        return nothing
    try:
        values = [{values}]
    except (TypeError, ValueError, OverflowError):
        return nothing
    if not all(value is not None and 0.0 <= value <= 1.0 for value in values):
        return nothing
    repaired = [_repaired(value, attributes, *repair) for value, repair in zip(values, _REPAIRS)]
    return {{"calibrated": sum(repaired) / len(repaired)}}


def _repaired(value, attributes, features, trees):
    value = min(max(value, {smallest!r}), 1.0 - {smallest!r})
    logit = log(value) - log1p(-value)
    bins = [_bin(feature, logit if not feature["name"] else attributes[feature["name"]]) for feature in features]
    total = logit
    for splits, values in trees:
        leaf = 0
        for number, (divided, feature, stay) in enumerate(splits, start=1):
            if leaf == divided and bins[feature] not in stay:
                leaf = number
        total += values[leaf]
    return 1.0 / (1.0 + exp(-min(max(total, -700.0), 700.0)))


def _bin(feature, value):
    missing = value is None or value != value
    if "edges" in feature:
        edges = feature["edges"]
        return len(edges) + 1 if missing else bisect_left(edges, float(value))
    values = feature["values"]
    known = [place for place, one in enumerate(values) if type(one) is type(value) and one == value]
    return known[0] if known else len(values)
'''  # noqa: E501


def to_python(
    calibrator: Exportable,
    *,
    name: str = "calibrate",
    outputs: Sequence[str] | Mapping[str, str] | None = None,
    coverage: float = 0.95,
) -> str:
    """Return a fitted calibrator as the source of a Python module that imports nothing but
    `bisect` and, for curves with exp, `math`.

    Guarantee: the function in it gives what `predict`, `predict_interval` and `predict_set` give,
    bit for bit; for curves with exp, the relative difference is at most 1e-12. For a score or
    segment that they do not accept, every output is None.

    Parameters
    ----------
    calibrator : calibrator of scores, Threshold or MonotoneBand
        A fitted calibrator whose prediction is a step function of the score, or a threshold; see
        `export_table`. Or a `SubgroupCalibrator`: the function then takes a score and a dict of
        attributes.
    name : str, default="calibrate"
        Name of the function. It takes one score, and the segment if the calibrator was fitted with
        segments, and returns a dict.
    outputs : sequence or mapping, optional
        Which of "calibrated", "lower", "upper", "region" and "set"; a mapping gives them names. All
        but the region by default. A set is a tuple of labels.
    coverage : float, default=0.95
        Coverage of the sets.

    Examples
    --------
    >>> from calibrant import BinningCalibrator, Partition, Tally
    >>> bins = Partition.fixed_width(2)
    >>> tally = Tally.from_counts([1000, 1000], [100, 800], partition=bins)
    >>> source = to_python(BinningCalibrator.from_tally(bins, tally), outputs=["calibrated", "region"])
    >>> namespace = {}
    >>> exec(source, namespace)
    >>> namespace["calibrate"](0.7), namespace["calibrate"](float("nan"))
    ({'calibrated': 0.7997002997002997, 'region': 1}, {'calibrated': None, 'region': None})
    """
    if (
        not isinstance(name, str)
        or not name.isidentifier()
        or keyword.iskeyword(name)
        or name.startswith("_")
    ):
        raise InvalidValueError(
            "name",
            "be a name of a function, without a leading underscore",
            got=shown(name),
        )
    if name in _USED:
        raise InvalidValueError(
            "name", "differ from the names that the function itself uses", got=repr(name)
        )
    calibrator = getattr(calibrator, "calibrator", calibrator)  # unwrap a model
    if hasattr(calibrator, "repairs_"):
        return _of_trees(calibrator, name, outputs)
    table = export_table(calibrator, coverage=coverage)
    chosen = table.choose(outputs)
    by_segment = {
        _key(s.segment): (s.low, s.high, s.cuts.tolist(), s.regions.tolist()) for s in table.steps
    }
    constants: dict[str, Any] = {
        "_OUTPUTS": tuple(chosen.values()),
        "_ROWS": list(zip(*(_values(table, output) for output in chosen), strict=True)),
        "_STEPS": by_segment if table.is_segmented else by_segment[None],
    }
    result = _TABLE
    imports = ""
    if table.lines is not None:
        constants["_ROWS"] = _curve_rows(table, table.lines, chosen)
        constants["_CHOSEN"] = tuple(chosen.items())
        result = _LINE.format(curve=_curve(table.lines))
        if table.lines.beta is not None:
            low, high = table.lines.ends
            result = f"    p = min(max(value, {low!r}), {high!r})\n{result}"
        imports = "from math import exp, log, log1p\n" if table.lines.logit else ""
    function = _FUNCTION.format(
        name=name,
        parameter=", segment" if table.is_segmented else "",
        keys=", ".join(chosen),
        unknown=", or the segment is not known" if table.is_segmented else "",
        steps=f"_STEPS[{_segment_text(table)}]" if table.is_segmented else "_STEPS",
        result=result,
    )
    return _module(table.notes, f"from bisect import bisect_right\n{imports}", constants, function)


def _module(
    notes: Iterable[str], imports: str, constants: Mapping[str, object], function: str
) -> str:
    """The source of a module: notes as comments, then constants, then the function."""
    header = "".join(f"# {comment(line)}\n" for note in notes for line in textwrap.wrap(note, 110))
    body = "\n".join(
        f"{key} = {pprint.pformat(value, width=118, compact=True, sort_dicts=False)}"
        for key, value in constants.items()
    )
    return f"{header}{imports}\n{body}\n\n\n{function}"


def _of_trees(calibrator: Any, name: str, outputs: object) -> str:
    """The module of a calibrator with trees over a score and attributes."""
    if outputs is not None:
        raise InvalidValueError(
            "outputs",
            "be None for a calibrator with trees, which has one",
            got=shown(outputs),
        )
    imports = "from bisect import bisect_left\nfrom math import exp, log, log1p\n"
    values = []
    repairs = []
    for number, repair in enumerate(calibrator.repairs_):
        value = "float(score)"
        if repair.base is not None:
            base = f"base_calibrate_{number}"
            # inside a function, since both bases have constants of the same names
            source = textwrap.indent(to_python(repair.base, name="calibrate"), "    ")
            imports += f"\n\ndef _base():\n{source}\n    return calibrate\n"
            imports += f"\n\n{base} = _base()\n"
            value = f'{base}(score)["calibrated"]'
        values.append(value)
        state = repair.correction.to_dict()
        trees = [(tree["splits"], tree["values"]) for tree in state["trees"]]
        repairs.append((state["features"], trees))
    function = _TREE_FUNCTION.format(name=name, values=", ".join(values), smallest=SMALLEST)
    return _module(calibrator.export_notes(), imports, {"_REPAIRS": repairs}, function)


def _key(segment: Segment | Rest | None) -> Segment | None:
    """Return the key of a segment in the module."""
    return segment.value if segment is Rest.OTHER else segment


def _segment_text(table: Table) -> str:
    """The key of a segment; None, which is not a key, if it is missing or has another type than in
    fit.
    """
    if not table.takes_others:
        return "segment"
    kinds = {isinstance(segment, str) for segment in table.segments}
    present = "segment is not None and segment == segment"
    kind = {
        True: "isinstance(segment, str)",
        False: f"{present} and not isinstance(segment, str)",
    }
    fits = kind[kinds.pop()] if kinds else present
    return f"segment if segment in _STEPS else {OTHER.value!r} if {fits} else None"


def _curve_rows(table: Table, lines: Lines, chosen: Mapping[str, str]) -> list[tuple[object, ...]]:
    """For each region the numbers of its line, the offsets of the limits, and its other outputs."""
    nothing = [0.0] * table.calibrated.size
    lower, upper = (
        nothing if not table.values(name).size else table.values(name).tolist() for name in _LIMITS
    )
    others = [output for output in chosen if output in ("region", "set")]
    columns = [_values(table, output) for output in others]
    rows = [dict(zip(others, row, strict=True)) for row in zip(*columns, strict=True)] or [
        {}
    ] * len(nothing)
    numbers = (part.tolist() for part in (lines.start, table.calibrated, lines.slope))
    return list(zip(*numbers, lower, upper, rows, strict=True))


def _curve(lines: Lines) -> str:
    """The value of a curve at a score."""
    z = _STRAIGHT
    if lines.beta is not None:
        z = _BETA.format(a=lines.beta[0], b=lines.beta[1])
    return _LOGISTIC.format(z=z, most=MOST_LOGIT) if lines.logit else z


def _values(table: Table, output: str) -> Sequence[float] | Sequence[tuple[Label, ...]]:
    """An output for each region, as plain Python values."""
    if output == "region":
        return table.region_numbers
    if output == "set":
        if any(
            isinstance(label, bytes) or label in (math.inf, -math.inf) for label in table.classes
        ):
            rule = "not ask for 'set', because the labels are not text, finite numbers or bools"
            raise InvalidTypeError("outputs", rule, got=shown(table.classes))
        return table.set_members
    values: list[float] = table.values(output).tolist()
    return values
