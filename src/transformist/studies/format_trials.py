"""Trials of a program in formats, by certificates and by runs, for the study precision-law."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator, Sequence
from typing import Any

import transformist as tf
from transformist.arithmetic import Arithmetic

STRUCTURED = ("float32",)
"""Formats that run in the structured engine; the others run in the reference."""

MANY, FEW = 128, 12
"""Strings for each N: all that are made up to N = 128, twelve beyond."""

BLOCK = 4096
"""About so many symbols of strings up to N = 128 are evaluated together."""


class Trials:
    """Models of a program with the margins of float64, and its strings, shared by all formats."""

    def __init__(self, program: Any) -> None:
        self.model = functools.cache(
            lambda n: tf.compile(program, max_length=n, arithmetic="float64")
        )
        self._strings = functools.cache(lambda n: _numbered(list(program.alphabet), n))
        self._answer = functools.cache(lambda n, number: program(self._strings(n)[number]))
        self._failed: dict[int, int] = {}  # the largest N at which a string failed, by its number

    def is_certified(self, system: Arithmetic, n: int) -> bool:
        """True if a certificate holds at N = n."""
        try:
            return tf.grade_of(self.model(n), system)[0] > 0
        except tf.TransformistError:  # the compiler refuses this N
            return False

    def margin(self, system: Arithmetic, n: int) -> str:
        """The margin that is too small for a certificate at N = n."""
        try:
            limiting = tf.certify(self.model(n), system).limiting
        except tf.TransformistError:
            return "the margins of the compiler"
        return getattr(limiting, "what", None) or str(limiting)

    def is_right(self, system: Arithmetic, n: int) -> bool:
        """True if no string of at most n symbols is found that has a wrong answer at N = n."""
        numbers, size = list(self._strings(n)), BLOCK // (n + 1)
        if n > MANY:  # those that failed at the largest N so far, and of equals the first
            numbers, size = sorted(numbers, key=lambda k: -self._failed.get(k, 0))[:FEW], 1
        for start in range(0, len(numbers), size):
            wrong = self._wrong(system, n, numbers[start : start + size])
            if wrong:
                self._failed |= {k: max(n, self._failed.get(k, 0)) for k in wrong}
                return False
        return True

    def _wrong(self, system: Arithmetic, n: int, numbers: Sequence[int]) -> list[int]:
        """The numbers of those strings whose answer is wrong, or missing as a number overflows."""
        strings = [self._strings(n)[k] for k in numbers]
        try:
            if system.name in STRUCTURED:
                found = [tf.run(self.model(n), x, system, "structured") for x in strings]
            else:
                found = self.model(n).answers(strings, system)
        except tf.TransformistError:
            if len(numbers) == 1:
                return [*numbers]
            return [k for each in numbers for k in self._wrong(system, n, [each])]
        return [k for k, y in zip(numbers, found, strict=True) if y != self._answer(n, k)]


def _numbered(alphabet: Sequence[Any], n: int) -> dict[int, tuple[Any, ...]]:
    """The strings for N = n, each once, by numbers that are the same for every N."""
    numbers: dict[tuple[Any, ...], int] = {}
    for number, x in enumerate(_strings(alphabet, n)):
        numbers.setdefault(tuple(x), number)
    return {number: x for x, number in numbers.items()}


def _strings(alphabet: Sequence[Any], n: int) -> Iterator[list[Any]]:
    """Strings of two symbols in turn or in blocks, and drawn ones, of n symbols and of fewer."""
    rnd = random.Random(f"0 {n}")
    for m in (n, n - 1, n // 2):
        for a, b in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            u, v = [alphabet[a]], [alphabet[b]]
            yield from ((u + v) * (m // 2) + u * (m % 2), u * m, u * (m - 1) + v)
            yield from (u * k + v * (m - k) for k in (m // 4, m // 2, 3 * m // 4, 7 * m // 8))
            yield u * (m // 4) + v * (m // 2) + u * (m - m // 4 - m // 2)
            yield ((u + u + v) * m)[:m]
        yield from (rnd.choices(alphabet, [7, *[1] * (len(alphabet) - 1)], k=m) for _ in range(2))
        yield from (rnd.choices(alphabet, k=m) for _ in range(2))
