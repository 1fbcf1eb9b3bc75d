"""A transformer as a graph of ONNX (opset 18); this module needs the library onnx.

The graph takes `token_ids` (batch, rows) and `lengths` (batch), both int64, and gives `vectors`
(batch, rows, d) and `logits` (batch, rows, k); batch and rows are free in every run. A run fails
for a length below 0, beyond N or beyond the rows, for a number of lengths other than the batch, and
for a token without a vector. Initializers have the names of the tensors in a saved file.

Equal rows must get equal numbers, so that ties of hard attention stay ties. ONNX Runtime computes
some elements of a tensor by other instructions than the rest, with another last bit (measured with
ONNX Runtime 1.32: 851 of 2,880 small sums by ReduceSum depend on the place of their row). The graph
has no operator of that kind: no MatMul, no ReduceSum of several terms, and in float64 neither Exp
nor Tanh. Sums add one term after the other: small ones are the last entries of a CumSum, and large
ones are the state of a Scan, which holds no terms but the current ones.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from transformist.arithmetic import number_system
from transformist.hosts.host import Unhostable
from transformist.hosts.named_arrays import (
    NO_FACTS,
    description,
    fixed_positions,
    longest_input,
    named_arrays,
    require_hostable,
)
from transformist.model import (
    GATES,
    Attention,
    FeedForward,
    Layer,
    PositionFunctions,
    PositionTable,
    Transformer,
)
from transformist.position_features import WAVELENGTHS, position

OPSET = 18
TYPES = {"float64": (TensorProto.DOUBLE, np.float64), "float32": (TensorProto.FLOAT, np.float32)}
"""The number formats of graphs, in which ONNX Runtime has the operators on a CPU."""

# A product of W with a row by CumSum holds d_out · d terms twice, by Scan it holds d_out numbers.
# Scan takes about 3 µs a term beside the arithmetic, and CumSum some 3 ns a term and row (ONNX
# Runtime 1.32, one thread): with d = d_out, both take the same time for 10 rows at d = 100, and for
# 100 rows at d = 20. Below this limit a row takes at most 16 KiB in float32.
LARGE = 2048
"""From this many weights on, a linear map is summed by Scan."""

# A coordinate of a query or a value takes five nodes, and a Scan nine in all. ONNX Runtime takes
# some microseconds a node, and a second to load some ten thousand nodes.
MANY = 8
"""From this many coordinates on, queries and values are multiplied by Scan."""


def write(
    model: Transformer,
    arithmetic: str,
    max_length: int | None = None,
    facts: Mapping[str, Any] = NO_FACTS,
) -> bytes:
    """Return the bytes of a graph, after the checker of ONNX with full shape inference.

    Args:
        model: the transformer.
        arithmetic: `float32` or `float64`.
        max_length: the longest input, for positions that become a table in a model without one.
        facts: the claim of the model and the inputs of its comparison, for the metadata.

    Raises:
        Unhostable: for another format, or an activation without an operator in the format.
        UndefinedValue: for positions without a vector for a symbol in front.
        NotFinite: for a weight that is too large for the format.

    """
    require_hostable(model, "export")
    if arithmetic not in TYPES:
        raise Unhostable(
            "an ONNX graph must be in float32 or float64",
            received=arithmetic,
            host="torch",
            arithmetic=arithmetic,
        )
    graph = _Graph(model, arithmetic, max_length)
    proto = graph.built(description(model, arithmetic, facts, max_length))
    onnx.checker.check_model(proto, full_check=True)
    data: bytes = proto.SerializeToString()
    return data


def run(data: bytes, most_threads: int = 1) -> Callable[[Any, Any], NDArray[Any]]:
    """Return a function from tokens and lengths to logits, by ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = most_threads
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])

    def logits(ids: Any, lengths: Any) -> NDArray[Any]:
        given = {"token_ids": np.asarray(ids, np.int64), "lengths": np.asarray(lengths, np.int64)}
        found: NDArray[Any] = session.run(["logits"], given)[0]
        return found

    return logits


class _Graph:
    """Nodes and initializers of one graph; methods take and return names of values."""

    def __init__(self, model: Transformer, arithmetic: str, max_length: int | None) -> None:
        self.model, self.system = model, number_system(arithmetic)
        self.type, self.dtype = TYPES[arithmetic]
        self.weights = named_arrays(model, arithmetic)
        self.max_length = max_length
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def op(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        name = name or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def weight(self, name: str) -> str:
        """Return a weight of the model by its name in a saved file."""
        # `named_arrays` rounded the weights to the format already: this conversion is exact.
        return self._constant(name, np.asarray(self.weights[name], self.dtype))

    def whole(self, value: Any) -> str:
        """Return a constant of whole numbers."""
        return self._constant(f"whole {value}", np.asarray(value, np.int64))

    def number(self, value: float) -> str:
        """Return a constant in the format of the graph."""
        return self._constant(f"number {value}", np.asarray(value, self.dtype))

    def _constant(self, name: str, value: NDArray[Any]) -> str:
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(value, name)
        return name

    def expanded(self, x: str, *axes: int) -> str:
        """Add axes of length 1."""
        return self.op("Unsqueeze", x, self.whole(list(axes)))

    def summed(self, x: str, keepdims: int = 0) -> str:
        """Sum along the last axis, from the first term to the last."""
        # A transposed ReduceSum over rows would be faster, but the optimizer of ONNX Runtime turns
        # it back. The slice has one entry, or none for no rows: its ReduceSum rounds nothing.
        sums = self.op("CumSum", x, self.whole(-1))
        last, end = self.whole([-1]), self.whole([np.iinfo(np.int64).max])
        return self.op(
            "ReduceSum", self.op("Slice", sums, last, end, last), last, keepdims=keepdims
        )

    def exp(self, x: str) -> str:
        """eˣ."""
        if self.system.name != "float64":
            return self.op("Exp", x)
        # Pow takes every element alike, where Exp in float64 does not. Its base is E, the float64
        # next to e: E = e(1 + δ) with δ = −5.318e-17, so that eˣ = Eˣ · e^(−δx), and e^(−δx) is
        # 1 − δx up to (δx)² < 2⁻⁸⁶ for x ≥ −1000. Below −1000 both are 0, and −∞ gives no NaN.
        x = self.op("Max", x, self.number(-1000))
        power = self.op("Pow", self.number(np.e), x)
        rest = self.op("Add", self.op("Mul", x, self.number(5.318e-17)), self.number(1))
        return self.op("Mul", power, rest)

    def scanned(
        self, x: tuple[str, int, list[int]], y: tuple[str, int, list[int]], width: str
    ) -> str:
        """Sum x_t y_t over t, from the first term to the last, (batch, rows, width).

        Args:
            x: a value, the axis of t, and the axes of length 1 that x_t gets for the product.
            y: the same for the other factor.
            width: the last axis of the sum, as a list of one whole number.

        """
        terms = ("x", "y")
        body = helper.make_graph(
            [
                *(helper.make_node("Unsqueeze", [f"{t}_t", f"{t}_axes"], [t]) for t in terms),
                helper.make_node("Mul", terms, ["term"]),
                helper.make_node("Add", ["before", "term"], ["after"]),
            ],
            "term",
            [
                helper.make_tensor_value_info(name, self.type, None)
                for name in ("before", "x_t", "y_t")
            ],
            [helper.make_tensor_value_info("after", self.type, None)],
            [
                numpy_helper.from_array(np.asarray(axes, np.int64), f"{t}_axes")
                for t, (_, _, axes) in zip(terms, (x, y), strict=True)
            ],
        )
        # The state of the Scan begins as zeros (batch, rows, width). 0 + x is x (or 0 for −0), so
        # the sum is rounded as if it began with the first term.
        shape = self.op("Concat", self.shape, width, axis=0)
        start = self.op("ConstantOfShape", shape, value=helper.make_tensor("", self.type, [1], [0]))
        return self.op(
            "Scan", start, x[0], y[0], body=body, num_scan_inputs=2, scan_input_axes=[x[1], y[1]]
        )

    def affine(self, x: str, W: str, b: str | None = None) -> str:
        """W x + b along the last axis, (batch, rows, d) → (batch, rows, d_out), by names."""
        matrix = self.weights[W]
        if matrix.size < LARGE:
            # (batch, rows, 1, d) times (d_out, d), summed over d.
            total = self.summed(self.op("Mul", self.expanded(x, -2), self.weight(W)))
        else:
            width = self.whole([matrix.shape[0]])
            total = self.scanned((x, 2, [2]), (self.weight(W), 1, [0, 1]), width)
        return total if b is None else self.op("Add", total, self.weight(b))

    def built(self, facts: Mapping[str, Any]) -> Any:
        """Return the graph as a protocol buffer, with these facts in its metadata."""
        # `rows` has the number of rows that were given; the padded row is cut off again at the end.
        rows = self.op("Gather", self.op("Shape", "token_ids"), self.whole([1]))
        # A Scan of no keys ends the process (ONNX Runtime 1.32: a division by zero), so that a
        # batch without rows gets one of padding.
        missing = self.op("Max", self.op("Sub", self.whole([1]), rows), self.whole([0]))
        pads = self.op("Concat", self.whole([0, 0, 0]), missing, axis=0)
        self.token_ids = self.op("Pad", "token_ids", pads)
        self.shape = self.op("Shape", self.token_ids)
        self.j = self.op(
            "Range", self.whole(0), self.op("Gather", self.shape, self.whole(1)), self.whole(1)
        )
        self.lengths = self._checked_lengths(rows)
        self.is_token = self.op("Less", self.expanded(self.j, 0), self.expanded(self.lengths, 1))
        self.is_row = self.expanded(self.is_token, 2)
        z = self._kept(self._embedded())
        for number, layer in enumerate(self.model.layers):
            z = self._layer(z, layer, f"layers.{number}")
        if self.model.final_norm is not None:
            z = self._kept(self._norm(z, "final_norm"))
        logits = self.affine(z, "read_out.W_out", "read_out.b_out")
        for name, value in (("vectors", z), ("logits", logits)):
            bounds = (self.whole([0]), rows, self.whole([1]))
            self.nodes.append(helper.make_node("Slice", [value, *bounds], [name], name=name))
        k = self.weights["read_out.W_out"].shape[0]
        whole, rows_by = TensorProto.INT64, ["batch", "rows"]
        graph = helper.make_graph(
            self.nodes,
            "transformist",
            [
                helper.make_tensor_value_info("token_ids", whole, rows_by),
                helper.make_tensor_value_info("lengths", whole, ["batch"]),
            ],
            [
                helper.make_tensor_value_info("vectors", self.type, [*rows_by, self.model.width]),
                helper.make_tensor_value_info("logits", self.type, [*rows_by, k]),
            ],
            list(self.constants.values()),
        )
        opset = helper.make_opsetid("", OPSET)
        proto = helper.make_model(
            graph, opset_imports=[opset], ir_version=8, producer_name="transformist"
        )
        helper.set_model_props(proto, {"transformist": json.dumps(facts)})
        return proto

    def _checked_lengths(self, rows: str) -> str:
        """The lengths; the run fails for one out of range, and unless there is one per input."""
        # ONNX has no operator that fails on a condition, but Gather fails for an index beyond its
        # tensor. What is wrong gets the index 1 in a tensor whose one entry is 0; for the rest this
        # 0 is added. ONNX Runtime shows the name of the node that fails.
        limit = _rows_for_longest(self.model, self.max_length)
        batch = self.op("Gather", self.shape, self.whole([0]))
        # Add and Less would repeat a single length for every input of a batch.
        is_of_batch = self.op("Equal", self.op("Shape", "lengths"), batch)
        faults = {
            "lengths_must_be_as_many_as_the_inputs": self.op("Not", is_of_batch),
            "lengths_must_be_at_least_0": self.op("Less", "lengths", self.whole(0)),
            "lengths_must_be_at_most_the_rows_of_token_ids": self.op("Greater", "lengths", rows),
        }
        if limit is not None:
            is_beyond = self.op("Greater", "lengths", self.whole(limit))
            faults[f"lengths_must_be_at_most_{limit}"] = is_beyond
        lengths = "lengths"
        for name, is_wrong in faults.items():
            index = self._cast(is_wrong, TensorProto.INT64)
            nothing = self.op("Gather", self.whole([0]), index, name=name)
            lengths = self.op("Add", lengths, nothing)
        return lengths

    def _kept(self, z: str) -> str:
        """Set rows of padding to 0, so that neither NaN nor ∞ comes from them."""
        return self.op("Where", self.is_row, z, self.number(0))

    def _embedded(self) -> str:
        ids = self.op("Where", self.is_token, self.token_ids, self.whole(0))
        # Gather counts negative indices from the end; a negative token is one beyond the end.
        symbols = len(self.model.embedding.symbols)
        is_negative = self.op("Less", ids, self.whole(0))
        ids = self.op("Where", is_negative, self.whole(symbols), ids)
        name = f"token_ids_must_be_0_to_{symbols - 1}"
        words = self.op("Gather", self.weight("embedding.vectors"), ids, name=name)
        embedding = self.model.embedding
        if embedding.positions is None:
            return words
        front, back = len(embedding.front), len(embedding.back)
        if isinstance(embedding.positions, PositionFunctions):
            return self.op("Add", words, self._formulas(embedding.positions.names, front, back))
        if isinstance(embedding.positions, PositionTable):
            table, first = self.weight("embedding.positions.vectors"), 1
        else:
            rows, first = fixed_positions(self.model, self.system, self.max_length)
            table = self._constant("positions", np.asarray(rows, self.dtype))
        # Row r has the position r + 1 − front, and padding may lie beyond the table.
        place = self.op("Add", self.expanded(self.j, 0), self.whole(1 - front - first))
        return self.op("Add", words, self.op("Gather", table, self._tokens_only(place)))

    def _tokens_only(self, place: str) -> str:
        return self.op("Where", self.is_token, place, self.whole(0))

    def _formulas(self, names: tuple[str | None, ...], front: int, back: int) -> str:
        """The vectors of positions by formula, computed in float64 and then rounded."""
        # Rows of padding get i = n = 1, where every function has a value; `_kept` sets the rows to
        # 0 later. The quotient of two whole numbers below 2²⁴ is rounded to 53 bits and then to 24:
        # as 53 ≥ 2 · 24 + 2, that is the nearest number of 24 bits (Figueroa 1995), which the
        # reference has.
        place = self.op("Add", self.expanded(self.j, 0), self.whole(1 - front))
        length = self.op("Sub", self.expanded(self.lengths, 1), self.whole(front + back))
        i = self.op("Where", self.is_token, place, self.whole(1))
        n = self.op("Where", self.is_token, length, self.whole(1))
        nothing = self.op("Mul", i, self.whole(0))
        columns = [
            self._double(nothing)
            if name is None
            else self.wave(name, i)
            if name in WAVELENGTHS
            else POSITION_FUNCTIONS[name](self, i, n)
            for name in names
        ]
        vectors = self.op("Concat", *(self.expanded(each, 2) for each in columns), axis=2)
        return self.op("Cast", vectors, to=self.type)

    def _double(self, x: str) -> str:
        return self.op("Cast", x, to=TensorProto.DOUBLE)

    def power(self, i: str, exponent: int) -> str:
        """iᵏ in whole numbers, as float64."""
        # int64 holds i³ up to i = 2,097,151, and float64 every whole number up to 2⁵³, so i³ up to
        # i = 208,063: to there a power rounds once, when it is cast to float32.
        product = i
        for _ in range(exponent - 1):
            product = self.op("Mul", product, i)
        return self._double(product)

    def quotient(self, i: str, n: str) -> str:
        """i/n in float64, and 0 where i is 0."""
        # Only a symbol in front has i = 0, where n may be 0 too: 0/0 would be NaN.
        divisor = self.op("Where", self.op("Equal", i, self.whole(0)), self.whole(1), n)
        return self.op("Div", self._double(i), self._double(divisor))

    def negative(self, x: str) -> str:
        """−x."""
        return self.op("Neg", x)

    def reciprocal(self, i: str) -> str:
        """1/i in float64."""
        return self.op("Div", self._double(self.whole(1)), self._double(i))

    def sign(self, i: str) -> str:
        """(−1)ⁱ; the remainder has the sign of the divisor, 2."""
        odd = self.op("Mod", i, self.whole(2))
        return self._double(self.op("Sub", self.whole(1), self.op("Mul", odd, self.whole(2))))

    def wave(self, name: str, i: str) -> str:
        """A sine or cosine: a table of one wavelength; the remainder is not negative."""
        wavelength = WAVELENGTHS[name]
        values = [float(position(name, place, 0)) for place in range(wavelength)]
        table = self._constant(f"wave {name}", np.asarray(values, np.float64))
        return self.op("Gather", table, self.op("Mod", i, self.whole(wavelength)))

    def ones(self, i: str) -> str:
        """1 at every position."""
        return self._double(self.op("Add", self.op("Mul", i, self.whole(0)), self.whole(1)))

    def _layer(self, z: str, layer: Layer, name: str) -> str:
        """The stream after a layer."""
        if layer.heads:
            x = self._normed(z, layer.pre_norms[0], f"{name}.pre_norms.0")
            parts = [
                self._head(x, head, f"{name}.heads.{number}")
                for number, head in enumerate(layer.heads)
            ]
            # Heads are added from the first to the last, and the stream last, as in the reference.
            y = parts[0]
            for part in parts[1:]:
                y = self.op("Add", y, part)
            y = self._normed(self.op("Add", y, z), layer.post_norms[0], f"{name}.post_norms.0")
            z = self._kept(y)
        if layer.feed_forward is not None:
            x = self._normed(z, layer.pre_norms[1], f"{name}.pre_norms.1")
            y = self.op("Add", self._network(x, layer.feed_forward, f"{name}.feed_forward"), z)
            z = self._kept(self._normed(y, layer.post_norms[1], f"{name}.post_norms.1"))
        return z

    def _head(self, z: str, head: Attention, name: str) -> str:
        q, k, v = (self.affine(z, f"{name}.W_{each}", f"{name}.b_{each}") for each in "QKV")
        weights = self._weights(self._scores(q, k, head), head)
        c = self._mixed(weights, v, head.W_V.shape[0])
        if head.W_O is None:
            return self.op("Add", c, self.weight(f"{name}.b_O"))
        return self.affine(c, f"{name}.W_O", f"{name}.b_O")

    def _mixed(self, weights: str, v: str, size: int) -> str:
        """The values times their weights, added from the first key to the last."""
        if size >= MANY:
            return self.scanned((weights, 2, [2]), (v, 1, [1]), self.whole([size]))
        columns = [
            self.summed(self.op("Mul", weights, self.expanded(self._column(v, each), 1)))
            for each in range(size)
        ]
        return self.op("Concat", *(self.expanded(each, 2) for each in columns), axis=2)

    def _column(self, x: str, number: int) -> str:
        return self.op("Gather", x, self.whole(number), axis=2)

    def _scores(self, q: str, k: str, head: Attention) -> str:
        """q · k / √d_key, the products added from the first to the last."""
        size = head.W_Q.shape[0]
        if size >= MANY:
            keys = self.op("Gather", self.shape, self.whole([1]))
            total = self.scanned((q, 2, [2]), (k, 2, [1]), keys)
        else:
            total = ""
            for each in range(size):
                row = self.expanded(self._column(q, each), 2)
                product = self.op("Mul", row, self.expanded(self._column(k, each), 1))
                total = self.op("Add", total, product) if each else product
        # √d_key is rounded to the format, as in the reference: another divisor could make two
        # scores equal that differ there.
        root = self.system.sqrt(self.system.array([size]))
        return self.op("Div", total, self.number(float(self.system.numbers(root)[0])))

    def _weights(self, scores: str, head: Attention) -> str:
        """Attention weights by the weighting and the mask of a head; 0 in empty rows."""
        # Padding is no key: a score of its rows could be the largest.
        admissible = self.expanded(self.is_token, 1)
        if head.mask != "none":
            kind = COMPARISONS[head.mask]
            earlier = self.op(kind, self.expanded(self.j, 0), self.expanded(self.j, 1))
            admissible = self.op("And", self.expanded(earlier, 0), admissible)
        lowest = self.op("Where", admissible, scores, self.number(-np.inf))
        largest = self.op("ReduceMax", lowest, self.whole([-1]), keepdims=1)
        return WEIGHTINGS[head.weighting](self, scores, admissible, largest)

    def softmax(self, scores: str, admissible: str, largest: str) -> str:
        """exp(s − max) over its sum; −∞ as the maximum marks an empty row."""
        # Without an admissible key the maximum is −∞, and −∞ − (−∞) is NaN: 0 is taken instead.
        is_empty = self.op("Equal", largest, self.number(-np.inf))
        shift = self.op("Where", is_empty, self.number(0), largest)
        below = self.op("Sub", scores, shift)
        below = self.op("Where", admissible, below, self.number(0))
        e = self.op("Where", admissible, self.exp(below), self.number(0))
        total = self.op("Where", is_empty, self.number(1), self.summed(e, keepdims=1))
        return self.op("Div", e, total)

    def average(self, scores: str, admissible: str, largest: str) -> str:
        """Equal weights on the largest scores."""
        chosen = self._cast(self._chosen(scores, admissible, largest), TensorProto.INT64)
        # An empty row has no score to choose: 0/1 keeps its weights 0.
        count = self.op("Max", self.summed(chosen, keepdims=1), self.whole(1))
        return self.op("Div", self._cast(chosen, self.type), self._cast(count, self.type))

    def leftmost(self, scores: str, admissible: str, largest: str) -> str:
        """All the weight on the first largest score."""
        return self._first(self._chosen(scores, admissible, largest), reverse=0)

    def rightmost(self, scores: str, admissible: str, largest: str) -> str:
        """All the weight on the last largest score."""
        return self._first(self._chosen(scores, admissible, largest), reverse=1)

    def _chosen(self, scores: str, admissible: str, largest: str) -> str:
        return self.op("And", admissible, self.op("Equal", scores, largest))

    def _first(self, chosen: str, reverse: int) -> str:
        """1 at the first True of each row from one end, 0 elsewhere."""
        ordinal = self.op(
            "CumSum", self._cast(chosen, TensorProto.INT64), self.whole(2), reverse=reverse
        )
        return self._cast(
            self.op("And", chosen, self.op("Equal", ordinal, self.whole(1))), self.type
        )

    def _cast(self, x: str, to: int) -> str:
        return self.op("Cast", x, to=to)

    def _network(self, x: str, network: FeedForward, name: str) -> str:
        hidden = self.affine(x, f"{name}.W_1", f"{name}.b_1")
        activated = ACTIVATIONS[network.activation](self, hidden)
        return self.affine(activated, f"{name}.W_2", f"{name}.b_2")

    def relu(self, x: str) -> str:
        """max(x, 0)."""
        return self.op("Relu", x)

    def gelu(self, x: str) -> str:
        """x/2 · (1 + erf(x/√2))."""
        if self.system.name == "float64":
            raise Unhostable(
                "a graph in float64 must have activations other than gelu",
                received="gelu, whose operator Erf ONNX Runtime has in float32 only",
                host="onnx",
                arithmetic="float32",
            )
        erf = self.op("Erf", self.op("Div", x, self.number(2**0.5)))
        half = self.op("Mul", x, self.number(0.5))
        return self.op("Mul", half, self.op("Add", erf, self.number(1)))

    def gelu_tanh(self, x: str) -> str:
        """x/2 · (1 + tanh u) = x / (1 + exp(−2u)), u = √(2/π)(x + 0.044715 x³)."""
        cube = self.op("Mul", x, self.op("Mul", x, x))
        inner = self.op("Add", x, self.op("Mul", cube, self.number(0.044715)))
        return self._over(x, self.op("Mul", inner, self.number(-2 * (2 / np.pi) ** 0.5)))

    def gelu_sigmoid(self, x: str) -> str:
        """x / (1 + exp(−1.702 x))."""
        return self._over(x, self.op("Mul", x, self.number(-1.702)))

    def sigmoid(self, x: str) -> str:
        """1 / (1 + exp(−x))."""
        return self._over(self.number(1), self.op("Neg", x))

    def tanh(self, x: str) -> str:
        """2 / (1 + exp(−2x)) − 1."""
        share = self._over(self.number(2), self.op("Mul", x, self.number(-2)))
        return self.op("Sub", share, self.number(1))

    def elu(self, x: str) -> str:
        """max(x, 0) + exp(min(x, 0)) − 1."""
        below = self.op("Neg", self.op("Relu", self.op("Neg", x)))
        return self.op("Add", self.op("Relu", x), self.op("Sub", self.exp(below), self.number(1)))

    def silu(self, x: str) -> str:
        """x / (1 + exp(−x))."""
        return self._over(x, self.op("Neg", x))

    def gated(self, x: str, gate: str | None) -> str:
        """v · act(g) for the halves v and g of the last axis."""
        values, gates = self.halves(x)
        return self.op(
            "Mul", values, gates if gate is None else PLAIN_ACTIVATIONS[gate](self, gates)
        )

    def halves(self, x: str) -> tuple[str, str]:
        """The two halves of the last axis."""
        names = [f"Split_{len(self.nodes)}.{half}" for half in range(2)]
        node = helper.make_node("Split", [x], names, name=names[0], axis=-1, num_outputs=2)
        self.nodes.append(node)
        return names[0], names[1]

    def _over(self, x: str, exponent: str) -> str:
        """x / (1 + exp(exponent))."""
        return self.op("Div", x, self.op("Add", self.exp(exponent), self.number(1)))

    def _normed(self, z: str, norm: object, name: str) -> str:
        return z if norm is None else self._norm(z, name)

    def _norm(self, x: str, name: str) -> str:
        """A layer norm; rows of padding keep a deviation of 1."""
        if f"{name}.W_N" in self.weights:
            x = self.affine(x, f"{name}.W_N")
        size = self.number(self.weights[f"{name}.gain"].shape[0])
        # Mean, squares and their mean are taken in the order of the reference, by operators that
        # take every element alike: equal rows get equal results.
        centred = self.op("Sub", x, self.op("Div", self.summed(x, keepdims=1), size))
        squares = self.op("Mul", centred, centred)
        variance = self.op("Div", self.summed(squares, keepdims=1), size)
        variance = self.op("Add", variance, self.weight(f"{name}.epsilon"))
        # A row of padding is 0, so its variance is ε, which may be 0: 0/0 would be NaN.
        variance = self.op("Where", self.is_row, variance, self.number(1))
        scaled = self.op("Div", centred, self.op("Sqrt", variance))
        scaled = self.op("Mul", scaled, self.weight(f"{name}.gain"))
        return self.op("Add", scaled, self.weight(f"{name}.bias"))


def _rows_for_longest(model: Transformer, max_length: int | None) -> int | None:
    """The rows of the longest input, with the symbols that the model adds; None for any."""
    embedding, longest = model.embedding, longest_input(model, max_length)
    return None if longest is None else longest + len(embedding.front) + len(embedding.back)


COMPARISONS: Mapping[str, str] = {
    "future": "LessOrEqual",
    "strict-future": "Less",
    "past": "GreaterOrEqual",
    "strict-past": "Greater",
}
"""The operator that compares key j with query i, for each mask other than `none`."""

WEIGHTINGS: Mapping[str, Callable[[_Graph, str, str, str], str]] = {
    "softmax": _Graph.softmax,
    "average-hard": _Graph.average,
    "leftmost-hard": _Graph.leftmost,
    "rightmost-hard": _Graph.rightmost,
}
"""The nodes of each weighting of `model.Weighting`."""

PLAIN_ACTIVATIONS: Mapping[str, Callable[[_Graph, str], str]] = {
    "relu": _Graph.relu,
    "gelu": _Graph.gelu,
    "gelu-tanh": _Graph.gelu_tanh,
    "gelu-sigmoid": _Graph.gelu_sigmoid,
    "sigmoid": _Graph.sigmoid,
    "tanh": _Graph.tanh,
    "elu": _Graph.elu,
    "silu": _Graph.silu,
}
"""The nodes of each activation of one number."""

ACTIVATIONS: Mapping[str, Callable[[_Graph, str], str]] = {
    **PLAIN_ACTIVATIONS,
    **{name: functools.partial(_Graph.gated, gate=gate) for name, gate in GATES.items()},
}
"""The nodes of each activation of `model.FeedForward`."""

POSITION_FUNCTIONS: Mapping[str, Callable[[_Graph, str, str], str]] = {
    "1": lambda graph, i, _n: graph.ones(i),
    "i": lambda graph, i, _n: graph.power(i, 1),
    "i^2": lambda graph, i, _n: graph.power(i, 2),
    "i^3": lambda graph, i, _n: graph.power(i, 3),
    "1/i": lambda graph, i, _n: graph.reciprocal(i),
    "-1/i": lambda graph, i, _n: graph.negative(graph.reciprocal(i)),
    "i/n": lambda graph, i, n: graph.quotient(i, n),
    "-i/n": lambda graph, i, n: graph.negative(graph.quotient(i, n)),
    "(-1)^i": lambda graph, i, _n: graph.sign(i),
}
"""The nodes of each function of `position_features.POSITIONS`."""
