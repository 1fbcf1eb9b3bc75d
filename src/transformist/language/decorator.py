"""Programs made of Python functions of the tokens, which are run once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from transformist.errors import InvalidValue
from transformist.language.interpreter import Program
from transformist.language.leaves import Token
from transformist.language.node import different
from transformist.language.output_kinds import AnyOutput, NamedOutputs
from transformist.language.per_position import WRAPPERS
from transformist.language.places import Place, definition, here, refusal
from transformist.language.tracing import FLOATS, Tracing
from transformist.settings import SYMBOLS


def program(alphabet: Any = None) -> Callable[[Callable[[Any], Any]], Program]:
    """Make a program of a function of the tokens, which is run once and traced.

    Args:
        alphabet: the symbols of the inputs: a string of different characters, or a list of
            strings, numbers (ints, floats other than NaN, `Fraction`), or tuples of these. It must
            be given, without equal symbols, such as 1 and 1.0.

    Raises:
        InvalidValue: for an invalid alphabet, a function that does not return its outputs, or an
            operation that the language does not have, with the place in the source.

    Example:
        >>> @program(alphabet="()")
        ... def dyck1(x):
        ...     step = x.map({"(": 1, ")": -1})
        ...     balance = step.prefix_mean()
        ...     return ((balance == 0) & (balance >= 0).all_so_far()).accept()
        >>> dyck1("(())"), dyck1(")("), dyck1("")
        (True, False, True)
        >>> dyck1.values("())")["balance"]
        [1, 0, Fraction(-1, 3)]

    """
    if callable(alphabet):
        raise InvalidValue(
            "@tf.program must be given the alphabet of the inputs",
            received=f"no alphabet above {getattr(alphabet, '__name__', 'a function')}",
            where=f"{here().file}, line {here().line}",
            remedy='write @tf.program(alphabet="ab")',
        )
    symbols = SYMBOLS.value(alphabet, f"{here().file}, line {here().line}")

    def traced(function: Callable[[Any], Any]) -> Program:
        return trace(function, symbols)

    return traced


def trace(function: Callable[[Any], Any], alphabet: tuple[Any, ...]) -> Program:
    """Run a function on a sequence that stands for every input, and record what it does."""
    code = getattr(function, "__code__", None)
    if code is not None and code.co_flags & _SUSPENDED:
        raise refusal(
            "a program must be a Python function that returns its output",
            received=f"{code.co_name}, a generator (it has a yield) or an async function",
            where=definition(code),
            remedy="write return in place of yield, and def without async; for several positions, "
            "y.tag() hands out the value at each",
        )
    if code is None or code.co_argcount != 1 or code.co_flags & _MANY:
        raise refusal(
            "a program must be a Python function of one argument, the tokens",
            received=f"{function!r:.60}",
            remedy="write @tf.program(alphabet=…) above def name(x):",
        )
    place = definition(code)
    tracing = Tracing(alphabet, code, WRAPPERS)
    floats: set[Fraction] = set()
    # Constants deep in expressions record floats here; a context variable keeps apart two threads
    # that trace at the same time, and a program that is traced while another is.
    before = FLOATS.set(floats)
    try:
        returned = function(tracing.sequence(Token((), alphabet)))
    finally:
        FLOATS.reset(before)
    output = _the_output(tracing, returned, place)
    names = tuple(tracing.names.items())
    handed_out = (each.node for _, each in output.parts)
    nodes, _ = different(*handed_out, *tracing.names.values())
    return Program(
        alphabet=alphabet,
        output=output,
        name=code.co_name,
        description=inspect.getdoc(function) or "",
        names=names,
        places=tuple(tracing.places.get(id(node), place) for node in nodes.values()),
        floats=frozenset(floats),
    )


_MANY = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS

_SUSPENDED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def _the_output(tracing: Tracing, returned: object, place: Place) -> AnyOutput:
    """The output that a function made and returned, or its several outputs."""
    outputs = tracing.outputs
    if len(outputs) == 1 and returned is outputs[0]:
        return outputs[0]
    if isinstance(returned, NamedOutputs):
        handed_out = {id(each) for _, each in returned.parts}
        if handed_out == set(map(id, outputs)):
            return returned
    raise _no_output(tracing, returned, place)


def _no_output(tracing: Tracing, returned: object, place: Place) -> InvalidValue:
    received = f"{returned!r:.60}"
    if returned is None:
        received = "None: nothing is returned"
    if len(tracing.outputs) > 1:
        received = f"{len(tracing.outputs)} outputs"
    return refusal(
        "a program must return one output: b.accept(), y.tag() or y.next_token()",
        received=received,
        where=place,
        remedy="write return … .accept() for a verdict, or return tf.outputs(a=…, b=…) for several",
    )
