"""A fitted calibrator as Python source that needs nothing but Python."""

import keyword
import math
import pprint
import textwrap
from collections.abc import Mapping, Sequence

from calibrant._input import shown
from calibrant._sql.dialects import comment
from calibrant.calibrators.base import ScoreCalibrator
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.export.table import ExportTable, Label, export_table

_USED = {"abs", "bisect_right", "bytearray", "bytes", "dict", "float", "hasattr", "int", "isinstance", "str", "zip"}
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

    Claimed: the function in it gives what `predict`, `predict_interval` and `predict_set` give, bit for bit. For a
    score or segment that they do not accept, every output is None.

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
        raise InvalidValueError("name", "be a name of a function, without a leading underscore", got=shown(name))
    if name in _USED:
        raise InvalidValueError("name", "differ from the names that the function itself uses", got=repr(name))
    table = export_table(calibrator, coverage=coverage)
    chosen = table.choose(outputs)
    by_segment = {s.segment: (s.low, s.high, s.cuts.tolist(), s.regions.tolist()) for s in table.steps}
    constants = {
        "_OUTPUTS": tuple(chosen.values()),
        "_ROWS": list(zip(*(_values(table, output) for output in chosen), strict=True)),
        "_STEPS": by_segment if table.is_segmented else by_segment[None],
    }
    function = _FUNCTION.format(
        name=name,
        parameter=", segment" if table.is_segmented else "",
        keys=", ".join(chosen),
        unknown=", or the segment is not known" if table.is_segmented else "",
        steps="_STEPS[segment]" if table.is_segmented else "_STEPS",
    )
    header = "".join(f"# {comment(line)}\n" for note in table.notes for line in textwrap.wrap(note, 110))
    body = "\n".join(
        f"{key} = {pprint.pformat(value, width=118, compact=True, sort_dicts=False)}"
        for key, value in constants.items()
    )
    return f"{header}from bisect import bisect_right\n\n{body}\n\n\n{function}"


def _values(table: ExportTable, output: str) -> Sequence[float] | Sequence[tuple[Label, ...]]:
    """An output in each region, as plain Python values."""
    if output == "region":
        return range(table.calibrated.size)
    if output == "set":
        if any(isinstance(label, bytes) or label in (math.inf, -math.inf) for label in table.classes):
            rule = "not ask for 'set', because the labels are not text, finite numbers or bools"
            raise InvalidTypeError("outputs", rule, got=shown(table.classes))
        return table.set_members
    values: list[float] = table.values(output).tolist()
    return values
