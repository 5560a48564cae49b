"""A fitted calibrator as an ONNX model: a tree of doubles finds the region, and a gather its
values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import needed
from calibrant._typing import BoolArray, FloatArray, IntArray
from calibrant.answers.table import Exportable, export_table
from calibrant.calibrators.table import Table
from calibrant.cells.bins import OTHER
from calibrant.cells.lines import MOST_LOGIT, Lines
from calibrant.errors import InvalidValueError
from calibrant.params.rules import Choice
from calibrant.sample.sql.search import balanced

if TYPE_CHECKING:
    from onnx import ModelProto

Attributes: TypeAlias = dict[str, Any]
"""Attributes of an operator, as `onnx.helper.make_node` takes them."""

_Node: TypeAlias = tuple[int, bool]  # its index, and whether it is a leaf

# the first version with trees of doubles; older ones round cuts to 32 bits
_OPSET = 18
_ML_OPSET = 5
_IR_VERSION = 10
_LESS_THAN = 1  # one of the operator's branch modes
# the two features of the tree
_SCORE = 0
_SEGMENT = 1


def to_onnx(
    calibrator: Exportable,
    *,
    outputs: Sequence[str] | Mapping[str, str] | None = None,
    coverage: float = 0.95,
    input_type: str = "double",
) -> ModelProto:
    """Return a fitted calibrator as an ONNX model; `model.SerializeToString()` gives its bytes.

    Guarantee: every output equals what `predict`, `predict_interval` and `predict_set` give, bit
    for bit; for curves with exp, the relative difference is at most 1e-12. For a score or segment
    that they do not accept, the values are NaN, the region is -1 and the set is empty. Assumptions:
    a runtime that keeps subnormal numbers, as onnxruntime does by default.

    Parameters
    ----------
    calibrator : calibrator of scores, Threshold or MonotoneBand
        A fitted calibrator whose prediction is a step function of the score, or a threshold; see
        `export_table`.
    outputs : sequence or mapping, optional
        Which of "calibrated", "lower", "upper", "region" and "set"; a mapping gives them names. All
        but the region by default.
    coverage : float, default=0.95
        Coverage of the sets.
    input_type : {"double", "float"}, default="double"
        Type of the scores. 32-bit scores are first widened to doubles, which does not change their
        values.

    Returns
    -------
    onnx.ModelProto
        Inputs: "score", of shape (n,), and for a calibrator with segments "segment", of shape (n,),
        as text, 64-bit whole numbers (also for bools) or doubles. Outputs: doubles of shape (n,),
        except "region", which has 64-bit whole numbers, and "set", which has bools of shape (n, 2)
        whose columns follow `classes_`, as in `predict_set`. The guarantee is in the model's
        metadata.

    Notes
    -----
    The region is found by the operator TreeEnsemble of ai.onnx.ml 5, with a balanced tree of "less
    than" in doubles. No comparison with NaN is true, so NaN ends in the leaf for scores above the
    range.

    Examples
    --------
    >>> from calibrant import BinningCalibrator, Partition, Tally
    >>> bins = Partition.fixed_width(2)
    >>> tally = Tally.from_counts([1000, 1000], [100, 800], partition=bins)
    >>> model = to_onnx(BinningCalibrator.from_tally(bins, tally))
    >>> [output.name for output in model.graph.output]
    ['calibrated', 'lower', 'upper', 'set']
    """
    needed("onnx", "onnx", "ONNX models are written")
    from onnx import TensorProto, helper

    Choice(("double", "float")).check("input_type", input_type)
    table = export_table(calibrator, coverage=coverage)
    chosen = table.choose(outputs)
    _check_names(chosen.values())
    number = TensorProto.DOUBLE if input_type == "double" else TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info("score", number, ["n"])]
    graph = _Graph()
    axis = graph.constant(np.array([1]))
    score = graph.add("Cast", "score", to=TensorProto.DOUBLE)
    features = graph.add("Unsqueeze", score, axis)
    if table.is_segmented:
        segment, place = _segment_input(table, graph, axis)
        inputs.append(segment)
        features = graph.add("Concat", features, place, axis=1)
    leaf = graph.add("TreeEnsemble", features, domain="ai.onnx.ml", **_Tree(table).attributes())
    region = graph.add("Cast", graph.add("Squeeze", leaf, axis), to=TensorProto.INT64)
    curve = None if table.lines is None else _curve(table, table.lines, graph, score, region)
    results = []
    for output, name in chosen.items():
        kind, shape = _TYPES.get(output, ("DOUBLE", ["n"]))
        results.append(helper.make_tensor_value_info(name, getattr(TensorProto, kind), shape))
        found = _answer(table, output, graph, region, curve)
        graph.add("Identity", found, name=name)
    return _model(table, graph, inputs, results)


def _segment_input(table: Table, graph: _Graph, axis: str) -> tuple[Any, str]:
    """The segment input, and the index of each segment as a column of numbers."""
    from onnx import TensorProto, helper, numpy_helper

    named = table.segments or [OTHER.value]  # text if no segment is named
    kind = {str: object, float: np.float64}.get(type(named[0]), np.int64)
    # NaN is a missing segment, which the bins for all others do not accept
    nan = [np.nan] if kind is np.float64 and table.takes_others else []
    segments = np.array([*named, *nan], dtype=kind)
    numbers = np.arange(len(segments))
    numbers[len(named) :] = -1
    rest = len(table.segments) if table.takes_others else -1
    place = graph.add(
        "LabelEncoder",
        "segment",
        domain="ai.onnx.ml",
        keys_tensor=numpy_helper.from_array(segments, "segments"),
        values_tensor=numpy_helper.from_array(numbers, "numbers"),
        default_tensor=numpy_helper.from_array(np.array([rest]), "unknown"),
    )
    number = graph.add("Cast", place, to=TensorProto.DOUBLE)
    kind_of_input = helper.np_dtype_to_tensor_dtype(segments.dtype)
    given = helper.make_tensor_value_info("segment", kind_of_input, ["n"])
    return given, graph.add("Unsqueeze", number, axis)


def _answer(table: Table, output: str, graph: _Graph, region: str, curve: str | None) -> str:
    """The node of an output: the curve, a column of the table, or a limit around the curve."""
    if curve is not None and output == "calibrated":
        return curve
    found = graph.look_up(_column(table, output), region)
    if curve is None or output not in ("lower", "upper"):
        return found
    limit = graph.clipped(graph.add("Add", curve, found), 0.0, 1.0)
    return graph.add("Where", graph.add("IsNaN", found), found, limit)


def _model(table: Table, graph: _Graph, inputs: list[Any], results: list[Any]) -> ModelProto:
    """The checked model, with its description."""
    from onnx import checker, helper

    notes = " ".join(table.notes)
    model = helper.make_model(
        helper.make_graph(
            graph.nodes, "calibrant", inputs, results, graph.constants, doc_string=notes
        ),
        producer_name="calibrant",
        ir_version=_IR_VERSION,
        opset_imports=[
            helper.make_opsetid("", _OPSET),
            helper.make_opsetid("ai.onnx.ml", _ML_OPSET),
        ],
    )
    about = {
        "written_by": table.notes[0],
        "guarantee": table.notes[1],
        "classes": json.dumps(list(table.classes)),
    }
    helper.set_model_props(model, {**about, "coverage": repr(table.coverage)})
    checker.check_model(model)
    return model


def _check_names(names: Iterable[str]) -> None:
    """Raise an error for outputs with the name of an input or of an inner node."""
    for name in names:
        if name in ("score", "segment") or name.startswith("_"):
            rule = "have names other than those of the inputs, without a leading underscore"
            raise InvalidValueError("outputs", rule, got=repr(name))


class _Graph:
    """Nodes and constants of a model.

    Every value has a name; it begins with an underscore unless given.
    """

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, operator: str, *inputs: str, name: str | None = None, **settings: Any) -> str:
        """Add an operator and return the name of its result."""
        from onnx import helper

        result = name or f"_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [result], **settings))
        return result

    def constant(self, values: Any) -> str:
        """Add a constant and return its name."""
        from onnx import numpy_helper

        self.constants.append(
            numpy_helper.from_array(np.asarray(values), f"_constant_{len(self.constants)}")
        )
        return str(self.constants[-1].name)

    def look_up(self, values: NDArray[Any], region: str) -> str:
        """The table entry of each region."""
        return self.add("Gather", self.constant(values), region, axis=0)

    def clipped(self, value: str, low: float, high: float) -> str:
        """A value clipped to two limits."""
        return self.add("Max", self.add("Min", value, self.constant(high)), self.constant(low))


def _curve(table: Table, lines: Lines, graph: _Graph, score: str, region: str) -> str:
    """The nodes of a curve: a line in each region, possibly on the logit scale.

    NaN outside all regions.
    """
    base = graph.look_up(np.append(table.calibrated, np.nan), region)
    if lines.beta is not None:
        p = graph.clipped(score, *lines.ends)
        logs = [
            graph.add("Log", p),
            graph.add("Log", graph.add("Sub", graph.constant(1.0), p)),
        ]
        first, second = (
            graph.add("Mul", graph.constant(factor), log)
            for factor, log in zip(lines.beta, logs, strict=True)
        )
        z = graph.add("Add", graph.add("Sub", first, second), base)
    else:
        start, slope = (
            graph.look_up(np.append(part, np.nan), region) for part in (lines.start, lines.slope)
        )
        z = graph.add("Add", base, graph.add("Mul", slope, graph.add("Sub", score, start)))
    if not lines.logit:
        return z
    one = graph.constant(1.0)
    power = graph.add("Exp", graph.add("Neg", graph.clipped(z, -MOST_LOGIT, MOST_LOGIT)))
    return graph.add(
        "Where",
        graph.add("IsNaN", base),
        base,
        graph.add("Div", one, graph.add("Add", one, power)),
    )


_TYPES: dict[str, tuple[str, list[str | int]]] = {
    "region": ("INT64", ["n"]),
    "set": ("BOOL", ["n", 2]),
}
"""Type and shape of outputs that are not doubles of shape (n,)."""


class _Tree:
    """Nodes and leaves of the search for a region, as arrays for TreeEnsemble."""

    def __init__(self, table: Table) -> None:
        self._nodes: list[tuple[int, float, int, bool, int, bool]] = []
        self._leaves: list[int] = []
        nowhere = self._leaf(-1)
        fork = self._fork(_SCORE)
        parts = []
        for steps in table.steps:
            cuts, regions = steps.runs(range(table.calibrated.size))
            inside = balanced(cuts, [self._leaf(region) for region in regions], fork)
            below_high = fork(math.nextafter(steps.high, math.inf), inside, nowhere)
            parts.append(fork(steps.low, nowhere, below_high))
        root = parts[0]
        if table.is_segmented:  # segments are numbered from 0, the rest last; unknown ones are -1
            root = balanced(
                [float(place) for place in range(len(parts))],
                [nowhere, *parts],
                self._fork(_SEGMENT),
            )
        self._root = root[0]

    def _leaf(self, region: int) -> _Node:
        self._leaves.append(region)
        return len(self._leaves) - 1, True

    def _fork(self, feature: int) -> Callable[[float, _Node, _Node], _Node]:
        def fork(cut: float, below: _Node, above: _Node) -> _Node:
            self._nodes.append((feature, cut, *below, *above))
            return len(self._nodes) - 1, False

        return fork

    def attributes(self) -> Attributes:
        from onnx import numpy_helper

        features, cuts, below, below_is_leaf, above, above_is_leaf = zip(*self._nodes, strict=True)
        return {
            "n_targets": 1,
            "tree_roots": [self._root],
            "nodes_featureids": list(features),
            "nodes_splits": numpy_helper.from_array(np.array(cuts, dtype=np.float64), "splits"),
            "nodes_modes": numpy_helper.from_array(
                np.full(len(cuts), _LESS_THAN, dtype=np.uint8), "modes"
            ),
            "nodes_truenodeids": list(below),
            "nodes_trueleafs": list(map(int, below_is_leaf)),
            "nodes_falsenodeids": list(above),
            "nodes_falseleafs": list(map(int, above_is_leaf)),
            "leaf_targetids": [0] * len(self._leaves),
            "leaf_weights": numpy_helper.from_array(
                np.array(self._leaves, dtype=np.float64), "weights"
            ),
        }


def _column(table: Table, output: str) -> FloatArray | BoolArray | IntArray:
    """An output for each region; the last entry, which region -1 points to, is for a score in no
    region.
    """
    if output == "set" and table.sets is not None:
        return np.vstack([table.sets, [False, False]])
    if output == "region":
        return np.array([*table.region_numbers, -1], dtype=np.int64)
    return np.append(table.values(output), np.nan)
