"""The weights of a transformer as named arrays, rounded to a number format.

A writer of exported models reads these arrays, and other fields of the model, such as masks and
labels. The names are those of the tensors in a saved file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from numbers import Rational
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Arithmetic, number_system
from transformist.errors import CoarserFormat, InvalidValue, UndefinedValue, UnknownName
from transformist.model import (
    Layer,
    Outputs,
    PositionFunctions,
    PositionTable,
    ReadOut,
    Symbol,
    Transformer,
    require_transformer,
)
from transformist.model.parameter import Parameterized
from transformist.model.stream import NOTHING
from transformist.rounding import is_as_fine

FORMATS = ("float64", "float32", "float16", "bfloat16")
"""The number formats of exported models."""


def named_arrays(model: Transformer, arithmetic: Arithmetic | str) -> dict[str, NDArray[Any]]:
    """The weights by their names in a saved file, each rounded once to a number format.

    Args:
        model: the transformer.
        arithmetic: the format; float64 arrays hold its numbers exactly.

    Raises:
        NotFinite: for a weight that is too large for the format.

    Example:
        >>> import transformist as tf
        >>> arrays = named_arrays(tf.recipe("dyck-1").build(max_length=9), "float32")
        >>> list(arrays)[:2], arrays["read_out.W_out"].shape
        (['embedding.vectors', 'layers.0.heads.0.W_Q'], (1, 6))

    """
    system = number_system(arithmetic)
    return {
        prefix + name: system.numbers(weights)
        for prefix, part in _parts(model)
        for name, weights in vars(part.rounded(system)).items()
        if weights is not None
    }


def _parts(model: Transformer) -> Iterator[tuple[str, Parameterized]]:
    """The parts that have weights, each with the prefix of its names."""
    yield "embedding.", model.embedding
    if isinstance(model.embedding.positions, PositionTable):
        yield "embedding.positions.", model.embedding.positions
    for number, layer in enumerate(model.layers):
        prefix = f"layers.{number}."
        for head, attention in enumerate(layer.heads):
            yield f"{prefix}heads.{head}.", attention
        if layer.feed_forward is not None:
            yield f"{prefix}feed_forward.", layer.feed_forward
        for place, norms in (("pre_norms", layer.pre_norms), ("post_norms", layer.post_norms)):
            for sublayer, norm in enumerate(norms):
                if norm is not None:
                    yield f"{prefix}{place}.{sublayer}.", norm
    if model.final_norm is not None:
        yield "final_norm.", model.final_norm
    yield "read_out.", model.read_out


def _names_of(part: Parameterized) -> list[str]:
    """The names of the weights of a part, without those that are None."""
    declared = [each.name for each in fields(part) if each.metadata.get("weights")]
    return [name for name in declared if getattr(part, name) is not None]


def _outputs_with(read_out: Outputs, W_out: NDArray[Any], b_out: NDArray[Any]) -> Outputs:
    """Several outputs with other weights: the rows of each part are cut from one matrix."""
    parts, start = [], 0
    for part in read_out.parts:
        rows = slice(start, start + len(part.W_out))
        parts.append(replace(part, W_out=W_out[rows], b_out=b_out[rows]))
        start = rows.stop
    return replace(read_out, parts=tuple(parts))


def with_arrays(model: Transformer, arrays: Mapping[str, NDArray[Any]]) -> Transformer:
    """Return a transformer of the same shape with other weights, taken exactly.

    Args:
        model: the transformer.
        arrays: the weights by their names in a saved file.

    Raises:
        NotFinite: for a weight that is NaN or infinite.

    Example:
        >>> import transformist as tf
        >>> model = tf.recipe("dyck-1").build(max_length=9)
        >>> changed = named_arrays(model, "float64") | {"read_out.b_out": np.array([7])}
        >>> model(")("), with_arrays(model, changed)(")(")
        (False, True)

    """
    new: dict[str, Any] = {}
    for prefix, part in _parts(model):
        if isinstance(part, Outputs):
            new[prefix] = _outputs_with(part, arrays[f"{prefix}W_out"], arrays[f"{prefix}b_out"])
            continue
        changed: dict[str, Any] = {name: arrays[prefix + name] for name in _names_of(part)}
        new[prefix] = replace(part, **changed)

    def with_weights(number: int, layer: Layer) -> Layer:
        at = f"layers.{number}."
        pre: Any = tuple(new.get(f"{at}pre_norms.{sublayer}.") for sublayer in range(2))
        post: Any = tuple(new.get(f"{at}post_norms.{sublayer}.") for sublayer in range(2))
        return replace(
            layer,
            heads=tuple(new[f"{at}heads.{head}."] for head in range(len(layer.heads))),
            feed_forward=new.get(f"{at}feed_forward."),
            pre_norms=pre,
            post_norms=post,
        )

    positions = new.get("embedding.positions.", model.embedding.positions)
    # `built_for` would state a property of the old weights.
    return replace(
        model,
        embedding=replace(new["embedding."], positions=positions),
        layers=tuple(with_weights(*each) for each in enumerate(model.layers)),
        final_norm=new.get("final_norm."),
        read_out=new["read_out."],
        # The margins were kept by the old weights.
        built_for=None,
    )


def require_format(name: object, where: str) -> str:
    """Return the name of a number format of other software.

    Raises:
        UnknownName: for another one.

    """
    # A name, or a dtype of PyTorch, whose text is such as "torch.float32".
    given = str(name).removeprefix("torch.")
    if given not in FORMATS:
        raise UnknownName.among("format of other software", given, FORMATS, where)
    return given


def warn_if_coarser(model: Transformer, arithmetic: str, copy: str, remedy: str) -> None:
    """Warn, at the line of the user's call, that a model is compiled for a finer format.

    Args:
        model: the transformer.
        arithmetic: the format in which the model and its copy in other software are compared.
        copy: what the copy is, such as "file".
        remedy: the action that helps.

    """
    built_for = model.built_for
    if built_for is None or is_as_fine(number_system(arithmetic), number_system(built_for)):
        return
    warn(
        CoarserFormat(
            f"the model is compiled for {built_for}: in {arithmetic} its answers may be wrong, and "
            f"the answers of the {copy} with them; {remedy}"
        ),
        stacklevel=3,
    )


def require_hostable(model: Any, where: str) -> None:
    """Require a transformer that has a vector for the position of each symbol that it adds.

    Raises:
        InvalidValue: for a value of another class.
        UndefinedValue: for positions without a vector for a symbol in front; such a model has no
            answer on any input.

    """
    require_transformer(model, where)
    positions, front = model.embedding.positions, model.embedding.front
    # A symbol in front has position 0, where 1/i has no value and a table has no row.
    divides = isinstance(positions, PositionFunctions) and {"1/i", "-1/i"} & {*positions.names}
    if front and (divides or isinstance(positions, PositionTable)):
        raise UndefinedValue(
            "the positions of a model must have a vector for each symbol that it adds",
            received=f"none for {front[-1]}, at position 0",
            where=where,
            remedy="add no symbol in front, or use other position functions",
        )


def token_ids(model: Transformer, x: Sequence[Symbol]) -> list[int]:
    """Return the rows of the word embedding for an input, with the symbols that the model adds.

    Raises:
        UnknownSymbol, InputTooLong, InvalidValue: as `Transformer.run`.

    Example:
        >>> import transformist as tf
        >>> token_ids(tf.recipe("dyck-1").build(), "(()")
        [2, 0, 0, 1]

    """
    model.admit_length(x)
    return model.embedding.encode(x)


def answer_from(model: Transformer, values: Any, n: int, arithmetic: Arithmetic | str) -> Any:
    """Return the answer of the read-out from the logits of other software.

    Args:
        model: the transformer.
        values: W_out z + b_out at every row, shape (rows, k).
        n: the length of the input.
        arithmetic: the format of the numbers.

    Raises:
        NotFinite: for a number that is NaN.

    """
    # `a.array` would refuse an infinite value, which is an answer in the reference.
    a: Any = number_system(arithmetic)
    y = np.asarray(values, np.float64)[model.rows_read(n)].astype(a.dtype)
    answers = model.read_out.answers(y, n, a)
    return model.read_out.join(answers, n) if model.read_out.reads_several else answers[0]


def held_names(model: Transformer) -> tuple[Mapping[str, int], ...]:
    """Return the slot names after each step, each with its coordinate in the residual stream.

    Example:
        >>> import transformist as tf
        >>> held_names(tf.recipe("dyck-1").build())[0]["balance"]
        1

    """
    steps = sum(len(list(layer.sublayers())) for layer in model.layers)
    count = 1 + steps + (model.final_norm is not None)
    stream = model.stream
    names = ([stream.held(slot, after) for slot in range(stream.width)] for after in range(count))
    return tuple(
        {name: slot for slot, name in enumerate(each) if name != NOTHING} for each in names
    )


def longest_input(model: Transformer, max_length: int | None = None) -> int | None:
    """Return the longest input of an exported model, added symbols not counted; None for any.

    Args:
        model: the transformer.
        max_length: the length for which a table of positions is made, of a model without N.

    Example:
        >>> import transformist as tf
        >>> longest_input(tf.recipe("dyck-1").build(max_length=9))
        9

    """
    positions, limits = model.embedding.positions, [model.max_length]
    if isinstance(positions, PositionTable):
        # The last of the symbols at the back has the position n + back.
        limits.append(positions.max_length - len(model.embedding.back))
    is_formula = positions is None or isinstance(positions, PositionFunctions | PositionTable)
    if not is_formula and model.max_length is None:
        limits.append(max_length)
    return min((each for each in limits if each is not None), default=None)


def fixed_positions(model: Transformer, a: Any, max_length: int | None) -> tuple[NDArray[Any], int]:
    """Return the table of a position encoding that has no weights, and the position of its row 0.

    Raises:
        InvalidValue: for a model of any length, if no length is given.

    """
    longest = max_length if model.max_length is None else model.max_length
    if longest is None:
        kind = type(model.embedding.positions).__name__
        raise InvalidValue(
            f"positions of the kind {kind}, which become a table, must have a longest input",
            received="a model for any length, and no max_length",
            where="export",
            remedy="give max_length, such as max_length=512",
        )
    # Symbols in front have the positions first, …, 0, and those at the back end the table.
    positions: Any = model.embedding.positions
    first = 1 - len(model.embedding.front)
    places = range(first, longest + len(model.embedding.back) + 1)
    return a.numbers(positions.at(places, longest, a)), first


NO_FACTS: Mapping[str, Any] = {"claim": "", "license": "", "compared": None}
"""Facts about an exported model: its claim, its licence, and the inputs of its comparison."""


def description(
    model: Transformer,
    arithmetic: str,
    facts: Mapping[str, Any] = NO_FACTS,
    max_length: int | None = None,
) -> dict[str, Any]:
    """Return the facts about a model that its arrays do not hold, as plain JSON.

    Args:
        model: the transformer.
        arithmetic: the number format of the arrays.
        facts: further facts that the model does not hold, under the keys of `NO_FACTS`.
        max_length: the length for which a table of positions is made, of a model without N.

    Example:
        >>> import transformist as tf
        >>> facts = description(tf.recipe("dyck-1").build(max_length=9), "float32")
        >>> facts["symbols"], facts["front"], facts["max_length"], facts["read_out"]
        (['(', ')', 'BOS'], ['BOS'], 9, 'Binary')

    """
    embedding, read_out = model.embedding, model.read_out
    # The rows of several outputs follow each other in this order.
    named = (
        zip(read_out.names, read_out.parts, strict=True) if isinstance(read_out, Outputs) else ()
    )
    return {
        "symbols": [_plain(each) for each in embedding.symbols],
        "front": list(embedding.front),
        "back": list(embedding.back),
        **_answers(read_out),
        "outputs": {name: {**_answers(part), "rows": len(part.W_out)} for name, part in named},
        "slots": list(model.stream.slots),
        "max_length": longest_input(model, max_length),
        "built_for": model.built_for,
        "arithmetic": arithmetic,
        **NO_FACTS,
        **facts,
    }


MOST = 10**4000
"""Whole numbers in metadata are smaller: Python reads no more than 4,300 digits."""


def _answers(read_out: ReadOut) -> dict[str, Any]:
    """The kind of an answer, and the fields of the read-out that are not weights."""
    # `description` describes each of several outputs under its name.
    parts = {"names", "parts"} if isinstance(read_out, Outputs) else set()
    settings = {
        each.name: _plain(getattr(read_out, each.name))
        for each in fields(read_out)
        if not (each.metadata.get("weights") or each.name in parts or each.name.startswith("_"))
    }
    return {"read_out": type(read_out).__name__, "labels": [], **settings}


def _plain(value: Any) -> Any:
    """Return a value as JSON, different values differently.

    A tuple is a list; a fraction is an object, {"fraction": "1/2"}, and so is an infinite float,
    which JSON cannot write: {"float": "inf"}.
    """
    match value:
        case tuple():
            return [_plain(each) for each in value]
        case None | str() | bool():
            return value
        case np.bool_():
            return bool(value)
        case Rational() if max(abs(int(value.numerator)), int(value.denominator)) < MOST:
            # Among whole numbers are Fraction(3) and those of numpy.
            is_whole = value.denominator == 1
            return int(value.numerator) if is_whole else {"fraction": str(value)}
        case float() | np.floating() if float(value) == value:
            number = float(value)
            return number if math.isfinite(number) else {"float": str(number)}
    raise InvalidValue(
        "symbols and labels in metadata must be strings, numbers of at most 4,000 digits, "
        "Booleans, None, or tuples of these",
        received=type(value).__name__,
        where="export",
        remedy="build the model with other symbols or labels",
    )
