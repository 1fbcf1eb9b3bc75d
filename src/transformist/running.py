"""Choice of the engine: the dense reference, or the structured engine for long inputs.

The structured engine compiles to machine code by numba, which takes a second to import, so it is
imported only when it is used.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from transformist.arithmetic import Arithmetic, number_system
from transformist.errors import InputTooLarge, UnknownName, is_name
from transformist.memory import beyond_memory, free_memory
from transformist.model import Symbol, Transformer, length_of, require_transformer

if TYPE_CHECKING:
    from transformist.engines.structured import Decoder, Plan

STRUCTURED_FROM = 4096
"""From this length on `auto` takes the structured engine."""

STRUCTURED = ("float64", "float32")
"""The arithmetics of the structured engine."""


def run(
    model: Transformer,
    x: Sequence[Symbol],
    arithmetic: Arithmetic | str = "float64",
    engine: str = "reference",
) -> Any:
    """The answer of a model on an input.

    Args:
        model: the model.
        x: a string, or a sequence of symbols.
        arithmetic: the number system, by name.
        engine: `reference`, the definitions themselves; `structured`, for long inputs in float64
            and float32, whose heads attend where the reference does, ties included, and whose means
            are summed in another order: they can differ in the last places of the largest value,
            and the answer where it hangs on those; `auto`, the structured one where the input is
            long and it has the arithmetic.

    Raises:
        UnknownName: for another engine.
        InvalidValue: for an arithmetic that the engine does not have.
        UnknownSymbol, InputTooLong, InputTooLarge, NotRepresentable: as `Transformer.run`.
        NotFinite: for a score or an answer that overflows; in `structured` also for what overflows
            in heads and in the stream where no answer depends on it.

    Warns:
        TakesLong: `structured`, before a head goes through every pair of a long input.

    Example:
        >>> import transformist as tf
        >>> model = tf.recipe("dyck-1").build(max_length=100_000)
        >>> tf.run(model, "()" * 50_000, engine="structured")
        True

    """
    require_transformer(model, "run")
    require_engine(engine)
    return ENGINES[chosen_engine(engine, length_of(x), arithmetic)](model, x, arithmetic)


def require_engine(engine: str) -> None:
    """Refuse the name of an engine that does not exist.

    Raises:
        UnknownName: with the names there are.

    """
    known = (*ENGINES, "auto")
    if not is_name(engine, known):
        raise UnknownName.among("engine", engine, known)


def chosen_engine(engine: str, length: int, arithmetic: Arithmetic | str) -> str:
    """The engine that evaluates an input of this length; `auto` leaves it to the length.

    Example:
        >>> chosen_engine("auto", 2, "float64"), chosen_engine("auto", 9999, "float64")
        ('reference', 'structured')

    """
    if engine != "auto":
        return engine
    fits = number_system(arithmetic).name in STRUCTURED
    return "structured" if fits and length >= STRUCTURED_FROM else "reference"


def refuse_beyond_memory(
    model: Transformer, count: int, arithmetic: Arithmetic | str, engine: str
) -> None:
    """Refuse more symbols than can be evaluated in the memory that is free.

    Args:
        model: the reader of the symbols; its longest input does not matter.
        count: the number of symbols so far; others may follow.
        arithmetic: the number system, by name.
        engine: `structured`, for which its estimate is taken, or `reference`, for which the symbols
            alone are counted.

    Raises:
        InputTooLarge: with the estimate.

    """
    each, free = POINTER, free_memory()
    if engine == "structured":
        from transformist.engines.structured.estimates import bytes_a_row
        from transformist.engines.structured.evaluation import format_of

        each = bytes_a_row(model, format_of(arithmetic))
    most = free // each
    if count > most:
        received = f"more than {most} symbols, which take {each} bytes each"
        raise beyond_memory(free, received, f"{engine} engine", most)


POINTER = 8
"""Bytes that a symbol takes at least in a trace."""


def refuse_beyond_scores(model: Transformer, count: int, arithmetic: Arithmetic | str) -> None:
    """Refuse more symbols than the dense reference evaluates.

    Args:
        model: the reader of the symbols.
        count: the number of symbols so far; others may follow.
        arithmetic: the number system, by name.

    Raises:
        InputTooLarge: with the longest input.

    """
    a, longest = number_system(arithmetic), model.longest_dense(arithmetic)
    if longest is not None and count > longest:
        raise InputTooLarge(
            f"an input must take at most {a.most_scores:,} attention scores in {a.name}",
            received=f"more than {longest} symbols",
            where="reference engine",
            remedy=f"give at most {longest} symbols, or evaluate it by the structured engine",
        )


def admission(
    build: Callable[[], Transformer],
    arithmetic: Arithmetic | str,
    engine: str,
    option: str,
    has_length: bool = False,
) -> Callable[[int], None]:
    """The check of a growing input: it receives the number of symbols so far, and may refuse.

    Args:
        build: builds the reader of the symbols; called once, when there are so many symbols that
            they may be refused.
        arithmetic: the number system, by name.
        engine: `structured` or `reference`.
        option: the option that asks for the structured engine.
        has_length: True if the built model has the N of the evaluation.

    Example:
        >>> admit = admission(lambda: 1 / 0, "float64", "reference", "engine=")
        >>> admit(8192)
        >>> admit(8193)
        Traceback (most recent call last):
        ...
        ZeroDivisionError: division by zero

    """
    built = functools.cache(build)
    few = MANY
    if engine == "reference":
        # The reference computes n² scores a head, at most `most_scores` in all. While
        # MOST_HEADS · n² ≤ most_scores, a model of at most MOST_HEADS heads need not be built to
        # know that it admits n. (BOS adds a row: at the very limit the evaluation itself refuses.)
        few = min(few, math.isqrt(number_system(arithmetic).most_scores // MOST_HEADS))

    def admit(count: int) -> None:
        if count <= few:
            return
        if has_length:
            built().admit_length(range(count))
        if count > MANY:
            refuse_beyond_memory(built(), count, arithmetic, engine)
        if engine == "reference":
            with naming_structured(option, arithmetic):
                refuse_beyond_scores(built(), count, arithmetic)

    return admit


MOST_HEADS = 64
"""A model is assumed to have at most this many heads until it is built."""


MANY = 2**20
"""From this many symbols on, their memory is compared with the memory that is free."""


@contextmanager
def naming_structured(option: str, arithmetic: Arithmetic | str) -> Iterator[None]:
    """Add the option of the structured engine to the refusal of an input too large.

    Args:
        option: the option that asks for the structured engine.
        arithmetic: the arithmetic of the refused evaluation.

    """
    try:
        yield
    except InputTooLarge as refusal:
        is_fit = number_system(arithmetic).name in STRUCTURED
        formats = "" if is_fit else f", in {' or '.join(STRUCTURED)}"
        raise refusal.with_remedy(f"({option}{formats})") from None


def _reference(model: Transformer, x: Sequence[Symbol], arithmetic: Arithmetic | str) -> Any:
    with naming_structured('engine="structured"', arithmetic):
        return model(x, arithmetic)


def _structured(model: Transformer, x: Sequence[Symbol], arithmetic: Arithmetic | str) -> Any:
    from transformist.engines.structured import evaluate

    return evaluate(model, x, arithmetic).answer


ENGINES: Mapping[str, Callable[[Transformer, Sequence[Symbol], Arithmetic | str], Any]] = {
    "reference": _reference,
    "structured": _structured,
}
"""The engines, by name."""


def plan(
    model: Transformer,
    x: Sequence[Symbol] | None = None,
    arithmetic: Arithmetic | str = "float64",
    length: int | None = None,
) -> Plan:
    """The plan of the structured engine: the method of each head, the reason, and the cost.

    The method depends on the queries and keys of the input, so the input is evaluated: a plan takes
    the time of a run.

    Args:
        model: the model.
        x: the input; left out, a drawn string.
        arithmetic: `float64` or `float32`.
        length: of the drawn string; left out, 1024, or as many symbols as the model admits.

    Raises:
        InvalidValue: for another arithmetic, a length below 0, or one beside an input.
        UnknownSymbol, InputTooLong: as `Transformer.run`.

    Example:
        >>> import transformist as tf
        >>> [(head.method, head.why) for head in tf.plan(tf.recipe("dyck-1").build()).heads]
        [('by query', 'the weights make scores 0'), ('by query', 'the weights make scores 0')]

    """
    require_transformer(model, "plan")
    from transformist.engines.structured import plan as planned

    return planned(model, x, arithmetic, length)


def decoder(model: Transformer, arithmetic: Arithmetic | str = "float64") -> Decoder:
    """A model with future masks that reads its input a token at a time.

    Args:
        model: the model.
        arithmetic: `float64` or `float32`.

    Raises:
        InvalidValue: for a model that looks ahead, or another arithmetic.

    Example:
        >>> import transformist as tf
        >>> decoder = tf.decoder(tf.recipe("dyck-1").build(max_length=100))
        >>> decoder.take_all("(())"), decoder.answer, decoder.length
        ([False, False, False, True], True, 4)

    """
    require_transformer(model, "decoder")
    from transformist.engines.structured import decoder as begun

    return begun(model, arithmetic)
