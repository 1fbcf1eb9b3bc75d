"""Lists of vectors: the inputs of attention, column by column.

A vector holds columns side by side: numbers that are free, positions in queries, and
features that the position alone fixes. A case keeps what the columns mean (a whole number, say)
beside the vectors that code it, so that a reference speaks of the meaning.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Arithmetic, Array, rational
from transformist.domains.vectors import Domain, Reals
from transformist.errors import InvalidValue, ShapeMismatch
from transformist.position_features import PositionFunction, position

Entry: TypeAlias = Any
"""Meaning of a column at one position: a tuple of numbers, or the position in a query."""

Meaning: TypeAlias = Mapping[str, list[Entry]]
"""For each free column, its entries at positions 1 to n."""


EVERY = 64
"""Every list of free numbers is a case if there are at most this many."""

DRAWN = 12
"""Most lists that are drawn for a length otherwise, beside the constant ones."""


class Column(ABC):
    """One or several coordinates of every vector of a list."""

    label: str

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of its coordinates."""

    @property
    @abstractmethod
    def free(self) -> int:
        """Number of coordinates that a position chooses."""

    @abstractmethod
    def draw(self, n: int, count: int, arithmetic: Arithmetic, seed: int) -> list[list[Entry]]:
        """Lists of n entries, about `count` of them where there are more."""

    def hard(
        self, n: int, count: int, arithmetic: Arithmetic, places: Sequence[int]
    ) -> list[list[Entry]]:
        """`count` lists of n entries on which attention is most likely to fail at these places."""
        drawn = self.draw(n, count, arithmetic, seed=0)
        return [drawn[k % len(drawn)] for k in range(count)]

    @abstractmethod
    def encode(self, entries: list[list[Entry]], n: int, arithmetic: Arithmetic) -> Array:
        """The coordinates of lists of n entries, shape (lists, n, width)."""

    def stored(self, entries: list[Entry], arithmetic: Arithmetic) -> list[Entry]:
        """Return the entries as the arithmetic rounds them; balls hold the entries themselves."""
        return entries

    @abstractmethod
    def holds(self, x: NDArray[np.float64], arithmetic: Arithmetic) -> NDArray[np.bool_]:
        """True for each vector of lists (lists, n, width) that the column may hold at its position.

        Features of the position may be off by some roundings, because callers compute them.
        """

    @abstractmethod
    def read(self, numbers: Sequence[Fraction], i: int, n: int) -> Entry:
        """The entry that free numbers at position i stand for.

        Raises:
            InvalidValue: when they stand for none.

        """


@final
@dataclass(frozen=True)
class Values(Column):
    """Free numbers.

    Attributes:
        label: what the reference calls them.
        domain: the numbers at one position.

    """

    label: str
    domain: Domain

    def __str__(self) -> str:
        return f"{self.label} in {self.domain}"

    @property
    def width(self) -> int:
        return self.domain.dimension

    @property
    def free(self) -> int:
        return self.domain.dimension

    def draw(self, n: int, count: int, arithmetic: Arithmetic, seed: int) -> list[list[Entry]]:
        """Every list where there are at most `EVERY`; else constant ones, then drawn ones."""
        pool = _pool(self.domain, arithmetic, seed)  # type: ignore[arg-type]  # frozen values
        if len(pool) ** n <= EVERY:
            return [list(each) for each in itertools.product(pool, repeat=n)]
        source = random.Random(f"{seed} {n} {self}")
        constant = [[each] * n for each in pool[:4]]
        return constant + [source.choices(pool, k=n) for _ in range(min(count, DRAWN))]

    def hard(
        self, n: int, count: int, arithmetic: Arithmetic, places: Sequence[int]
    ) -> list[list[Entry]]:
        """In turn: lists whose neighbours differ, one of equal entries, one that is drawn.

        A domain of at most 4 entries begins with the equal ones, the last entry first.
        """
        # Equal entries make ties of all positions, and neighbours that differ make a head that is
        # off by one position give another number.
        pool = _pool(self.domain, arithmetic, 0)  # type: ignore[arg-type]  # frozen values
        source = random.Random(f"{n} {self}")
        lists = [[each] * n for each in reversed(pool)] if len(pool) <= 4 else []
        while len(lists) < count:
            order = source.sample(pool, len(pool))
            lists.append(list(itertools.islice(itertools.cycle(order), n)))
            lists.append([order[0]] * n)
            lists.append(source.choices(pool, k=n))
        return lists[:count]

    def encode(self, entries: list[list[Entry]], n: int, arithmetic: Arithmetic) -> Array:
        """The numbers themselves; entries that are one object are rounded together."""
        # Lists repeat the entries of a small pool: each object is rounded once, then looked up.
        flat = list(itertools.chain.from_iterable(entries))
        distinct = {id(entry): entry for entry in flat}
        rows = {key: row for row, key in enumerate(distinct)}
        numbers = np.array(list(distinct.values()), dtype=object).reshape(-1, self.width)
        table = arithmetic.array(numbers)
        return table[np.array([rows[id(entry)] for entry in flat]).reshape(-1, n)]

    def stored(self, entries: list[Entry], arithmetic: Arithmetic) -> list[Entry]:
        """The numbers, each rounded once."""
        held = arithmetic.array(np.array(entries, dtype=object).reshape(-1, self.width))
        if np.any(arithmetic.radius(held) != 0):
            return entries
        return [tuple(map(Fraction, row)) for row in arithmetic.numbers(held).tolist()]

    def holds(self, x: NDArray[np.float64], arithmetic: Arithmetic) -> NDArray[np.bool_]:
        """True for vectors of the domain."""
        if isinstance(self.domain, Reals):
            low = -math.inf if self.domain.least is None else self.domain.least
            high = math.inf if self.domain.most is None else self.domain.most
            clipped = np.minimum(np.maximum(x, float(low)), float(high))
            return _near(clipped, x, arithmetic)
        rows, inverse = np.unique(x.reshape(-1, x.shape[-1]), axis=0, return_inverse=True)
        held = [tuple(map(Fraction, row)) in self.domain for row in rows.tolist()]
        return np.array(held)[inverse.reshape(-1)].reshape(x.shape[:-1])

    def read(self, numbers: Sequence[Fraction], i: int, n: int) -> Entry:
        """The numbers themselves."""
        return tuple(numbers)


@functools.lru_cache(maxsize=64)
def _pool(domain: Domain, arithmetic: Arithmetic, seed: int) -> tuple[Entry, ...]:
    """Cases of a domain from which lists are made, of any length."""
    return tuple(domain.cases(arithmetic, 60, seed))


def _near(
    x: NDArray[np.float64], y: NDArray[np.float64], arithmetic: Arithmetic
) -> NDArray[np.bool_]:
    """True where vectors agree up to 16 roundings of each number."""
    u = float(max(arithmetic.unit_roundoff, Fraction(1, 2**53)))
    smallest = float(getattr(arithmetic, "smallest", 0))
    with np.errstate(invalid="ignore"):  # two infinities are equal, and have no difference
        near = (x == y) | (abs(x - y) <= 16 * u * abs(x) + smallest)
    agree: NDArray[np.bool_] = near.all(axis=-1)
    return agree


Code: TypeAlias = Callable[[int, int], Sequence[Any]]
"""The coordinates that stand for position i of n."""


@final
@dataclass(frozen=True)
class Query(Column):
    """A query: a position that each position asks for.

    Attributes:
        code: its coordinates.
        width: how many they are.
        mask: `none`, for positions from 1 to n, or `future`, for positions from 1 to i.
        label: what the reference calls it.
        scale: what multiplies the coordinates, a function of the i and n where it is asked; 1 if
            left out.

    """

    code: Code
    width: int = 1
    mask: str = "none"
    label: str = "q"
    scale: PositionFunction | None = None

    def __str__(self) -> str:
        scaled = "" if self.scale is None else ", scaled"
        return f"{self.label} a position from 1 to {self._end}{scaled}"

    @property
    def _end(self) -> str:
        return "i" if self.mask == "future" else "n"

    def _last(self, i: int, n: int) -> int:
        """The last position that position i of n may ask for."""
        return i if self.mask == "future" else n

    @property
    def free(self) -> int:
        return 1

    def draw(self, n: int, count: int, arithmetic: Arithmetic, seed: int) -> list[list[Entry]]:
        """Lists that pair every i with every q where n is at most `count`."""
        # With shift k, position i asks for (i − 1 + k) mod last(i) + 1: as last(i) ≤ n, the shifts
        # 0 to n − 1 pair every i with every position from 1 to last(i).
        shifts: Sequence[int] = range(n)
        if n > count:
            source = random.Random(f"{seed} {n}")
            shifts = [0, 1, n - 1, *source.sample(range(n), max(count - 3, 0))]
        return [
            [(i - 1 + shift) % self._last(i, n) + 1 for i in range(1, n + 1)] for shift in shifts
        ]

    def hard(
        self, n: int, count: int, arithmetic: Arithmetic, places: Sequence[int]
    ) -> list[list[Entry]]:
        """The places ask for each other; in list k each asks for the k-th place after it."""
        lists = []
        for k in range(count):
            # Elsewhere each position asks for itself, which the masks `none` and `future` admit.
            queries = list(range(1, n + 1))
            for index, place in enumerate(places):
                other = places[(index + k) % len(places)]
                queries[place - 1] = min(other, self._last(place, n))
            lists.append(queries)
        return lists

    def encode(self, entries: list[list[Entry]], n: int, arithmetic: Arithmetic) -> Array:
        """The coordinates of the positions, each rounded once."""
        codes = [list(self.code(q, n)) for q in range(1, n + 1)]
        if self.scale is None:
            return arithmetic.array(codes)[np.array(entries) - 1]
        scales = [Fraction(self.scale(i, n)) for i in range(1, n + 1)]
        scaled = [
            [[Fraction(x) * by for x in codes[q - 1]] for q, by in zip(each, scales, strict=True)]
            for each in entries
        ]
        return arithmetic.array(scaled)

    def holds(self, x: NDArray[np.float64], arithmetic: Arithmetic) -> NDArray[np.bool_]:
        """True for the code of a position that position i may ask for."""
        n = x.shape[1]
        codes = np.array([[float(v) for v in self.code(q, n)] for q in range(1, n + 1)])
        held = np.zeros(x.shape[:-1], bool)
        for i in range(1, n + 1):
            scale = 1.0 if self.scale is None else float(self.scale(i, n))
            asked = scale * codes[: self._last(i, n)]
            held[:, i - 1] = _near(asked, x[:, i - 1, None, :], arithmetic).any(axis=-1)
        return held

    def read(self, numbers: Sequence[Fraction], i: int, n: int) -> Entry:
        """The position."""
        (q,) = numbers
        end = self._last(i, n)
        if q.denominator != 1 or not 1 <= q <= end:
            raise InvalidValue(
                f"a query must be a position from 1 to {self._end}, here {end}",
                received=f"{q} at position {i}",
                where=f"column {self.label}",
                remedy="give the number of a vector of the list, counted from 1",
            )
        return int(q)


@final
@dataclass(frozen=True)
class Feature(Column):
    """Coordinates that the position fixes.

    Attributes:
        label: their name, such as `i^2`.
        code: their values.
        width: how many they are.

    """

    label: str
    code: Code
    width: int = 1

    @classmethod
    def of(cls, name: str) -> Feature:
        """The position function of this name."""
        return cls(name, lambda i, n: (position(name, i, n),))

    def __str__(self) -> str:
        return self.label

    @property
    def free(self) -> int:
        return 0

    def draw(self, n: int, count: int, arithmetic: Arithmetic, seed: int) -> list[list[Entry]]:
        """The positions."""
        return [list(range(1, n + 1))]

    def encode(self, entries: list[list[Entry]], n: int, arithmetic: Arithmetic) -> Array:
        """The values at positions 1 to n, each rounded once."""
        table = arithmetic.array([list(self.code(i, n)) for i in range(1, n + 1)])
        return table[np.array(entries) - 1]

    def holds(self, x: NDArray[np.float64], arithmetic: Arithmetic) -> NDArray[np.bool_]:
        """True for the values at each position."""
        n = x.shape[1]
        codes = np.array([[float(v) for v in self.code(i, n)] for i in range(1, n + 1)])
        return _near(codes, x, arithmetic)

    def read(self, numbers: Sequence[Fraction], i: int, n: int) -> Entry:
        """The position."""
        return i


@dataclass(frozen=True)
class Sequences:
    """Lists of at least one vector, each vector the columns side by side.

    Example:
        >>> from transformist.domains import Bits
        >>> pairs = Sequences((Feature.of("i"), Values("v", Bits(1))))
        >>> pairs.read([[0], [1]])["v"]
        [(Fraction(0, 1),), (Fraction(1, 1),)]

    """

    columns: tuple[Column, ...]

    def __str__(self) -> str:
        return f"lists of vectors [{', '.join(str(column) for column in self.columns)}]"

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that the position fixes."""
        return tuple(each.label for each in self.columns if isinstance(each, Feature))

    @property
    def width(self) -> int:
        """Number of coordinates of a vector."""
        return sum(column.width for column in self.columns)

    @property
    def free(self) -> int:
        """Number of coordinates that a position chooses."""
        return sum(column.free for column in self.columns)

    def cases(self, n: int, count: int, arithmetic: Arithmetic, seed: int = 0) -> list[Meaning]:
        """Lists of length n, about `count` of them where there are more."""
        drawn = {
            column.label: column.draw(n, count, arithmetic, seed + number)
            for number, column in enumerate(self.columns)
        }
        # Columns vary independently; the shorter lists of draws are gone through again.
        total = max(len(lists) for lists in drawn.values())
        return [
            {label: lists[k % len(lists)] for label, lists in drawn.items()} for k in range(total)
        ]

    def hard(
        self, n: int, count: int, arithmetic: Arithmetic, places: Sequence[int]
    ) -> list[Meaning]:
        """`count` lists of length n that are most likely to go wrong at these places (from 1)."""
        lists = {each.label: each.hard(n, count, arithmetic, places) for each in self.columns}
        return [{label: lists[label][k] for label in lists} for k in range(count)]

    def encode(self, cases: Sequence[Meaning], n: int, arithmetic: Arithmetic) -> Array:
        """The vectors of cases of length n, shape (cases, n, width)."""
        parts = [
            column.encode([list(case[column.label]) for case in cases], n, arithmetic)
            for column in self.columns
        ]
        return arithmetic.concatenate(parts, axis=-1)

    def read(self, given: Sequence[Sequence[Any]]) -> Meaning:
        """The meaning of vectors that hold the free numbers only, in the order of the columns.

        Raises:
            ShapeMismatch: for vectors of another length, or none.
            InvalidValue: for numbers outside the domain of their column.

        """
        n = len(given)
        for i, vector in enumerate(given, start=1):
            if len(vector) != self.free:
                names = [each.label for each in self.columns if each.free]
                raise ShapeMismatch(
                    f"each vector must have {self.free} numbers ({', '.join(names)})",
                    received=f"{len(vector)} at position {i}",
                    remedy=f"give {self.free} numbers each; what the position fixes is added",
                )
        meaning: dict[str, list[Entry]] = {column.label: [] for column in self.columns}
        for i, vector in enumerate(given, start=1):
            numbers = iter([rational(value) for value in vector])
            for column in self.columns:
                own = list(itertools.islice(numbers, column.free))
                meaning[column.label].append(column.read(own, i, n))
        return meaning

    def stored(self, meaning: Meaning, arithmetic: Arithmetic) -> Meaning:
        """Return a list as the arithmetic holds it, each free number rounded once."""
        return {
            column.label: column.stored(meaning[column.label], arithmetic)
            for column in self.columns
        }

    def first_outside(
        self, vectors: NDArray[np.float64], arithmetic: Arithmetic
    ) -> tuple[Column, int, list[float]] | None:
        """Find the first numbers in lists (lists, n, width) that no case of the domain has.

        Returns:
            The column, the position from 1, and the numbers; `None` where every list is a case.

        """
        start = 0
        for column in self.columns:
            x = vectors[..., start : start + column.width]
            start += column.width
            outside = np.argwhere(~column.holds(x, arithmetic))
            if len(outside):
                at, place = outside[0].tolist()
                return column, place + 1, x[at, place].tolist()
        return None

    def __contains__(self, meaning: Meaning) -> bool:
        return all(
            entry in column.domain
            for column in self.columns
            if isinstance(column, Values)
            for entry in meaning[column.label]
        )
