"""From a program to a transformer: lower < temperatures < schedule < allocate < emit."""

from __future__ import annotations

from collections.abc import Sequence

from transformist.compiler.allocate import allocate
from transformist.compiler.answers import answer
from transformist.compiler.circuit import Circuit
from transformist.compiler.emit import emit
from transformist.compiler.lower import Lowering
from transformist.compiler.options import Options
from transformist.compiler.schedule import schedule
from transformist.compiler.temperatures import sharpnesses
from transformist.language import Accept, Program
from transformist.language.across import Mean
from transformist.language.leaves import Constant, Token
from transformist.language.pointwise import (
    Comparison,
    Linear,
    PiecewiseLinear,
    Product,
    Table,
    Where,
)
from transformist.model import Transformer


def compile(
    program: Program,
    *,
    max_length: int | None = 1024,
    weighting: str = "softmax",
    arithmetic: str = "float32",
    heads: str = "many",
    positions: Sequence[str] | None = None,
) -> Transformer:
    """Turn a program into the weights of a transformer that computes it.

    Every tolerance and temperature follows from what the values can be: thresholds lie in the
    middle of separations, 1/τ from what its results are used for.

    Args:
        program: made by `tf.program`.
        max_length: N, the longest input; `None` for any length, where no constant depends on N.
        weighting: `softmax`, `average-hard`, or `rightmost-hard` where no mean is needed.
        arithmetic: the number system in which the margins have to fit.
        heads: `many` or `one` a layer.
        positions: the functions of positions that may be used, all when left out.

    Raises:
        InvalidValue: for a subexpression that cannot be compiled as asked, with its name, its line
            and what would help.
        UnknownName: for an option that does not exist.

    Example:
        >>> import transformist as tf
        >>> @tf.program(alphabet="ab")
        ... def most_a(x):
        ...     return (x.map({"a": 1, "b": -1}).mean() > 0).accept()
        >>> model = tf.compile(most_a, max_length=100)
        >>> model, model("aab"), model("ab")
        (Transformer(1 layers, width 3, N = 100), True, False)

    """
    options = Options(max_length, weighting, arithmetic, heads, positions)  # type: ignore[arg-type]
    circuit = Circuit(program.alphabet, begins_with_bos(program), max_length, weighting)
    read = answer(Lowering(program, options, circuit))
    sharpness = sharpnesses(circuit, read.uses)
    placed = schedule(circuit, read.forms, heads)
    return emit(allocate(placed), sharpness, read)


_WITHOUT_BOS = (
    Token,
    Constant,
    Table,
    Linear,
    PiecewiseLinear,
    Product,
    Comparison,
    Where,
    Mean,
)


def begins_with_bos(program: Program) -> bool:
    """Whether BOS stands in front: for the empty input, for counts, for what matches nothing."""
    if isinstance(program.output, Accept):
        return True
    return not all(isinstance(node, _WITHOUT_BOS) for node in program.nodes)
