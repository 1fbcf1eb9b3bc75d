"""A transformer as the data of its page: exact weights, and each rounded to every format."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from transformist.arithmetic import BFLOAT16, EXACT, FLOAT32, FLOAT64, Floating
from transformist.errors import InputTooLarge, InvalidValue, NotFinite
from transformist.model import (
    Attention,
    FeedForward,
    LayerNorm,
    NearestFraction,
    NearZero,
    Outputs,
    PositionEncoding,
    PositionFunctions,
    PositionsSideBySide,
    PositionTable,
    ReadOut,
    Sinusoids,
    Transformer,
)
from transformist.model.parameter import parameter
from transformist.model.weights_table import number_in_words
from transformist.position_features import WAVELENGTHS, position

PAGE_FORMATS: tuple[Floating, ...] = (FLOAT64, FLOAT32, BFLOAT16)
"""Formats in which a page evaluates its model."""

MOST_WEIGHTS = 20_000
"""Most weights other than 0 of a model in a page.

So many make a page of 0.6 MB where float64 holds each (19,091 weights of induction-most-frequent
with 32 symbols), and of 1.5 MB where all are fractions that each format rounds (19,012 of a
network).
"""

MOST_PAIRS = 2**23
"""Most attention scores that a page computes for one input, over all heads."""

LONGEST_INPUT = 512
"""Most symbols of an input in a page."""


def longest_input(model: Transformer) -> int:
    """The longest input that the page of a model evaluates."""
    heads = sum(len(layer.heads) for layer in model.layers)
    positions = model.embedding.positions
    covered = None if positions is None else positions.max_length
    limits = (model.max_length, covered, LONGEST_INPUT)
    # h heads have h n² scores: n ≤ √(MOST_PAIRS/h), which is ⌊√⌊MOST_PAIRS/h⌋⌋ for a whole n.
    dense = math.isqrt(MOST_PAIRS // max(heads, 1))
    return min(dense, *(limit for limit in limits if limit is not None))


def model_data(model: Transformer) -> dict[str, Any]:
    """The model as plain values, for JSON.

    Args:
        model: the model.

    Raises:
        InputTooLarge: for a model with too many weights for a page.
        InvalidValue: for an activation that pages do not evaluate, and for symbols that look alike.
        NotFinite: for a weight that is too large for float64.

    """
    _require_small(model)
    _require_places(model)
    if not _holds(model, FLOAT64):
        raise NotFinite(
            "the weights of a model in a page must be finite in float64",
            received="a larger one",
            where="explorer",
            remedy="build it with other parameters",
        )
    longest = longest_input(model)
    embedding = model.embedding
    symbols = _texts_of_symbols(model)
    steps = list(_steps(model))
    row = {symbol: number for number, symbol in enumerate(embedding.symbols)}
    return {
        "slots": list(model.stream.slots),
        "held": [
            [model.stream.held(slot, after) for slot in range(model.width)]
            for after in range(len(steps) + 1)
        ],
        "formats": [each.name for each in PAGE_FORMATS if _holds(model, each)],
        "embedding": {
            "symbols": symbols,
            "inputs": [row[symbol] for symbol in embedding.alphabet],
            "vectors": _matrix(embedding.vectors),
            "positions": _positions(embedding.positions, longest + len(embedding.back)),
            "front": [row[symbol] for symbol in embedding.front],
            "back": [row[symbol] for symbol in embedding.back],
        },
        "steps": steps,
        "read_out": _read_out(model.read_out),
        "W_out": _matrix(model.read_out.W_out),
        "b_out": _matrix(model.read_out.b_out),
        "rows": list(model.read_out.row_names),
        "max_length": model.max_length,
        "longest": longest,
    }


def _require_small(model: Transformer) -> None:
    """Refuse a model with more weights than a page holds."""
    count = sum(int(np.count_nonzero(matrix.values != 0)) for _, matrix in model.weights_table())
    count += _tabled(model.embedding.positions, longest_input(model))
    if count > MOST_WEIGHTS:
        raise InputTooLarge(
            f"the model of a page must have at most {MOST_WEIGHTS:,} weights other than 0",
            received=f"{count:,}",
            where="explorer",
            remedy="build it with a smaller max_length or alphabet, or draw model.plot() and "
            "trace.plot()",
        )


def _require_places(model: Transformer) -> None:
    """Refuse sinusoids with a symbol in front, which has position 0: a page has them from 1 on."""
    if model.embedding.front and _tabled(model.embedding.positions, 1):
        raise InvalidValue(
            "a model with sinusoids in a page must have no symbol in front",
            received=f"{', '.join(model.embedding.front)} in front",
            where="explorer",
            remedy="give the model a PositionTable, or leave out the symbol",
        )


def _tabled(positions: PositionEncoding | None, longest: int) -> int:
    """Number of entries of the tables of sinusoids, which a page holds beside the weights."""
    if isinstance(positions, PositionsSideBySide):
        return sum(_tabled(each, longest) for each in positions.parts)
    return longest * positions.width if isinstance(positions, Sinusoids) else 0


def _texts_of_symbols(model: Transformer) -> list[str]:
    """The symbols as texts, by which a reader types them."""
    typed = [str(symbol) for symbol in model.alphabet]
    # The field holds one line. Symbols stand side by side if each is a character; else the page
    # takes them apart at white space, to which JavaScript counts U+FEFF.
    if all(len(each) == 1 for each in typed):
        is_typable = not {"\n", "\r"} & set(typed)
    else:
        is_typable = all(each.split() == [each] and "\ufeff" not in each for each in typed)
    if len(set(typed)) < len(typed) or not is_typable:
        raise InvalidValue(
            "the symbols of a model in a page must differ as texts and hold no line break, and if "
            "one has several characters, none may have a space",
            received=f"{model.alphabet!r:.60}",
            where="explorer",
            remedy="build the model for other symbols",
        )
    return [str(symbol) for symbol in model.embedding.symbols]


def _holds(model: Transformer, arithmetic: Floating) -> bool:
    """True if every weight is finite in a format."""
    entries = (matrix.values[matrix.values != 0] for _, matrix in model.weights_table())
    # The formulas of positions are texts, and no weights.
    numbers = (each for each in entries if not any(isinstance(x, str) for x in each[:1]))
    return all(_rounded(each, arithmetic) is not None for each in numbers)


def _steps(model: Transformer) -> Iterator[dict[str, Any]]:
    """Every sublayer, and the final norm."""
    for number, layer in enumerate(model.layers):
        for index, kind in enumerate(("attention", "feed-forward")):
            if layer.heads if index == 0 else layer.feed_forward is not None:
                network = layer.feed_forward
                yield {
                    "name": f"layer {number} {kind}",
                    "kind": kind,
                    "layer": number,
                    "heads": [_head(each) for each in layer.heads] if index == 0 else [],
                    "network": _network(network) if index == 1 and network else None,
                    "before": _norm(layer.pre_norms[index]),
                    "after": _norm(layer.post_norms[index]),
                }
    if model.final_norm is not None:
        yield {
            "name": "final norm",
            "kind": "norm",
            "layer": len(model.layers),
            "heads": [],
            "network": None,
            "before": None,
            "after": _norm(model.final_norm),
        }


def _head(head: Attention) -> dict[str, Any]:
    names = ("W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V", "b_O")
    return {
        **{name: _matrix(getattr(head, name)) for name in names},
        "W_O": None if head.W_O is None else _matrix(head.W_O),
        "weighting": str(head.weighting),
        "mask": str(head.mask),
    }


PAGE_ACTIVATIONS = ("relu", "gelu-tanh", "gelu-sigmoid")
"""Activations that `evaluator.js` has."""


def _network(network: FeedForward) -> dict[str, Any]:
    if network.activation not in PAGE_ACTIVATIONS:
        raise InvalidValue(
            f"the activation of a network in a page must be {', '.join(PAGE_ACTIVATIONS)}",
            received=network.activation,
            where="explorer",
            remedy="build the model with one of these",
        )
    names = ("W_1", "b_1", "W_2", "b_2")
    matrices = {name: _matrix(getattr(network, name)) for name in names}
    return {**matrices, "activation": network.activation}


def _norm(norm: LayerNorm | None) -> dict[str, Any] | None:
    if norm is None:
        return None
    return {
        "gain": _matrix(norm.gain),
        "bias": _matrix(norm.bias),
        "epsilon": _matrix(norm.epsilon),
        "W_N": None if norm.W_N is None else _matrix(norm.W_N),
    }


def _positions(positions: PositionEncoding | None, longest: int) -> dict[str, Any] | None:
    if positions is None:
        return None
    if isinstance(positions, PositionFunctions):
        names = {name for name in positions.names if name is not None and name in WAVELENGTHS}
        waves = {
            name: [float(position(name, i, 0)) for i in range(WAVELENGTHS[name])]
            for name in sorted(names)
        }
        return {"kind": "functions", "names": list(positions.names), "waves": waves}
    if isinstance(positions, PositionsSideBySide):
        return {"kind": "parts", "parts": [_positions(each, longest) for each in positions.parts]}
    kind = {PositionTable: "table", Sinusoids: "sinusoids"}.get(type(positions))
    if kind is None:
        raise InvalidValue(
            "the positions of a model in a page must be functions by name, a table or sinusoids",
            received=type(positions).__name__,
            where="explorer",
            remedy="give the model PositionFunctions or a PositionTable",
        )
    last = min(longest, positions.max_length or longest)
    vectors = EXACT.numbers(positions.at(range(1, last + 1), last, EXACT))
    return {"kind": kind, "vectors": _matrix(parameter(vectors))}


def _read_out(read_out: ReadOut, name: str = "") -> dict[str, Any]:
    facts: dict[str, Any] = {
        "kind": type(read_out).__name__,
        "at": read_out.at,
        "name": name,
        "size": len(read_out.W_out),
        "labels": [str(label) for label in getattr(read_out, "labels", ())],
    }
    if isinstance(read_out, NearestFraction):
        facts |= {
            "scale": int(read_out.scale),
            "mask": str(read_out.mask),
            "with_bos": read_out.with_bos,
        }
    if isinstance(read_out, NearZero):
        facts["powers"] = [int(power) for power in read_out.powers]
    if isinstance(read_out, Outputs):
        pairs = zip(read_out.names, read_out.parts, strict=True)
        facts["parts"] = [_read_out(part, each) for each, part in pairs]
    return facts


def _matrix(values: Any) -> dict[str, Any]:
    """The entries of a matrix other than 0, exact and rounded; a vector is a matrix of one row."""
    matrix = np.atleast_2d(values)
    flat = matrix.ravel()
    at = np.flatnonzero(flat != 0)
    entries = flat[at]
    facts: dict[str, Any] = {"shape": list(matrix.shape), "at": at.tolist()}
    if not len(at):
        return facts | {"float64": []}
    for each in PAGE_FORMATS:
        rounded = _rounded(entries, each)
        # Formats in which nothing is rounded share the list of float64.
        if rounded is not None and rounded != facts.get("float64"):
            facts[each.name] = rounded
    if matrix.dtype == object:
        facts["exact"] = [number_in_words(value) for value in entries.tolist()]
    return facts


def _rounded(values: Any, arithmetic: Floating) -> list[float] | None:
    """The values rounded to a format; `None` if one is too large for it."""
    try:
        rounded: list[float] = arithmetic.numbers(arithmetic.array(values)).tolist()
    except NotFinite:
        return None
    return rounded
