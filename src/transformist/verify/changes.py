"""Sensitivity: the largest change at the last position when one symbol changes (section 6.4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from transformist.arithmetic import Arithmetic, is_whole, number_system
from transformist.errors import InvalidValue
from transformist.model import Symbol, Transformer, require_transformer


def sensitivity(
    model: Transformer,
    strings: Iterable[Sequence[Symbol]],
    arithmetic: Arithmetic | str = "float64",
    positions: Iterable[int] | int | None = None,
) -> float | Fraction:
    """Measure the largest change of an activation at the last position when one symbol changes.

    Activations are the numbers of the streams after the embedding and after every sublayer, and the
    final norm; one symbol of one of the strings becomes another of the alphabet. The symbol at the
    last position itself, where the model adds none at the back, is left as it is.

    Where features of positions are bounded and every position-wise function is
    Lipschitz-continuous, it is at most some K/n (Hahn 2020). A norm with ε = 0 is not
    Lipschitz-continuous, and can keep it constant.

    Args:
        model: the transformer.
        strings: inputs whose symbols are changed.
        arithmetic: the number system to evaluate in.
        positions: positions of the symbols that are changed, from 1 to the length of the longest
            string; all of them, when left out.

    Raises:
        InvalidValue: for a model that is no transformer, one string in place of a list of them,
            or a position that no string has.
        UnknownSymbol, InputTooLong, InputTooLarge: as `Transformer.run`.

    Returns:
        The largest change measured; 0 where there is nothing to change. A rational in `exact`, and
        in `interval`, where it is an upper bound.

    Example:
        >>> import transformist as tf
        >>> majority = tf.recipe("dyck-1-uniform").build()
        >>> tf.sensitivity(majority, ["()()"], "exact")
        Fraction(2, 5)

    """
    require_transformer(model, "sensitivity")
    system, tried = number_system(arithmetic), _several(strings)
    chosen = None if positions is None else _within(positions, max(map(len, tried), default=0))
    largest: float | Fraction = 0 * system.numbers(system.array([0]))[0]
    for x in tried:
        before, off = _last_activations(model, x, system)
        for changed in _changed(model, tuple(x), chosen):
            after, more = _last_activations(model, changed, system)
            # A real value lies within a radius of its ball's midpoint, before and after, so that
            # the change of real values is at most that of midpoints and both radii. Without radii
            # none is added, as that would turn rationals into floats.
            moved = np.abs(after - before)
            largest = max(largest, (moved + off + more if off.any() or more.any() else moved).max())
    return largest if isinstance(largest, Fraction) else float(largest)


def _several(strings: Iterable[Sequence[Symbol]]) -> list[Sequence[Symbol]]:
    if isinstance(strings, str) or not isinstance(strings, Iterable):
        is_one = isinstance(strings, str)
        raise InvalidValue(
            "strings must be a list of the inputs whose symbols are changed",
            received=f"{'one string, ' * is_one}{strings!r:.60}",
            where="sensitivity",
            remedy="put it in a list" if is_one else "give a list of strings",
        )
    given: list[Any] = list(strings)
    if not all(isinstance(each, Sequence) for each in given):
        raise InvalidValue(
            "each input must be a string or a list of symbols",
            received=repr(next(each for each in given if not isinstance(each, Sequence)))[:60],
            where="sensitivity",
            remedy="give strings",
        )
    return given


def _within(positions: Iterable[int] | int, longest: int) -> set[int]:
    chosen = list(positions) if isinstance(positions, Iterable) else [positions]
    for place in chosen:
        if not is_whole(place, 1) or place not in range(1, longest + 1):
            raise InvalidValue(
                "positions must be from 1 to the length of the longest string",
                received=f"position {place!s:.40} of strings of at most {longest} symbols",
                where="sensitivity",
                remedy="give positions that one of the strings has",
            )
    return set(chosen)


def _last_activations(model: Transformer, x: Sequence[Symbol], system: Arithmetic) -> Any:
    """All the numbers at the last position, after each step, and the radii of their balls."""
    last = [z[-1] for _, z in model.run(x, system).streams]
    return tuple(np.concatenate([of(z) for z in last]) for of in (system.numbers, system.radius))


def _changed(
    model: Transformer, x: tuple[Symbol, ...], chosen: set[int] | None
) -> Iterator[tuple[Symbol, ...]]:
    last = len(x) if model.embedding.back else len(x) - 1
    for place in range(last):
        if chosen is None or place + 1 in chosen:
            for symbol in model.alphabet:
                if symbol != x[place]:
                    yield (*x[:place], symbol, *x[place + 1 :])
