"""A fitted calibrator as Python source that needs nothing but Python."""

import keyword
import math
import pprint
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.calibrators.base import ScoreCalibrator
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.export._dialects import comment
from calibrant.export.table import ExportTable, export_table

_FUNCTION = '''\
def {name}(score{parameter}):
    """Return {keys} of one score, as a dict.

    All are None where the score is missing, not finite, no number or outside the range{unknown}.
    """
    if score is None or isinstance(score, (str, bytes, bytearray)):
        return dict.fromkeys(_OUTPUTS)
    try:
        value = float(score)
{find}    except (TypeError, ValueError, OverflowError, KeyError):
        return dict.fromkeys(_OUTPUTS)
    if not low <= value <= high or (hasattr(score, "__index__") and abs(int(score)) > 2**53):
        return dict.fromkeys(_OUTPUTS)
    region = regions[bisect_right(cuts, value)]
    if region < 0:
        return dict.fromkeys(_OUTPUTS)
    return dict(zip(_OUTPUTS, _ROWS[region]))
'''


def to_python(
    calibrator: ScoreCalibrator,
    *,
    name: str = "calibrate",
    outputs: Sequence[str] | Mapping[str, str] | None = None,
    coverage: float = 0.95,
) -> str:
    """Return a fitted calibrator as the source of a Python module that imports nothing but `bisect`.

    Claimed: the function in it gives what `predict`, `predict_interval` and `predict_set` give, bit for bit; and None
    for every output where they refuse the score or the segment.

    Parameters
    ----------
    calibrator : calibrator of scores
        A fitted calibrator whose prediction is a step function of the score; see `export_table`.
    name : str, default="calibrate"
        Name of the function. It takes one score, and the segment where the calibrator was fitted with segments, and
        returns a dict.
    outputs : sequence or mapping, optional
        Which of "calibrated", "lower", "upper", "region" and "set"; a mapping gives them names. All but the region
        by default. A set is a tuple of labels.
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
    ({'calibrated': 0.8, 'region': 1}, {'calibrated': None, 'region': None})
    """
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise InvalidValueError(f"name must be a name of a function, without a leading underscore; got {name!r}")
    if name in {
        "bisect_right",
        "dict",
        "zip",
        "float",
        "isinstance",
        "hasattr",
        "abs",
        "int",
        "str",
        "bytes",
        "bytearray",
    }:
        raise InvalidValueError(f"name must be none of those that the function itself uses; got {name!r}")
    table = export_table(calibrator, coverage=coverage)
    chosen = table.choose(outputs)
    lines = [comment(line) for note in table.notes for line in textwrap.wrap(note, 110)]
    by_segment = {s.segment: (s.low, s.high, s.cuts.tolist(), s.regions.tolist()) for s in table.steps}
    columns = [_values(table, output) for output in chosen]
    constants: dict[str, Any] = {
        "_OUTPUTS": tuple(chosen.values()),
        "_ROWS": list(zip(*columns, strict=True)),
        "_STEPS": by_segment if table.is_segmented else by_segment[None],
    }
    place = "_STEPS[segment]" if table.is_segmented else "_STEPS"
    function = _FUNCTION.format(
        name=name,
        parameter=", segment" if table.is_segmented else "",
        keys=", ".join(chosen),
        unknown=", or the segment is not known" if table.is_segmented else "",
        find=f"        low, high, cuts, regions = {place}\n",
    )
    header = "".join(f"# {line}\n" for line in lines)
    body = "\n".join(
        f"{key} = {pprint.pformat(value, width=118, compact=True, sort_dicts=False)}"
        for key, value in constants.items()
    )
    return f"{header}from bisect import bisect_right\n\n{body}\n\n\n{function}"


def _values(table: ExportTable, output: str) -> list[Any]:
    """An output in each region, as plain Python values."""
    if output == "region":
        return list(range(table.calibrated.size))
    if output == "set":
        if not all(type(label) in (str, int, bool) or math.isfinite(label) for label in table.classes):
            raise InvalidTypeError(
                f"outputs must be without 'set' for labels that are not text, finite numbers or bools; "
                f"got {table.classes!r}"
            )
        return table.set_members
    values: list[Any] = getattr(table, output).tolist()
    return values
