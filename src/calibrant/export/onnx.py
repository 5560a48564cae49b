"""A fitted calibrator as an ONNX model: a tree of doubles finds the region, a gather its values."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import needed
from calibrant._params import Choice
from calibrant._sql.tree import balanced
from calibrant._typing import BoolArray, FloatArray, IntArray
from calibrant.calibrators.curve import SMALLEST_PROBABILITY
from calibrant.errors import InvalidValueError
from calibrant.export.table import MOST_LOGIT, Exportable, ExportTable, Lines, export_table
from calibrant.partition.bins import OTHER

if TYPE_CHECKING:
    from onnx import ModelProto

Attributes: TypeAlias = dict[str, Any]
"""Settings of an operator, as `onnx.helper.make_node` takes them."""

_Node: TypeAlias = tuple[int, bool]  # its number, and whether it is a leaf

_OPSET, _ML_OPSET, _IR_VERSION = 18, 5, 10  # the first with trees of doubles; older ones round cuts to 32 bits
_LESS_THAN = 1  # of the operator's branch modes
_SCORE, _SEGMENT = 0, 1  # the two features of the tree


def to_onnx(
    calibrator: Exportable,
    *,
    outputs: Sequence[str] | Mapping[str, str] | None = None,
    coverage: float = 0.95,
    input_type: str = "double",
) -> "ModelProto":
    """Return a fitted calibrator as an ONNX model; `model.SerializeToString()` gives its bytes.

    Claimed: every output equals what `predict`, `predict_interval` and `predict_set` give, bit for bit. For a score or
    segment that they do not accept, the values are NaN, the region is -1 and the set is empty. Assumed: a runtime that
    keeps subnormal numbers, as onnxruntime does by default.

    Parameters
    ----------
    calibrator : calibrator of scores, Threshold or MonotoneBand
        A fitted calibrator whose prediction is a step function of the score, or a threshold; see `export_table`.
    outputs : sequence or mapping, optional
        Which of "calibrated", "lower", "upper", "region" and "set"; a mapping gives them names. All but the region
        by default.
    coverage : float, default=0.95
        Coverage of the sets.
    input_type : {"double", "float"}, default="double"
        Type of the scores. Those of 32 bits are widened to doubles first, which changes none of them.

    Returns
    -------
    onnx.ModelProto
        Inputs: "score", of shape (n,), and for a calibrator with segments "segment", of shape (n,), of text, 64-bit
        whole numbers (also for bools) or doubles. Outputs of shape (n,), doubles, but for "region", whole numbers of
        64 bits, and "set", bools of shape (n, 2) whose columns follow `classes_`, as in `predict_set`. The guarantee
        is in the model's metadata.

    Notes
    -----
    The region is found by the operator TreeEnsemble of ai.onnx.ml 5, with a balanced tree of "less than" in doubles.
    No comparison with NaN is true, so NaN ends in the leaf for scores above the range.

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
    from onnx import TensorProto, checker, helper, numpy_helper

    Choice(("double", "float")).check("input_type", input_type)
    table = export_table(calibrator, coverage=coverage)
    chosen = table.choose(outputs)
    for name in chosen.values():
        if name in ("score", "segment") or name.startswith("_"):
            rule = "have names other than those of the inputs, without a leading underscore"
            raise InvalidValueError("outputs", rule, got=repr(name))
    number = TensorProto.DOUBLE if input_type == "double" else TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info("score", number, ["n"])]
    constants = [numpy_helper.from_array(np.array([1], dtype=np.int64), "_axis")]
    nodes = [
        helper.make_node("Cast", ["score"], ["_double"], to=TensorProto.DOUBLE),
        helper.make_node("Unsqueeze", ["_double", "_axis"], ["_score"]),
    ]
    features = "_score"
    if table.is_segmented:
        segments = _segment_array(table)
        encoding = _encoding(table, segments)
        inputs.append(helper.make_tensor_value_info("segment", helper.np_dtype_to_tensor_dtype(segments.dtype), ["n"]))
        nodes += [
            helper.make_node("LabelEncoder", ["segment"], ["_number"], domain="ai.onnx.ml", **encoding),
            helper.make_node("Cast", ["_number"], ["_wide"], to=TensorProto.DOUBLE),
            helper.make_node("Unsqueeze", ["_wide", "_axis"], ["_segment"]),
            helper.make_node("Concat", ["_score", "_segment"], ["_features"], axis=1),
        ]
        features = "_features"
    nodes += [
        helper.make_node("TreeEnsemble", [features], ["_leaf"], domain="ai.onnx.ml", **_Tree(table).attributes()),
        helper.make_node("Squeeze", ["_leaf", "_axis"], ["_flat"]),
        helper.make_node("Cast", ["_flat"], ["_region"], to=TensorProto.INT64),
    ]

    def constant(name: str, values: Any) -> str:
        constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def looked_up(values: NDArray[Any], name: str) -> str:
        nodes.append(helper.make_node("Gather", [constant(f"{name}_table", values), "_region"], [name], axis=0))
        return name

    curve = None if table.lines is None else _curve(table, table.lines, nodes, constant, looked_up)
    results = []
    for output, name in chosen.items():
        kind, shape = _TYPES.get(output, ("DOUBLE", ["n"]))
        results.append(helper.make_tensor_value_info(name, getattr(TensorProto, kind), shape))
        if curve is None or output in ("region", "set"):
            looked_up(_column(table, output), name)
        elif output == "calibrated":
            nodes.append(helper.make_node("Identity", [curve], [name]))
        else:
            looked_up(_column(table, output), f"_{output}")
            _limited(nodes, constant, curve, f"_{output}", name)
    graph = helper.make_graph(nodes, "calibrant", inputs, results, constants, doc_string=" ".join(table.notes))
    model = helper.make_model(
        graph,
        producer_name="calibrant",
        ir_version=_IR_VERSION,
        opset_imports=[helper.make_opsetid("", _OPSET), helper.make_opsetid("ai.onnx.ml", _ML_OPSET)],
    )
    about = {"written_by": table.notes[0], "guarantee": table.notes[1], "classes": json.dumps(list(table.classes))}
    helper.set_model_props(model, {**about, "coverage": repr(table.coverage)})
    checker.check_model(model)
    return model


def _curve(
    table: ExportTable,
    lines: Lines,
    nodes: list[Any],
    constant: Callable[[str, Any], str],
    looked_up: Callable[[NDArray[Any], str], str],
) -> str:
    """The nodes of a curve: a line in each region, perhaps on the logit scale; NaN outside all regions."""
    from onnx import helper

    def then(operator: str, *inputs: str) -> str:
        result = f"_curve_{len(nodes)}"
        nodes.append(helper.make_node(operator, list(inputs), [result]))
        return result

    base = looked_up(np.append(table.calibrated, np.nan), "_base")
    if lines.beta is not None:
        low, high = constant("_low", SMALLEST_PROBABILITY), constant("_high", 1.0 - SMALLEST_PROBABILITY)
        p = then("Max", then("Min", "_double", high), low)
        logs = [then("Log", p), then("Log", then("Sub", constant("_one", 1.0), p))]
        factors = [constant(f"_factor_{place}", factor) for place, factor in enumerate(lines.beta)]
        first, second = (then("Mul", factor, log) for factor, log in zip(factors, logs, strict=True))
        z = then("Add", then("Sub", first, second), base)
    else:
        start = looked_up(np.append(lines.start, np.nan), "_start")
        slope = looked_up(np.append(lines.slope, np.nan), "_slope")
        z = then("Add", base, then("Mul", slope, then("Sub", "_double", start)))
    if not lines.logit:
        return z
    low, high = constant("_least", -MOST_LOGIT), constant("_most", MOST_LOGIT)
    power = then("Exp", then("Neg", then("Max", then("Min", z, high), low)))
    whole = constant("_whole", 1.0)
    known = then("Div", whole, then("Add", whole, power))
    return then("Where", then("IsNaN", base), base, known)


def _limited(nodes: list[Any], constant: Callable[[str, Any], str], curve: str, offset: str, name: str) -> None:
    """The nodes of a limit: the curve and what is added to it, cut off at 0 and 1."""
    from onnx import helper

    low, high = constant(f"{offset}_low", 0.0), constant(f"{offset}_high", 1.0)
    steps = {"Add": [curve, offset], "Min": [f"{offset}_Add", high], "Max": [f"{offset}_Min", low]}
    nodes += [helper.make_node(operator, inputs, [f"{offset}_{operator}"]) for operator, inputs in steps.items()]
    nodes.append(helper.make_node("IsNaN", [offset], [f"{offset}_absent"]))
    nodes.append(helper.make_node("Where", [f"{offset}_absent", offset, f"{offset}_Max"], [name]))


_TYPES: dict[str, tuple[str, list[str | int]]] = {"region": ("INT64", ["n"]), "set": ("BOOL", ["n", 2])}
"""Type and shape of the outputs that are not doubles of shape (n,)."""


class _Tree:
    """Nodes and leaves of the search for a region, in the arrays that TreeEnsemble takes."""

    def __init__(self, table: ExportTable) -> None:
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
            root = balanced([float(place) for place in range(len(parts))], [nowhere, *parts], self._fork(_SEGMENT))
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
            "nodes_modes": numpy_helper.from_array(np.full(len(cuts), _LESS_THAN, dtype=np.uint8), "modes"),
            "nodes_truenodeids": list(below),
            "nodes_trueleafs": list(map(int, below_is_leaf)),
            "nodes_falsenodeids": list(above),
            "nodes_falseleafs": list(map(int, above_is_leaf)),
            "leaf_targetids": [0] * len(self._leaves),
            "leaf_weights": numpy_helper.from_array(np.array(self._leaves, dtype=np.float64), "weights"),
        }


def _column(table: ExportTable, output: str) -> FloatArray | BoolArray | IntArray:
    """An output in each region, and last, where the region -1 points, what a score in no region gets."""
    if output == "set" and table.sets is not None:
        return np.vstack([table.sets, [False, False]])
    if output == "region":
        return np.array([*table.region_numbers, -1], dtype=np.int64)
    return np.append(table.values(output), np.nan)


def _segment_array(table: ExportTable) -> NDArray[np.object_] | FloatArray | IntArray:
    segments = table.segments or [OTHER.value]  # where no segment is named, text
    kind = {str: object, float: np.float64}.get(type(segments[0]), np.int64)
    return np.array([*segments, *([np.nan] if kind is np.float64 and table.takes_others else [])], dtype=kind)


def _encoding(table: ExportTable, segments: NDArray[np.object_] | FloatArray | IntArray) -> Attributes:
    """Attributes of the operator that numbers the segments; unknown ones get -1, or the number of the rest."""
    from onnx import numpy_helper

    numbers = np.arange(len(segments))
    numbers[[isinstance(segment, float) and math.isnan(segment) for segment in segments.tolist()]] = -1
    rest = len(table.segments) if table.takes_others else -1
    return {
        "keys_tensor": numpy_helper.from_array(segments, "segments"),
        "values_tensor": numpy_helper.from_array(numbers, "numbers"),
        "default_tensor": numpy_helper.from_array(np.array([rest]), "unknown"),
    }
